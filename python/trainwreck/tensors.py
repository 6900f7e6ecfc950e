"""Numbers about lists of tensors, computed without a copy where torch can."""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, Callable

import torch

from trainwreck import kernels


def is_sharded(tensor: torch.Tensor) -> bool:
    """Whether it is one rank's part of a larger one, whose norm is not its own: a DTensor of
    several ranks (as those of FSDP2 and of tensor parallelism), or a parameter of FSDP1."""
    if type(tensor) is torch.Tensor:
        return False
    mesh: Any = getattr(tensor, "device_mesh", None)
    return hasattr(tensor, "_fsdp_flattened") or (mesh is not None and mesh.size() > 1)


def local(tensor: torch.Tensor) -> torch.Tensor:
    """This rank's part of a tensor that is spread over ranks; else the tensor."""
    part: Any = tensor
    own: torch.Tensor = part.to_local() if hasattr(part, "to_local") else tensor
    return own


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """Without its gradient; and of a DTensor of one rank, what that rank holds: all of it."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    return tensor if is_sharded(tensor) else local(tensor)


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """Its elements in fp64, where the device has it."""
    tensor = plain(tensor)
    return tensor.float() if tensor.device.type == "mps" else tensor.double()


def statistics(tensor: torch.Tensor) -> kernels.Statistics | None:
    """In one read of it, where our kernels can read it."""
    tensor = plain(tensor)
    return kernels.statistics([tensor])[0] if kernels.can_read([tensor]) else None


def largest(tensor: torch.Tensor | None) -> float:
    """The largest magnitude of its elements; of none 0."""
    if tensor is None or not local(tensor).numel():
        return 0.0
    read = statistics(local(tensor))
    if read is not None and not read.nonfinite:
        return read.max_abs
    return float(local(tensor).detach().abs().max())


def rms(tensor: torch.Tensor) -> float:
    """The root of the mean square of its elements."""
    read = statistics(tensor)
    if read is not None and read.elements:
        return math.sqrt(read.all_squares / read.elements)
    return math.sqrt(float(wide(tensor).square().mean()))


def full(value: Any) -> Any:
    """A number that may be spread over ranks, as one."""
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def norm(tensors: Sequence[torch.Tensor]) -> float:
    """The 2-norm of all elements of all tensors, in fp32 or wider."""
    if not tensors:
        return 0.0
    parts = list(map(plain, tensors))
    if kernels.can_read(parts):
        return math.sqrt(math.fsum(read.all_squares for read in kernels.statistics(parts)))
    wide = [part if part.element_size() >= 4 else part.float() for part in parts]
    dense = [part.coalesce().values() if part.is_sparse else part for part in wide]
    norms = torch._foreach_norm(dense)
    return float(torch.linalg.vector_norm(torch.stack([one.to(norms[0].device) for one in norms])))


def nonfinite(tensors: Sequence[torch.Tensor]) -> int:
    """How many elements are NaN or infinite."""
    parts = list(map(plain, tensors))
    if kernels.can_read(parts):
        return sum(read.nonfinite for read in kernels.statistics(parts))
    return sum(int((~torch.isfinite(part)).sum()) for part in parts)


def count_changed(tensor: torch.Tensor, before: torch.Tensor) -> int:
    """How many elements have other bits than before. Of floats, -0 and 0 differ."""
    kinds = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    kind = kinds[tensor.element_size()]
    now = plain(tensor).contiguous()
    before = before.contiguous()
    if tensor.dtype is torch.float32 and kernels.can_read([now, before]):
        return kernels.change(now, before).changed
    return int((now.view(kind) != before.view(kind)).sum())


def digest(tensors: Sequence[torch.Tensor]) -> int:
    """52 bits of a hash of the tensors' bytes, in order."""
    parts = [plain(tensor).cpu().contiguous() for tensor in tensors]
    if kernels.can_digest(parts):
        return kernels.digest(parts) >> 12
    state = hashlib.blake2b(digest_size=8)
    for part in parts:
        state.update(part.reshape(-1).view(torch.uint8).numpy().tobytes())
    return int.from_bytes(state.digest(), "little") >> 12


def all_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of a batch: of maps, lists and tuples, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from all_in(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from all_in(part)


def mapped(value: Any, function: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same maps, lists and tuples with other tensors."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, dict):
        result = copy.copy(value)
        result.update((key, mapped(part, function)) for key, part in value.items())
        return result
    if isinstance(value, (list, tuple)):
        parts = [mapped(part, function) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value
