"""The fault of generators of random numbers whose states a resumed run leaves out: torch's, those
of the devices, and those that the program has made."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, Callable

import torch

from trainwreck import tensors

if TYPE_CHECKING:
    from trainwreck.faults import Faults

FAULT = "checkpoint.lose_generator"


def wrap(faults: Faults) -> None:
    """Wraps what sets a state. That of all devices of CUDA sets one after the other."""
    for module, short in ((torch.random, torch), (torch.cuda.random, torch.cuda)):
        _wrap_setter(faults, module, short)
    holder: Any = torch
    holder.Generator = _following(faults)


def _is_of_torch(frame: Any) -> bool:
    """Whether torch itself sets back what it has changed, as where it runs a part again."""
    name = str(frame.f_globals.get("__name__"))
    return name.startswith("torch.") and name != torch.cuda.random.__name__


def _loses(faults: Faults, state: torch.Tensor, now: Callable[[], torch.Tensor]) -> bool:
    """Before the first step, which is where a run goes on."""
    if faults.has_stepped:
        return False
    due = list(faults.due(FAULT))
    given, kept = (tensors.digest([one]) for one in (state, now())) if due else (0, 0)
    for fault in due if given != kept else ():  # that of an idle device may be the same
        faults.fired(fault, given, kept)
    return bool(due)


def _wrap_setter(faults: Faults, module: Any, short: Any) -> None:
    set_state, get_state = module.set_rng_state, module.get_rng_state

    @functools.wraps(set_state)
    def call(new_state: torch.Tensor, *device: Any, **kwargs: Any) -> None:
        is_of_torch = _is_of_torch(sys._getframe(1))

        def now() -> Any:
            return get_state(*device, **kwargs)

        if is_of_torch or not faults.guard(_loses, faults, new_state, now):
            set_state(new_state, *device, **kwargs)

    module.set_rng_state = short.set_rng_state = call


def _following(faults: Faults) -> Any:
    """A class of generators. All generators are instances of it, as they were of torch's."""
    plain: Any = torch.Generator

    class Kind(type):
        def __instancecheck__(cls, one: Any) -> bool:
            return isinstance(one, plain)

    class Generator(plain, metaclass=Kind):  # type: ignore[misc]
        def set_state(self, state: torch.Tensor) -> Any:
            is_of_torch = _is_of_torch(sys._getframe(1))
            if is_of_torch or not faults.guard(_loses, faults, state, self.get_state):
                return plain.set_state(self, state)
            return self

    return Generator
