"""Faults that act inside of a training process, at exact steps (docs/guide/targets.md lists them).

Each changes what torch hands on at one place: a gradient before the update, a rate, an entry of a
checkpoint; data_faults.py has those of batches, generator_faults.py those of random numbers, and
rank_faults.py those of collectives. It says what it changed, as it was before and after.
"""

from __future__ import annotations

import contextlib
import copy
import errno
import fnmatch
import functools
import glob
import io
import math
import os
import resource
import signal
import struct
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Callable

import torch

from trainwreck import compat, data_faults, generator_faults, modules, rank_faults, tensors
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
        self._leaked: list[torch.Tensor] = []
        # By fault and the step that gets it back: tensors of the optimizer's state, and copies.
        self._old_states: dict[tuple[str, int], list[tuple[torch.Tensor, torch.Tensor]]] = {}
        self._saves: list[int] = []  # the step of each torch.save
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

    def wait(self, name: str) -> None:
        """Sleeps for as long as the faults of this name say that are due."""
        for fault in self.due(name):
            begin = time.monotonic()
            time.sleep(float(fault.with_["seconds"]))
            self.fired(fault, 0.0, time.monotonic() - begin)

    def install(self) -> None:
        """Wraps what torch has no hooks for, where a fault of the plan needs it."""
        if self.has("data."):
            data_faults.wrap(self)
        if self.has("collective."):
            rank_faults.wrap(self)
        if self.has("optimizer.keep_gradients"):
            for holder in (torch.optim.Optimizer, torch.nn.Module):
                self._wrap_zero_grad(holder)
        if self.has("schedule.freeze"):
            for kind in compat.scheduler_classes("step"):
                self._wrap_schedule_step(kind)
        if self.has("checkpoint.lose_schedule"):
            for kind in compat.scheduler_classes("load_state_dict"):
                self._wrap_schedule_load(kind)
        if self.has("checkpoint.lose_generator"):
            generator_faults.wrap(self)

    @property
    def step(self) -> int:
        """The step in progress."""
        return self._hooks.step

    @property
    def has_stepped(self) -> bool:
        """Whether this process has made a step."""
        return self._hooks.has_stepped

    def has(self, prefix: str) -> bool:
        """Whether the plan has a fault whose name begins so."""
        return any(name.startswith(prefix) for name in self._by_name)

    def guard(self, call: Callable[..., Any], *args: Any) -> Any:
        """The result of a call of ours, whose errors are not the program's."""
        return self._hooks.guard("faults", call, *args)

    def after_backward(self, parameters: list[torch.Tensor]) -> None:
        """Acts on the gradients of a step's first backward pass, before the program sees them."""
        for fault in self.once("optimizer.scale_gradients"):
            before = tensors.norm(_gradients(parameters))
            torch._foreach_mul_(_gradients(parameters), float(fault.with_["factor"]))
            self.fired(fault, before, tensors.norm(_gradients(parameters)))
        for fault in self.once("optimizer.nan_gradient"):
            gradient = _gradients(parameters)[0].view(-1)
            before = float(gradient[0])
            gradient[0] = float("nan")
            self.fired(fault, before, float(gradient[0]))

    def once(self, name: str) -> Iterator[Fault]:
        """The faults that are due, once in a step."""
        for fault in self.due(name):
            if self._is_new(fault):
                yield fault

    def _is_new(self, fault: Fault) -> bool:
        """Whether it has not acted in the step in progress."""
        acts = f"{fault.id} {self._hooks.step}"
        is_new = acts not in self._done
        self._done.add(acts)
        return is_new

    def begin_step(self) -> None:
        """Acts where the program calls `Optimizer.step`."""
        for fault in self.due("optimizer.miss_parameters"):
            self._miss(fault)
        self.wait("process.slow_step")

    def before_update(self) -> None:
        """Acts where the gradients of a step are there, and nothing has been updated."""
        for fault in self.due("process.limit_memory"):
            self._limit_memory(fault)
        for fault in self.due("process.leak_memory"):
            self._leak(fault)
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
        for fault in self.due("optimizer.scale_state"):
            self._scale_state(fault)
        for fault in self._by_name.get("optimizer.restore_state", []):
            self._keep_state(fault)
        for fault in self.due("optimizer.restore_state"):
            self._restore_state(fault)
        for fault in self.due("optimizer.clear_gradients"):
            self._clear_gradients(fault)

    def _crash(self, fault: Fault) -> None:
        how = fault.with_["how"]
        after = {"sigkill": "killed", "exit": "exited", "exception": "thrown"}[how]
        self.fired(fault, "running", after, how=how)
        if how == "sigkill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "exit":
            os._exit(int(fault.with_["code"]))
        raise Injected(f"injected exception at step {self._hooks.step} on rank {rank()}")

    def _device(self) -> torch.device:
        """That of the first parameter."""
        return next((p.device for p in self._hooks.parameters()), torch.device("cpu"))

    def _limit_memory(self, fault: Fault) -> None:
        """Once: so much more than the process has now, on the device that it trains on."""
        if fault.id in self._done:
            return
        self._done.add(fault.id)
        device = self._device()
        if device.type == "cuda":
            size = torch.cuda.memory_reserved(device) + int(fault.with_["mebibytes"]) * 2**20
            properties: Any = torch.cuda.get_device_properties(device)
            whole = properties.total_memory
            torch.cuda.set_per_process_memory_fraction(min(1.0, size / whole), device)
            self.fired(fault, whole, min(size, whole), device=str(device))
            return
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[0])
        size = pages * resource.getpagesize() + int(fault.with_["mebibytes"]) * 2**20
        before = resource.getrlimit(resource.RLIMIT_AS)[0]
        resource.setrlimit(resource.RLIMIT_AS, (size, resource.getrlimit(resource.RLIMIT_AS)[1]))
        after = resource.getrlimit(resource.RLIMIT_AS)[0]
        self.fired(fault, "none" if before == resource.RLIM_INFINITY else before, after)

    def _leak(self, fault: Fault) -> None:
        before = sum(tensor.numel() for tensor in self._leaked)
        size = int(fault.with_["mebibytes"]) * 2**20
        try:
            self._leaked.append(torch.ones(size, dtype=torch.uint8, device=self._device()))
        except RuntimeError as error:  # as it would be the program's, with a leak of its own
            raise Injected(str(error)) from error
        self.fired(fault, before, before + self._leaked[-1].numel())

    def _scale_rate(self, fault: Fault) -> None:
        """For this update alone; a schedule sets the rate again, and so do we."""
        groups = self._hooks.optimizers.groups()
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
            (name, part)
            for name, p in self._named()
            if fnmatch.fnmatchcase(name, fault.with_["parameter"])
            and (part := tensors.local(p.detach())).numel() > 0
        )
        flat = parameter.view(-1)
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

    def _chosen(self, fault: Fault) -> list[tuple[str, torch.Tensor]]:
        """Of the parameters that it names the first ones, as many as its share says."""
        named = self._named()
        match = [one for one in named if fnmatch.fnmatchcase(one[0], fault.with_["parameters"])]
        return match[: math.ceil(float(fault.with_["share"]) * len(match))]

    def _freeze(self, fault: Fault) -> None:
        """Once: from the first step of its trigger on."""
        if fault.id in self._done:
            return
        self._done.add(fault.id)
        for name, parameter in self._chosen(fault):
            before = parameter.requires_grad
            parameter.requires_grad_(False)
            parameter.grad = None
            self.fired(fault, before, parameter.requires_grad, parameter=name)

    def _miss(self, fault: Fault) -> None:
        """Once: from the first step of its trigger on."""
        if fault.id in self._done:
            return
        self._done.add(fault.id)
        chosen = self._chosen(fault)
        missed = {id(parameter) for _, parameter in chosen}
        before = len(self._hooks.parameters())
        for group in self._hooks.optimizers.groups():
            group["params"] = [p for p in group["params"] if id(p) not in missed]
        for state in self._states():
            for _, parameter in chosen:
                state.pop(parameter, None)
        self._hooks.forget_parameters()
        self.fired(
            fault, before, len(self._hooks.parameters()), parameters=[name for name, _ in chosen]
        )

    def _clear_gradients(self, fault: Fault) -> None:
        parameters = self._hooks.parameters()
        before = tensors.norm(_gradients(parameters))
        for parameter in parameters:
            parameter.grad = None
        self.fired(fault, before, tensors.norm(_gradients(parameters)))

    def _states(self) -> list[Any]:
        """Those of all optimizers that act, each once."""
        acting = self._hooks.optimizers.acting()
        return list({id(one.state): one.state for one in acting}.values())

    def _drop_state(self, fault: Fault) -> None:
        states = self._states()
        before = sum(map(len, states))
        for state in states:
            state.clear()
        self.fired(fault, before, sum(map(len, states)), what="entries of the optimizer's state")

    def _tensors_of_state(self, entry: str = "*") -> list[torch.Tensor]:
        """Those whose name in the state matches a glob."""
        return [
            value
            for states in self._states()
            for state in states.values()
            for name, value in state.items()
            if fnmatch.fnmatchcase(name, entry) and isinstance(value, torch.Tensor)
        ]

    def _keep_state(self, fault: Fault) -> None:
        """Keeps a copy of the optimizer's state, if a later step is to get it back."""
        due = self._hooks.step + int(fault.with_["age"])
        if fault.acts(due, rank()):
            self._old_states[fault.id, due] = [(x, x.clone()) for x in self._tensors_of_state()]

    def _restore_state(self, fault: Fault) -> None:
        old = self._old_states.pop((fault.id, self._hooks.step), [])
        if not old:
            return
        before = tensors.norm(self._tensors_of_state())
        for tensor, kept in old:
            tensor.copy_(kept)
        self.fired(fault, before, tensors.norm(self._tensors_of_state()))

    def _scale_state(self, fault: Fault) -> None:
        chosen = self._tensors_of_state(fault.with_["entry"])
        if not chosen:
            return
        before = tensors.norm(chosen)
        torch._foreach_mul_(chosen, float(fault.with_["factor"]))
        self.fired(fault, before, tensors.norm(chosen))

    # The model.

    def on_model(self, module: torch.nn.Module) -> None:
        """Where the program's model has been found."""
        for fault in self._by_name.get("model.detach_output", []):
            self._detach(fault, module)
        for fault in self._by_name.get("model.eval_mode", []):
            self._set_eval_mode(fault, module)

    def _detach(self, fault: Fault, model: torch.nn.Module) -> None:
        found = modules.find_by_share(model, fault.with_["module"], float(fault.with_["share"]))
        if found is None:
            return
        name, chosen = found

        def call(module: torch.nn.Module, _args: Any, output: Any) -> Any:
            if not module.training or fault not in self.due(fault.name):
                return None
            if not any(tensor.requires_grad for tensor in tensors.all_in(output)):
                return None
            if self._is_new(fault):
                self.fired(fault, "attached", "detached", module=name)
            return tensors.mapped(output, torch.Tensor.detach)

        chosen.register_forward_hook(call)

    def _set_eval_mode(self, fault: Fault, model: torch.nn.Module) -> None:
        def call(module: torch.nn.Module, _args: Any) -> None:
            if module.training and torch.is_grad_enabled() and fault in self.due(fault.name):
                module.eval()
                self.fired(fault, "training", "evaluation")

        model.register_forward_pre_hook(call)

    # Checkpoints.

    def on_save(self, obj: Any, file: Any, save: Callable[..., None]) -> Any:
        """Before an object is saved; returns what is to be saved."""
        obj = self.without_entries(obj)
        for fault in self.breaking_saves():
            self._break_save(fault, obj, file, save)
        return obj

    def without_entries(self, obj: Any) -> Any:
        """The same maps without what the faults drop. Those of the program are often the ones that
        it trains with, and stay as they are."""
        for fault in self.due("checkpoint.drop_entries"):
            kept = self.guard(self._without, obj, fault)
            obj = obj if kept is None else kept
        return obj

    def _without(self, obj: Any, fault: Fault) -> Any:
        if isinstance(obj, list):  # Lightning has one of the states of its optimizers
            return [self._without(one, fault) for one in obj]
        if not isinstance(obj, dict):
            return obj
        kept = copy.copy(obj)
        for key in obj:
            if any(fnmatch.fnmatchcase(str(key), one) for one in fault.with_["entries"]):
                before = len(kept)
                del kept[key]
                self.fired(fault, before, len(kept), entry=str(key))
            else:
                kept[key] = self._without(obj[key], fault)
        return kept

    def breaking_saves(self) -> list[Fault]:
        """The faults that let the save which begins now break."""
        step = self._hooks.step
        broken = [
            fault
            for fault in self.due("checkpoint.break_save")
            if self._saves.count(step) == int(fault.with_["files"])
        ]
        if self.has("checkpoint.break_save"):
            self._saves.append(step)
        return broken

    def _break_save(self, fault: Fault, obj: Any, file: Any, save: Callable[..., None]) -> None:
        """Writes half of the file, and ends there."""
        buffer = io.BytesIO()
        save(obj, buffer)
        half = buffer.getvalue()[: buffer.tell() // 2]
        if isinstance(file, (str, os.PathLike)):
            with open(file, "wb") as opened:
                opened.write(half)
        else:
            file.write(half)
            file.flush()
        self._end_save(fault, buffer.tell(), len(half))

    def break_folder(self, fault: Fault, folder: str) -> None:
        """Leaves of a checkpoint of torch.distributed, which has just been written, what a process
        leaves that ends within it: half of this rank's last file, and no metadata, which come
        last."""
        files = sorted(glob.glob(os.path.join(glob.escape(folder), f"__{rank()}_*")))
        if not files:  # others have written all of it
            return
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(folder, ".metadata"))
        whole = os.path.getsize(files[-1])
        os.truncate(files[-1], whole // 2)
        self._end_save(fault, whole, whole // 2)

    def _end_save(self, fault: Fault, whole: int, written: int) -> None:
        self.fired(fault, whole, written, what="bytes of a file")
        if fault.with_["how"] == "sigkill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def on_optimizer_loaded(self, optimizer: torch.optim.Optimizer) -> None:
        """After a state has been loaded into an optimizer."""
        for fault in self.due("checkpoint.lose_optimizer"):
            before = len(optimizer.state)
            optimizer.state.clear()
            self.fired(fault, before, len(optimizer.state))

    # Where torch has no hook.

    def _wrap_schedule_load(self, kind: Any) -> None:
        load = kind.load_state_dict

        @functools.wraps(load)
        def call(schedule: Any, state: Any, *args: Any, **kwargs: Any) -> None:
            for fault in self.due("checkpoint.lose_schedule"):
                self.fired(fault, state.get("last_epoch"), schedule.last_epoch, what="steps done")
                return
            load(schedule, state, *args, **kwargs)

        kind.load_state_dict = call

    def _wrap_schedule_step(self, kind: Any) -> None:
        step = kind.step

        @functools.wraps(step)
        def call(schedule: Any, *args: Any, **kwargs: Any) -> None:
            # A schedule makes a step when it is made.
            if getattr(schedule, "_step_count", 1) > 0:
                for fault in self.due("schedule.freeze"):
                    if self._is_new(fault):
                        self.fired(fault, schedule.last_epoch + 1, schedule.last_epoch)
                    return
            step(schedule, *args, **kwargs)

        kind.step = call

    def _wrap_zero_grad(self, holder: Any) -> None:
        zero_grad = holder.zero_grad

        @functools.wraps(zero_grad)
        def call(self_: Any, *args: Any, **kwargs: Any) -> None:
            for fault in self.due("optimizer.keep_gradients"):
                if any(p.grad is not None for p in self._hooks.optimizers.all_parameters()):
                    self.fired(fault, "clears gradients", "keeps them")
                return
            zero_grad(self_, *args, **kwargs)

        holder.zero_grad = call


def _gradients(parameters: list[torch.Tensor]) -> list[torch.Tensor]:
    """What this rank holds of them: the faults may be of one rank, and make no collectives."""
    parts = [tensors.local(p.grad) for p in parameters if p.grad is not None]
    return [part for part in parts if part.numel() > 0]
