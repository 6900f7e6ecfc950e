"""Sets the hooks in this process: those of torch, and around functions that have none."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import Any, Callable, TypeVar

import torch
from torch.optim import Optimizer

from trainwreck import checkpoints, compat, program, promises
from trainwreck.hooks import Hooks
from trainwreck.trace import Plan, Trace

Call = TypeVar("Call", bound=Callable[..., Any])
# Of what is recorded on demand, for a person who wants to see what there is.
CHEAP = ("grad_norm", "applied_grad_norm", "nonfinite_grads", "memory_bytes")

_hooks: Hooks | None = None


def install(folder: str | None = None, record: Iterable[str] = ()) -> Hooks:
    """Sets the hooks in this process, once. The harness says where the trace goes, else `folder`
    does; `record` adds to the signals that are recorded on demand."""
    global _hooks
    if _hooks is None:
        compat.check()
        folder = os.environ.get("TRAINWRECK_TRACE", folder)
        if folder is None:
            raise ValueError("no harness runs this program: give a folder for its trace")
        os.makedirs(folder, exist_ok=True)
        without = os.environ.get("TRAINWRECK_ADAPTER_WITHOUT", "")
        plan = Plan.read()
        plan.record(record)
        if os.environ.get("TRAINWRECK_ADAPTER_TELL"):
            plan.record(CHEAP)
            program.watch_autocast()
        _hooks = Hooks(plan, Trace(folder), without.split(","))
        if os.environ.get("TRAINWRECK_ADAPTER_TELL"):
            promises.watch(_hooks)
        _set(_hooks)
    return _hooks


def watch(
    model: torch.nn.Module | None,
    optimizer: Optimizer | None,
    folder: str | None,
    record: Iterable[str] | None,
) -> None:
    """What `trainwreck.watch` does."""
    hooks = install(folder, CHEAP if record is None else record)
    if optimizer is not None:
        compat.hook_step_of(optimizer)
        hooks.follow(optimizer)
    if model is not None:
        hooks.on_model(model)


def _wrapped(function: Call, call: Callable[..., Any]) -> Call:
    return functools.wraps(function)(call)  # type: ignore[return-value]


def _set(hooks: Hooks) -> None:
    compat.on_optimizer_step(hooks.begin_step, lambda optimizer, *_args: hooks.end_step(optimizer))
    _wrap_backward(hooks)
    _wrap_clipping(hooks)
    _wrap_scaler(hooks)
    _wrap_optimizer(hooks)
    _find_model(hooks)
    hooks.modules.install()
    hooks.collectives.install()
    checkpoints.wrap(hooks)
    hooks.guard("faults", hooks.faults.install)
    hooks.loaders.install()


def _wrap_backward(hooks: Hooks) -> None:
    backward = torch.autograd.backward

    def call(tensors_: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> None:
        hooks._backward_depth += 1
        try:
            hooks.guard("loss", hooks.on_backward, tensors_, grad_tensors)
            backward(tensors_, grad_tensors, *args, **kwargs)
            if hooks._backward_depth == 1:
                hooks.collectives.after_backward()
                hooks.guard("gradients", hooks.after_backward)
                if hooks.modules.births:
                    hooks.guard("births", hooks.modules.births.after_backward)
        finally:
            hooks._backward_depth -= 1

    torch.autograd.backward = _wrapped(backward, call)


def _as_list(of: Any) -> list[torch.Tensor]:
    """What clipping takes: one tensor, or some."""
    return [of] if isinstance(of, torch.Tensor) else list(of)


def _wrap_clipping(hooks: Hooks) -> None:
    clip = torch.nn.utils.clip_grad_norm_

    def call(
        parameters: Any, max_norm: Any, norm_type: Any = 2.0, *args: Any, **kwargs: Any
    ) -> Any:
        parameters = _as_list(parameters)
        hooks.guard("clipping", hooks.read_gradients, parameters)
        norm = clip(parameters, max_norm, norm_type, *args, **kwargs)
        if float(norm_type) == 2.0:
            hooks.guard("clipping", hooks.on_clip, parameters, norm, norm, max_norm)
        return norm

    wrapped = _wrapped(clip, call)
    torch.nn.utils.clip_grad_norm_ = torch.nn.utils.clip_grad.clip_grad_norm_ = wrapped
    _wrap_parts_of_clipping(hooks)


def _wrap_parts_of_clipping(hooks: Hooks) -> None:
    """The two parts of it, for programs that do something in between: torch has them from 2.6 on.
    Itself it calls them by other names."""
    holder: Any = torch.nn.utils
    if not hasattr(holder, "get_total_norm"):
        return
    total_norm, clip = holder.get_total_norm, holder.clip_grads_with_norm_

    def call_total(of: Any, norm_type: Any = 2.0, *args: Any, **kwargs: Any) -> Any:
        of = _as_list(of)
        norm = total_norm(of, norm_type, *args, **kwargs)
        if float(norm_type) == 2.0:
            hooks.guard("clipping", hooks.on_total_norm, of, norm)
        return norm

    def call_clip(parameters: Any, max_norm: Any, by: Any, *args: Any, **kwargs: Any) -> None:
        parameters = _as_list(parameters)
        hooks.guard("clipping", hooks.read_gradients, parameters)
        norm = hooks.guard("clipping", hooks.norm_to_clip, parameters)
        hooks.guard("clipping", hooks.on_clip, parameters, norm, by, max_norm)
        clip(parameters, max_norm, by, *args, **kwargs)

    holder.get_total_norm = _wrapped(total_norm, call_total)
    holder.clip_grads_with_norm_ = _wrapped(clip, call_clip)


def _wrap_scaler(hooks: Hooks) -> None:
    scaler = compat.grad_scaler()
    scale, step, unscale = scaler.scale, scaler.step, scaler.unscale_

    def call_scale(self: Any, outputs: Any) -> Any:
        result = scale(self, outputs)
        if self.is_enabled():
            hooks.guard("scaler", lambda: hooks.on_scale(result, outputs, self.get_scale()))
        return result

    def call_step(self: Any, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        before = hooks.step
        if self.is_enabled():
            hooks.guard("scaler", hooks.on_scaled_step, self.get_scale())
        result = step(self, optimizer, *args, **kwargs)
        if self.is_enabled() and hooks.step == before and hooks.optimizers.is_main(optimizer):
            hooks.guard("scaler", lambda: hooks.skip_step(overflow=1))
        return result

    def call_unscale(self: Any, optimizer: Optimizer) -> None:
        parameters = hooks.optimizers.all_parameters()
        untouched = hooks.guard("gradients", hooks.is_untouched, parameters)
        unscale(self, optimizer)
        if untouched:
            hooks.guard("gradients", hooks.after_backward)

    scaler.unscale_ = _wrapped(unscale, call_unscale)
    scaler.scale = _wrapped(scale, call_scale)
    scaler.step = _wrapped(step, call_step)


def _wrap_optimizer(hooks: Hooks) -> None:
    optimizers: Any = Optimizer
    begin = optimizers.__init__

    @functools.wraps(begin)
    def call(self: Optimizer, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        hooks.optimizers.add(self)

    optimizers.__init__ = call
    for holder in (Optimizer, torch.nn.Module):
        _wrap_clearing(hooks, holder)


def _wrap_clearing(hooks: Hooks, holder: Any) -> None:
    zero_grad = holder.zero_grad

    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        hooks.guard("clearing", hooks.before_clearing)
        zero_grad(self, *args, **kwargs)

    holder.zero_grad = _wrapped(zero_grad, call)


def _find_model(hooks: Hooks) -> None:
    def call(module: torch.nn.Module, _args: Any) -> None:
        hooks.guard("model", hooks.find_model, module)
        if hooks.model or hooks.step:  # in a whole step there was none
            handle.remove()

    handle = torch.nn.modules.module.register_module_forward_pre_hook(call)
