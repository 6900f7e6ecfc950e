"""The harness' kernels, for tensors in host memory: each is read once, and nothing is copied.

Their library stands beside this package where Bazel or the wheel puts it. Without it, as in a
checkout, torch computes the same, but for digests, which are others.
"""

from __future__ import annotations

import ctypes
import math
import os
import struct
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch


class Statistics(NamedTuple):
    """Of a tensor, as TensorStats of kernels/tensor_stats.h; the last three of finite elements."""

    elements: int
    nonfinite: int
    nan: int
    zeros: int
    max_abs: float
    sum: float
    squares: float

    @property
    def all_squares(self) -> float:
        """The sum of the squares of all elements: NaN or infinite where an element is."""
        if self.nonfinite:
            return math.nan if self.nan else math.inf
        return self.squares


class Change(NamedTuple):
    """Of a tensor of fp32, as ChangeStats of kernels/tensor_stats.h."""

    now_squares: float
    change_squares: float
    changed: int


FILE = "lib/trainwreck/libtrainwreck_kernels.so"
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_TYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}  # as in kernels/tensor.h
_BYTES = 6
_STATISTICS = struct.Struct("=4q3d")
_CHANGE = struct.Struct("=2dq")


def _load() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), FILE))
    except OSError:
        return None


_LIBRARY = _load()


# Before torch 2.0 it has another name.
_storage: Any = getattr(torch.Tensor, "untyped_storage", torch.Tensor.storage)


def _lies_in_memory(tensor: torch.Tensor) -> bool:
    """Whether all its elements lie in order where its pointer points."""
    if (
        type(tensor) not in _PLAIN
        or tensor.device.type != "cpu"
        or tensor.layout is not torch.strided
    ):
        return False
    if not tensor.is_contiguous() or tensor.is_neg():
        return False
    try:
        end = (tensor.storage_offset() + tensor.numel()) * tensor.element_size()
        return bool(_storage(tensor).nbytes() >= end)  # FSDP frees storages for a while
    except (RuntimeError, NotImplementedError):  # a wrapper, as of torch.func, has no storage
        return False


def can_read(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether `statistics` can read them."""
    return _LIBRARY is not None and all(
        tensor.dtype in _TYPES and _lies_in_memory(tensor) for tensor in tensors
    )


def can_digest(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether `digest` can read them."""
    return _LIBRARY is not None and all(
        _lies_in_memory(tensor) and not tensor.is_conj() for tensor in tensors
    )


def _call(name: str, *args: object) -> None:
    if getattr(_LIBRARY, name)(*args):
        raise RuntimeError(f"{name}: this processor lacks what TRAINWRECK_CPU names")


def _views(words: list[int]) -> tuple[object, ctypes.c_void_p, ctypes.c_int64]:
    """What holds TensorViews of (pointer, count, type), where they are, and their number."""
    held = array("q", words)
    return held, ctypes.c_void_p(held.buffer_info()[0]), ctypes.c_int64(len(words) // 3)


def statistics(tensors: Sequence[torch.Tensor]) -> list[Statistics]:
    """Of each of the tensors, which `can_read` takes."""
    words = [w for x in tensors for w in (x.data_ptr(), x.numel(), _TYPES[x.dtype])]
    _held, views, number = _views(words)
    out = ctypes.create_string_buffer(_STATISTICS.size * len(tensors))
    _call("trainwreck_statistics", views, number, out)
    return [Statistics._make(one) for one in _STATISTICS.iter_unpack(out)]


def change(now: torch.Tensor, before: torch.Tensor) -> Change:
    """Of two tensors of fp32 with as many elements, which `can_read` takes."""
    out = ctypes.create_string_buffer(_CHANGE.size)
    pointers = (ctypes.c_void_p(one.data_ptr()) for one in (now, before))
    _call("trainwreck_change", *pointers, ctypes.c_int64(now.numel()), out)
    return Change._make(_CHANGE.unpack(out))


def digest(tensors: Sequence[torch.Tensor]) -> int:
    """64 bits of the bytes of the tensors, in order, which `can_digest` takes."""
    words = [w for x in tensors for w in (x.data_ptr(), x.numel() * x.element_size(), _BYTES)]
    _held, views, number = _views(words)
    out = ctypes.c_uint64()
    _call("trainwreck_digest", views, number, ctypes.byref(out))
    return out.value
