"""The states of the generators of random numbers: torch's, CUDA's, numpy's and Python's."""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterable
from typing import Any

import torch


def _digest(state: bytes) -> int:
    """52 bits of a hash."""
    return int.from_bytes(hashlib.blake2b(state, digest_size=8).digest(), "little") >> 12


def combine(digests: Iterable[int]) -> int:
    return _digest(repr(list(digests)).encode())


def digests() -> dict[str, int]:
    """A digest of each global generator's state, which is only read."""
    states = {"torch": torch.get_rng_state().numpy().tobytes()}
    cuda: Any = torch.cuda
    if cuda.is_available() and cuda.is_initialized():
        states["cuda"] = b"".join(one.numpy().tobytes() for one in cuda.get_rng_state_all())
    if "numpy" in sys.modules:
        kind, keys, *rest = sys.modules["numpy"].random.get_state()
        states["numpy"] = repr((kind, keys.tobytes(), *rest)).encode()
    states["python"] = repr(random.getstate()).encode()
    return {name: _digest(state) for name, state in states.items()}
