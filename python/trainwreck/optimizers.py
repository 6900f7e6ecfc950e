"""The optimizers of a program: the one whose steps are those of the run, and the ones within it."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch.optim import Optimizer

_OWN = ("state", "param_groups", "defaults")  # attributes of each optimizer, which hold no others


def _optimizers_in(value: Any) -> Iterator[Optimizer]:
    if isinstance(value, Optimizer):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _optimizers_in(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _optimizers_in(part)


def _held_by(optimizer: Optimizer, seen: set[int]) -> Iterator[Optimizer]:
    """The optimizers among its attributes, from inside to outside."""
    seen.add(id(optimizer))
    for name, value in vars(optimizer).items():
        for one in () if name in _OWN else _optimizers_in(value):
            if id(one) not in seen:
                yield from _held_by(one, seen)
                yield one


def _parameters_of(optimizer: Optimizer) -> list[torch.Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def rate_of(optimizer: Optimizer) -> float | None:
    """Of its first group."""
    groups = optimizer.param_groups
    return float(groups[0]["lr"]) if groups and "lr" in groups[0] else None


class Optimizers:
    """`main` is the one whose steps count. It may make them by steps of others, which it holds, and
    which have some of its parameters: then these have the rates and the states that act, and its
    own may be out of date. Either may follow a schedule."""

    def __init__(self) -> None:
        self.main: Optimizer | None = None
        self.within: list[Optimizer] = []  # from inside to outside
        self._made: weakref.WeakKeyDictionary[Optimizer, None] = weakref.WeakKeyDictionary()
        self._has_own_rates = False  # those within have had other rates than the main one

    def __bool__(self) -> bool:
        return len(self._made) > 0

    def add(self, optimizer: Optimizer) -> None:
        self._made[optimizer] = None

    def is_main(self, optimizer: Optimizer) -> bool:
        """The first one to be asked for is the main one."""
        if self.main is None:
            self.main = optimizer
            self.add(optimizer)
            for one in _held_by(optimizer, set()):
                self._find_within(one)
        return optimizer is self.main

    def _find_within(self, optimizer: Optimizer) -> bool:
        """Whether it is within the main one, if it is held by it or makes a step within its step.
        Others have their own part of the model."""
        assert self.main is not None
        if any(one is optimizer for one in self.within):
            return True
        of_main = set(map(id, _parameters_of(self.main)))
        is_within = any(id(p) in of_main for p in _parameters_of(optimizer))
        if is_within:
            self.within.append(optimizer)
        return is_within

    def begin_within(self, optimizer: Optimizer) -> bool:
        """Where an optimizer begins a step within a step of the main one."""
        is_within = self._find_within(optimizer)
        if is_within and self.main is not None and rate_of(optimizer) != rate_of(self.main):
            self._has_own_rates = True
        return is_within

    def only(self) -> Optimizer | None:
        """The main one, or what will be, where all others are within it."""
        made = list(self._made)
        if len(made) == 1:
            return made[0]
        held = self.within if self.main is not None else [
            inner for one in made for inner in _held_by(one, set())
        ]  # fmt: skip
        inner = set(map(id, held))
        outer = [one for one in made if id(one) not in inner]
        return outer[0] if len(outer) == 1 else None

    def acting(self) -> list[Optimizer]:
        """The main one, after those within it."""
        return [*self.within, *([] if self.main is None else [self.main])]

    def groups(self) -> list[dict[str, Any]]:
        """Of all that act, each once: those within may share them with the main one."""
        if not self.within:
            return [] if self.main is None else self.main.param_groups
        groups = {id(group): group for one in self.acting() for group in one.param_groups}
        return list(groups.values())

    def parameters(self) -> list[torch.Tensor]:
        return list({id(p): p for group in self.groups() for p in group["params"]}.values())

    def all_parameters(self) -> list[torch.Tensor]:
        """Of all optimizers that were made in this process."""
        return list({id(p): p for one in self._made for p in _parameters_of(one)}.values())

    def rate(self) -> float | None:
        """The rate of the next update. None: it is not known which one will act."""
        main = self.main or self.only()
        if main is None or not self.within:
            return None if main is None else rate_of(main)
        outer, inner = rate_of(main), rate_of(self.within[0])
        return inner if outer == inner or self._has_own_rates else None
