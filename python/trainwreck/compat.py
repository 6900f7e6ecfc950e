"""What differs between versions of torch, from 1.13 on. What is not there is None or raises
`TooOld`; nothing is guessed.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from collections.abc import Iterator
from typing import Any, Callable

import torch
from torch.optim import Optimizer, lr_scheduler
from torch.optim import optimizer as optimizers

# Called with what goes on, and the arguments by name.
Around = Callable[[Callable[..., Any], dict[str, Any]], Any]
OLDEST = (1, 13)
# Called with the optimizer, and the arguments of its `step` with it and by name.
BeforeStep = Callable[[Optimizer, Any, Any], Any]
AfterStep = Callable[[Optimizer, Any, Any], None]
# Called with the module and its arguments.
BeforeForward = Callable[[torch.nn.Module, Any], None]
# Called with the module, its arguments, those by name, and what it returned.
AfterForward = Callable[[torch.nn.Module, Any, Any, Any], None]


class TooOld(RuntimeError):
    """This torch lacks what a hook needs."""

    def __init__(self, what: str) -> None:
        super().__init__(f"torch {torch.__version__} {what}")


def check() -> None:
    """Raises where this torch is older than all that the hooks have been tested with."""
    version = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if version is not None and (int(version[1]), int(version[2])) < OLDEST:
        raise TooOld(f"is too old: they need {OLDEST[0]}.{OLDEST[1]} or newer")


# The classes of all schedulers. ReduceLROnPlateau became one of the others with torch 2.2.
LRScheduler: Any = getattr(lr_scheduler, "LRScheduler", lr_scheduler._LRScheduler)
SCHEDULERS = (LRScheduler, lr_scheduler.ReduceLROnPlateau)


def scheduler_classes(method: str) -> Iterator[Any]:
    """The classes of schedulers that have a method of this name of their own."""
    kinds = list(SCHEDULERS)
    while kinds:
        kind = kinds.pop()
        kinds += [one for one in kind.__subclasses__() if one not in SCHEDULERS]
        if method in vars(kind):
            yield kind


def grad_scaler() -> Any:
    """The class that all gradient scalers are of; before torch 2.3 there is one for CUDA alone."""
    amp = getattr(torch.amp, "grad_scaler", torch.cuda.amp.grad_scaler)
    return amp.GradScaler


def on_optimizer_step(before: BeforeStep, after: AfterStep) -> None:
    """Sets hooks of all optimizers' `step`. `before` may return other arguments, as a pair."""
    module: Any = optimizers
    if hasattr(module, "register_optimizer_step_pre_hook"):
        module.register_optimizer_step_pre_hook(before)
        module.register_optimizer_step_post_hook(after)
        return
    # Without such hooks, torch wraps each class's `step` for its profiler when an optimizer is
    # made or unpickled. That is the place: schedulers wrap the `step` of an instance later.
    classes: Any = Optimizer
    hook_for_profile = classes._hook_for_profile

    @functools.wraps(hook_for_profile)
    def call(self: Optimizer) -> None:
        hook_for_profile(self)
        kind: Any = type(self)
        if not getattr(kind.step, "_has_trainwreck", False):
            kind.step = _step_with(kind.step, before, after)

    classes._hook_for_profile = call


def hook_step_of(optimizer: Any) -> None:
    """For an optimizer that may have been made before the hooks were set."""
    if hasattr(optimizers, "register_optimizer_step_pre_hook"):
        return
    if "step" in vars(optimizer) and not getattr(type(optimizer).step, "_has_trainwreck", False):
        raise TooOld("does not show the steps of an optimizer that has a scheduler already")
    optimizer._hook_for_profile()


def _step_with(step: Any, before: BeforeStep, after: AfterStep) -> Any:
    @functools.wraps(step)
    def call(*args: Any, **kwargs: Any) -> Any:
        optimizer = args[0]
        changed = before(optimizer, args, kwargs)
        if changed is not None:
            args, kwargs = changed
        result = step(*args, **kwargs)
        after(optimizer, args, kwargs)
        return result

    call._has_trainwreck = True  # type: ignore[attr-defined]
    return call


def on_modules(before: BeforeForward, after: AfterForward) -> None:
    """Sets hooks around the calls of all modules. None is kept in a module, so copies and pickles
    of a model have none."""
    modules: Any = torch.nn.modules.module
    if "with_kwargs" in inspect.signature(modules.register_module_forward_hook).parameters:
        modules.register_module_forward_pre_hook(before)
        modules.register_module_forward_hook(after, with_kwargs=True)
        return
    # Older hooks are not given arguments by name.
    holder: Any = torch.nn.Module
    forward = holder.__call__

    @functools.wraps(forward)
    def call(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        before(self, (args, kwargs))
        result = forward(self, *args, **kwargs)
        after(self, args, kwargs, result)
        return result

    holder.__call__ = call


def on_op(namespace: str, name: str, around: Around) -> None:
    """Calls `around` with what calls the op, and with the op's arguments, where this torch has it.
    Arguments that are given to what calls the op are in place of the program's.

    The op's own kernels stay below. A kernel below autograd sees functional collectives, too, and
    one that is there to select a backend those within an operation of a DTensor.
    """
    if not hasattr(getattr(torch.ops, namespace), name):
        return
    op = getattr(getattr(torch.ops, namespace), name).default
    names = [argument.name for argument in op._schema.arguments]
    of_torch: Any = torch._C
    has_guard = hasattr(of_torch, "_ExcludeDispatchKeyGuard")

    def kernel(keys: Any, args: Any, kwargs: Any) -> Any:
        given = {**dict(zip(names, args)), **kwargs}

        def proceed(**changed: Any) -> Any:
            all_args, by_name = ((), {**given, **changed}) if changed else (args, kwargs)
            if keys is not None:
                below = keys & of_torch._dispatch_keyset_full_after(
                    of_torch.DispatchKey.BackendSelect
                )
                return op.redispatch(below, *all_args, **by_name)
            with _below_view() if has_guard else _below_autograd():
                return op(*all_args, **by_name)

        return around(proceed, given)

    impl: Any = _library(namespace).impl
    if "with_keyset" in inspect.signature(impl).parameters and hasattr(op, "redispatch"):
        impl(name, lambda keys, *a, **kw: kernel(keys, a, kw), "BackendSelect", with_keyset=True)
    else:
        key = "ADInplaceOrView" if has_guard else "Autograd"
        impl(name, lambda *a, **kw: kernel(None, a, kw), key)


@functools.cache
def _library(namespace: str) -> Any:
    library: Any = torch.library.Library
    return library(namespace, "IMPL")


def _below_view() -> Any:
    of_torch: Any = torch._C
    keys = of_torch.DispatchKeySet(of_torch.DispatchKey.ADInplaceOrView)
    return of_torch._ExcludeDispatchKeyGuard(keys)


@contextlib.contextmanager
def _below_autograd() -> Iterator[None]:
    held = torch._C._AutoDispatchBelowAutograd()
    yield
    del held  # it guards as long as it is there


def has_works() -> bool:
    """Whether an op of c10d can be given a `Work` of ours, and its own one can be waited for."""
    of_c10d: Any = getattr(torch._C, "_distributed_c10d", None)
    has_guard = hasattr(torch._C, "_ExcludeDispatchKeyGuard")
    return has_guard and hasattr(getattr(of_c10d, "Work", None), "boxed")


def finished_work(results: list[torch.Tensor]) -> Any:
    """A `Work` that is done."""
    of_c10d: Any = torch._C._distributed_c10d
    devices = {tensor.device for tensor in results if tensor.device.type != "cpu"}
    future: Any = torch.futures.Future(devices=sorted(devices, key=str))
    future.set_result(results)
    return of_c10d._create_work_from_future(future)


def wait_for(work: Any) -> None:
    """Waits for the `Work` that an op of c10d has returned."""
    of_c10d: Any = torch._C._distributed_c10d
    of_c10d.Work.unbox(work).wait()


def group_of(arguments: dict[str, Any]) -> Any:
    """The group that an op of c10d is called on; None: it is not known."""
    groups: Any = torch.distributed.ProcessGroup
    for value in arguments.values() if hasattr(groups, "unbox") else ():
        if isinstance(value, torch.ScriptObject):
            with contextlib.suppress(RuntimeError):  # it is something else
                return groups.unbox(value)
    return None


def is_of_all_ranks(arguments: dict[str, Any]) -> bool:
    """Whether an op of c10d is called on the group of all ranks. Others of the same ranks may be of
    a thread, whose calls have no order among the program's."""
    group = group_of(arguments)
    if group is None:
        old = not hasattr(torch.distributed.ProcessGroup, "unbox")
        return old and len(torch.distributed.distributed_c10d._pg_map) == 1
    world: Any = torch.distributed.group.WORLD
    return bool(group.group_name == world.group_name)


def is_in_graph() -> bool:
    """Whether this thread makes a backward pass. Those of devices have threads of torch's own."""
    of_torch: Any = torch._C
    return hasattr(of_torch, "_current_graph_task_id") and of_torch._current_graph_task_id() != -1


# The node of the graph that the backward pass is at; None: it is not known.
current_node: Callable[[], Any] = getattr(torch._C, "_current_autograd_node", lambda: None)

# In what torch.compile compiles, hooks are to do nothing: they would be compiled, too.
is_compiling: Callable[[], bool] = getattr(
    getattr(torch, "compiler", None), "is_compiling", lambda: False
)
