"""Faults of what ranks do together: `torch.distributed.all_reduce`, and the gradients of DDP."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from trainwreck.faults import Faults


def wrap(faults: Faults) -> None:
    """Wraps `all_reduce`, and DDP's forward pass, where it decides whether to reduce gradients."""
    _wrap_all_reduce(faults)
    if faults.has("collective.skip_gradients"):
        _wrap_forward(faults)


def _wrap_all_reduce(faults: Faults) -> None:
    all_reduce: Any = dist.all_reduce

    @functools.wraps(all_reduce)
    def call(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        for fault in faults.due("collective.skip"):
            faults.fired(fault, "all_reduce", "left out")
            return None
        faults.wait("collective.delay")
        for fault in faults.due("collective.mismatch"):
            longer = torch.cat([tensor.reshape(-1)] * int(fault.with_["times"]))
            faults.fired(fault, tensor.numel(), longer.numel(), what="elements")
            return all_reduce(longer, *args, **kwargs)
        result = all_reduce(tensor, *args, **kwargs)
        for fault in faults.due("collective.corrupt_result"):
            if result is not None:  # a work that goes on
                result.wait()
            before = float(tensor.view(-1)[0])
            tensor.view(-1)[0] = float(fault.with_["value"])
            faults.fired(fault, before, float(tensor.view(-1)[0]))
        return result

    dist.all_reduce = call


def _wrap_forward(faults: Faults) -> None:
    parallel: Any = torch.nn.parallel.DistributedDataParallel
    forward = parallel.forward

    @functools.wraps(forward)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        for fault in faults.due("collective.skip_gradients"):
            if self.require_backward_grad_sync and torch.is_grad_enabled():
                with self.no_sync():
                    faults.fired(fault, True, self.require_backward_grad_sync)
                    return forward(self, *args, **kwargs)
        return forward(self, *args, **kwargs)

    parallel.forward = call
