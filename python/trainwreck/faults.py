"""Faults that act inside of a training process, at exact steps (docs/guide/targets.md lists them).

Each changes what torch hands on at one place: a gradient before the update, a rate;
data_faults.py has those of batches, checkpoint_faults.py those of checkpoints, generator_faults.py
those of random numbers, and rank_faults.py those of collectives. It says what it changed, as it was
before and after.

Their own errors are not the program's: all that a fault does runs in a hook, by `guard`. Where it
is to raise, or to leave a call of the program out, the guarded call only decides that, and tells
the harness; what called it acts then.
"""

from __future__ import annotations

import fnmatch
import functools
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
from trainwreck.checkpoint_faults import CheckpointFaults
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
        self.checkpoints = CheckpointFaults(self)
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
                self._leave_out(holder, "zero_grad", self._keeps_gradients)
        if self.has("schedule.freeze"):
            for kind in compat.scheduler_classes("step"):
                self._leave_out(kind, "step", self._freezes_schedule)
        if self.has("checkpoint.lose_schedule"):
            for kind in compat.scheduler_classes("load_state_dict"):
                self._leave_out(kind, "load_state_dict", self.checkpoints.loses_schedule)
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
        code = int(fault.with_["code"])
        self.fired(fault, "running", after, how=how)
        if how == "sigkill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "exit":
            os._exit(code)
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
        size, device = int(fault.with_["mebibytes"]) * 2**20, self._device()
        try:
            self._leaked.append(torch.ones(size, dtype=torch.uint8, device=device))
        except RuntimeError as error:
            if "memory" not in str(error):
                raise
            raise Injected(str(error)) from error  # as a leak of the program's own would
        self.fired(fault, before, before + self._leaked[-1].numel())

    def _scale_rate(self, fault: Fault) -> None:
        """For this update alone; a schedule sets the rate again, and so do we."""
        groups = self._hooks.optimizers.groups()
        before = [float(group["lr"]) for group in groups]

        def restore() -> None:
            for group, rate in zip(groups, before):
                group["lr"] = rate

        self._hooks.after_update.append(restore)
        for group in groups:
            group["lr"] = group["lr"] * float(fault.with_["factor"])
        self._hooks.put(lr=float(groups[0]["lr"]))
        self.fired(fault, before[0], float(groups[0]["lr"]))

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

        def detached(module: torch.nn.Module, output: Any) -> Any:
            if not module.training or fault not in self.due(fault.name):
                return None
            if not any(tensor.requires_grad for tensor in tensors.all_in(output)):
                return None
            result = tensors.mapped(output, torch.Tensor.detach)
            if self._is_new(fault):
                self.fired(fault, "attached", "detached", module=name)
            return result

        chosen.register_forward_hook(lambda one, _args, output: self.guard(detached, one, output))

    def _set_eval_mode(self, fault: Fault, model: torch.nn.Module) -> None:
        def call(module: torch.nn.Module) -> None:
            if module.training and torch.is_grad_enabled() and fault in self.due(fault.name):
                self.fired(fault, "training", "evaluation")
                module.eval()

        model.register_forward_pre_hook(lambda one, _args: self.guard(call, one))

    # Where torch has no hook.

    def _leave_out(self, holder: Any, name: str, decides: Callable[..., bool]) -> None:
        """Wraps a function, to leave out the calls of it that `decides` says, which is given the
        same arguments."""
        function = getattr(holder, name)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.guard(lambda: decides(*args, **kwargs)):
                return None
            return function(*args, **kwargs)

        setattr(holder, name, call)

    def _freezes_schedule(self, schedule: Any, *_args: Any, **_kwargs: Any) -> bool:
        if getattr(schedule, "_step_count", 1) == 0:  # it makes a step when it is made
            return False
        for fault in self.due("schedule.freeze"):
            if self._is_new(fault):
                self.fired(fault, schedule.last_epoch + 1, schedule.last_epoch)
            return True
        return False

    def _keeps_gradients(self, *_args: Any, **_kwargs: Any) -> bool:
        for fault in self.due("optimizer.keep_gradients"):
            if any(p.grad is not None for p in self._hooks.optimizers.all_parameters()):
                self.fired(fault, "clears gradients", "keeps them")
            return True
        return False


def _gradients(parameters: list[torch.Tensor]) -> list[torch.Tensor]:
    """What this rank holds of them: the faults may be of one rank, and make no collectives."""
    parts = [tensors.local(p.grad) for p in parameters if p.grad is not None]
    return [part for part in parts if part.numel() > 0]
