"""Faults that act inside of a training process, at exact steps (docs/guide/targets.md lists them).

Each changes what torch hands on at one place: a gradient before the update, a rate, a batch, an
entry of a checkpoint, a collective. It says what it changed, as it was before and after.
"""

from __future__ import annotations

import fnmatch
import os
import signal
import struct
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Callable

import torch

from trainwreck import tensors
from trainwreck.trace import Fault, rank

if TYPE_CHECKING:
    from trainwreck.hooks import Hooks


class Injected(RuntimeError):
    """An exception that a fault throws on purpose."""


class Faults:
    """The faults of the plan that act in this process."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._done: set[str] = set()  # what acts once, at the first step of its trigger
        self._by_name: dict[str, list[Fault]] = {}
        for fault in hooks.plan.faults:
            self._by_name.setdefault(fault.name, []).append(fault)

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def due(self, name: str) -> Iterator[Fault]:
        """The faults of this name whose trigger holds in the step in progress."""
        for fault in self._by_name.get(name, []):
            if fault.acts(self._hooks.step, rank()):
                yield fault

    def fired(self, fault: Fault, before: Any, after: Any, **fields: Any) -> None:
        """Tells the harness what a fault has changed."""
        self._hooks.trace.event(
            "fired",
            self._hooks.step,
            id=fault.id,
            fault=fault.name,
            before=before,
            after=after,
            **fields,
        )

    def install(self) -> None:
        """Wraps what torch has no hooks for, where a fault of the plan needs it."""
        if self._has("data."):
            self._wrap_loader()
        if self._has("collective."):
            self._wrap_all_reduce()
        if self._by_name.get("optimizer.keep_gradients"):
            self._wrap_zero_grad()

    def _has(self, site: str) -> bool:
        return any(name.startswith(site) for name in self._by_name)

    def after_backward(self, parameters: list[torch.Tensor]) -> None:
        """Acts on the gradients of a step's first backward pass, before the program sees them."""
        for fault in self._once("optimizer.scale_gradients"):
            before = float(tensors.norm(_gradients(parameters)))
            torch._foreach_mul_(_gradients(parameters), float(fault.with_["factor"]))
            self.fired(fault, before, float(tensors.norm(_gradients(parameters))))
        for fault in self._once("optimizer.nan_gradient"):
            gradient = _gradients(parameters)[0].view(-1)
            before = float(gradient[0])
            gradient[0] = float("nan")
            self.fired(fault, before, float(gradient[0]))

    def _once(self, name: str) -> Iterator[Fault]:
        """The faults that are due, once in a step."""
        for fault in self.due(name):
            if f"{fault.id} {self._hooks.step}" not in self._done:
                self._done.add(f"{fault.id} {self._hooks.step}")
                yield fault

    def before_update(self) -> None:
        """Acts where the gradients of a step are there, and nothing has been updated."""
        for fault in self.due("process.crash_inside"):
            self._crash(fault)
        for fault in self.due("optimizer.scale_rate"):
            self._scale_rate(fault)
        for fault in self.due("model.bit_flip"):
            self._flip_bit(fault)
        for fault in self.due("model.freeze_parameters"):
            self._freeze(fault)
        for fault in self.due("optimizer.drop_state"):
            self._drop_state(fault)

    def _crash(self, fault: Fault) -> None:
        how = fault.with_["how"]
        after = {"sigkill": "killed", "exit": "exited", "exception": "thrown"}[how]
        self.fired(fault, "running", after, how=how)
        if how == "sigkill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "exit":
            os._exit(int(fault.with_["code"]))
        raise Injected(f"injected exception at step {self._hooks.step} on rank {rank()}")

    def _scale_rate(self, fault: Fault) -> None:
        """For this update alone; a schedule sets the rate again, and so do we."""
        assert self._hooks.optimizer is not None
        groups = self._hooks.optimizer.param_groups
        before = [float(group["lr"]) for group in groups]
        for group in groups:
            group["lr"] = group["lr"] * float(fault.with_["factor"])
        self._hooks.put(lr=float(groups[0]["lr"]))
        self.fired(fault, before[0], float(groups[0]["lr"]))

        def restore() -> None:
            for group, rate in zip(groups, before):
                group["lr"] = rate

        self._hooks.after_update.append(restore)

    def _flip_bit(self, fault: Fault) -> None:
        name, parameter = next(
            (name, p)
            for name, p in self._named()
            if fnmatch.fnmatchcase(name, fault.with_["parameter"])
        )
        flat = parameter.detach().view(-1)
        index = int(fault.with_["element"]) % flat.numel()
        before = float(flat[index])
        bits = struct.unpack("<I", struct.pack("<f", before))[0] ^ (1 << int(fault.with_["bit"]))
        flat[index] = struct.unpack("<f", struct.pack("<I", bits))[0]
        self.fired(fault, before, float(flat[index]), parameter=name, element=index)

    def _named(self) -> list[tuple[str, torch.Tensor]]:
        """The optimizer's parameters: by their names in the model where it is known, else by their
        number."""
        names = self._hooks.names
        return [(names.get(id(p), str(i)), p) for i, p in enumerate(self._hooks.parameters())]

    def _freeze(self, fault: Fault) -> None:
        """Once: from the first step of its trigger on."""
        if fault.id in self._done:
            return
        self._done.add(fault.id)
        for name, parameter in self._named():
            if fnmatch.fnmatchcase(name, fault.with_["parameters"]):
                before = parameter.requires_grad
                parameter.requires_grad_(False)
                parameter.grad = None
                self.fired(fault, before, parameter.requires_grad, parameter=name)

    def _drop_state(self, fault: Fault) -> None:
        assert self._hooks.optimizer is not None
        state = self._hooks.optimizer.state
        before = len(state)
        state.clear()
        self.fired(fault, before, len(state), what="entries of the optimizer's state")

    # Checkpoints.

    def on_save(self, obj: Any) -> None:
        """Before an object is saved."""
        for fault in self.due("checkpoint.drop_entries"):
            for holder, key in list(_entries(obj)):
                if any(fnmatch.fnmatchcase(str(key), glob) for glob in fault.with_["entries"]):
                    before = len(holder)
                    del holder[key]
                    self.fired(fault, before, len(holder), entry=str(key))

    def on_optimizer_loaded(self, optimizer: torch.optim.Optimizer) -> None:
        """After a state has been loaded into an optimizer."""
        for fault in self.due("checkpoint.lose_optimizer"):
            before = len(optimizer.state)
            optimizer.state.clear()
            self.fired(fault, before, len(optimizer.state))

    # Where torch has no hook.

    def _wrap_loader(self) -> None:
        from torch.utils.data import dataloader

        batches: Any = dataloader._BaseDataLoaderIter
        following = batches.__next__

        def call(iterator: Any) -> Any:
            for fault in self._once("data.early_end"):
                self.fired(fault, "has batches", "ends")
                raise StopIteration
            batch = following(iterator)
            self._hooks.guard("data", self._change_batch, batch)
            return batch

        batches.__next__ = call

    def _change_batch(self, batch: Any) -> None:
        for fault in self.due("data.slow_loader"):
            begin = time.monotonic()
            time.sleep(float(fault.with_["seconds"]))
            self.fired(fault, 0.0, time.monotonic() - begin)
        for fault in self._once("data.corrupt_batch"):
            for tensor in tensors.all_in(batch):
                if tensor.is_floating_point() and tensor.numel():
                    before = float(tensor.view(-1)[0])
                    tensor.view(-1)[0] = float(fault.with_["value"])
                    self.fired(fault, before, float(tensor.view(-1)[0]))
                    break
        for fault in self.due("data.shuffle_labels"):
            self._shuffle_labels(fault, batch)

    def _shuffle_labels(self, fault: Fault, batch: Any) -> None:
        """Gives each sample of the batch the label of the next one."""
        if isinstance(batch, dict):
            labels = batch.get("labels", batch.get("label"))
        else:
            labels = batch[-1] if isinstance(batch, (list, tuple)) and len(batch) > 1 else None
        if not isinstance(labels, torch.Tensor) or labels.dim() == 0 or len(labels) < 2:
            return
        before = tensors.digest([labels])
        labels.copy_(labels.roll(1, 0))
        if tensors.digest([labels]) != before:
            self.fired(fault, before, tensors.digest([labels]))

    def _wrap_all_reduce(self) -> None:
        import torch.distributed as dist

        all_reduce: Callable[..., Any] = dist.all_reduce

        def call(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            for fault in self.due("collective.skip"):
                self.fired(fault, "all_reduce", "left out")
                return None
            for fault in self.due("collective.delay"):
                begin = time.monotonic()
                time.sleep(float(fault.with_["seconds"]))
                self.fired(fault, 0.0, time.monotonic() - begin)
            result = all_reduce(tensor, *args, **kwargs)
            for fault in self.due("collective.corrupt_result"):
                before = float(tensor.view(-1)[0])
                tensor.view(-1)[0] = float(fault.with_["value"])
                self.fired(fault, before, float(tensor.view(-1)[0]))
            return result

        dist.all_reduce = call

    def _wrap_zero_grad(self) -> None:
        optimizers: Any = torch.optim.Optimizer
        zero_grad = optimizers.zero_grad

        def call(optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
            for fault in self.due("optimizer.keep_gradients"):
                kept = [p for group in optimizer.param_groups for p in group["params"]]
                if any(p.grad is not None for p in kept):
                    self.fired(fault, "clears gradients", "keeps them")
                return
            zero_grad(optimizer, *args, **kwargs)

        optimizers.zero_grad = call


def _gradients(parameters: list[torch.Tensor]) -> list[torch.Tensor]:
    return [p.grad for p in parameters if p.grad is not None]


def _entries(obj: Any) -> Iterator[tuple[dict[Any, Any], Any]]:
    """The maps and keys of a checkpoint, from outside to inside."""
    if isinstance(obj, dict):
        for key, value in list(obj.items()):
            yield obj, key
            yield from _entries(value)
