"""Statistics of families of tensors: act_std of all modules, act_std{layers.*} of each."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Callable, NamedTuple

import torch

from trainwreck import tensors
from trainwreck.kernels import Statistics
from trainwreck.trace import Plan

Parts = dict[str, float]


def _finite(x: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.isfinite(x), x, torch.zeros_like(x))


def _spread(x: torch.Tensor) -> Any:
    return (x.amax(-1) - x.amin(-1)).max() if x.dim() else 0


def _entropy(x: torch.Tensor) -> Any:
    if x.dim() < 2:
        return 0
    log_p = torch.log_softmax(x, -1)
    return -(log_p.exp() * log_p).sum()


# What is read of each tensor: summed up over the tensors of a step, or the largest of them.
SUMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "count": torch.numel,
    "finite": lambda x: torch.isfinite(x).sum(),
    "zeros": lambda x: x.eq(0).sum(),
    "saturated": lambda x: (x.abs() >= 0.99).sum(),
    "sum": lambda x: _finite(x).sum(),
    "squares": lambda x: _finite(x).square().sum(),
    "all_squares": lambda x: x.square().sum(),
    "entropy": _entropy,
    "rows": lambda x: x.numel() // x.shape[-1] if x.dim() > 1 else 0,
}
MAXIMA: dict[str, Callable[[torch.Tensor], Any]] = {
    "max": lambda x: _finite(x).abs().max(),
    "spread": _spread,
}
# The same from one read by our kernels.
FROM_KERNELS: dict[str, Callable[[Statistics], float]] = {
    "count": lambda read: read.elements,
    "finite": lambda read: read.elements - read.nonfinite,
    "zeros": lambda read: read.zeros,
    "sum": lambda read: read.sum,
    "squares": lambda read: read.squares,
    "all_squares": lambda read: read.all_squares,
    "max": lambda read: read.max_abs,
}


def _read(tensor: torch.Tensor, parts: set[str]) -> Parts:
    read: Parts = {}
    by_kernels = tensors.statistics(tensor) if parts & FROM_KERNELS.keys() else None
    if by_kernels is not None:
        read = {part: float(FROM_KERNELS[part](by_kernels)) for part in parts & FROM_KERNELS.keys()}
    rest = parts - read.keys()
    if rest:
        wide = tensors.wide(tensor)
        read.update((part, float({**SUMS, **MAXIMA}[part](wide))) for part in rest)
    return read


class Statistic(NamedTuple):
    """A number of the reference trainer's, and the parts that it is made of."""

    parts: tuple[str, ...]
    value: Callable[[Parts], float]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _std(parts: Parts) -> float:
    mean = _ratio(parts["sum"], parts["finite"])
    return math.sqrt(max(0.0, _ratio(parts["squares"], parts["finite"]) - mean * mean))


NORM = {
    "norm": Statistic(("all_squares",), lambda p: math.sqrt(p["all_squares"])),
}
STATISTICS = {
    "mean": Statistic(("sum", "finite"), lambda p: _ratio(p["sum"], p["finite"])),
    "std": Statistic(("sum", "squares", "finite"), _std),
    "max": Statistic(("max",), lambda p: p["max"]),
    "nonfinite": Statistic(("count", "finite"), lambda p: p["count"] - p["finite"]),
    "zero_share": Statistic(("zeros", "count"), lambda p: _ratio(p["zeros"], p["count"])),
}
OF_ACTIVATIONS = {
    **NORM,
    **STATISTICS,
    "saturated_share": Statistic(
        ("saturated", "count"), lambda p: _ratio(p["saturated"], p["count"])
    ),
    "unit_spread": Statistic(("spread",), lambda p: p["spread"]),
    "softmax_entropy": Statistic(("entropy", "rows"), lambda p: _ratio(p["entropy"], p["rows"])),
}


class Family:
    """The statistics of a family that formulas mention, of all members or of those of a glob."""

    def __init__(self, name: str, plan: Plan, statistics: dict[str, Statistic]) -> None:
        self._plan = plan
        self._statistics = {f"{name}_{key}": value for key, value in statistics.items()}
        self._is_wanted = plan.wants(*self._statistics)
        self._asked: dict[str, dict[str, Statistic]] = {
            "": {k: one for k, one in self._statistics.items() if plan.wants_total(k)}
        }
        self._parts: dict[str, Parts] = {}  # by member; "": of all

    def __bool__(self) -> bool:
        return self._is_wanted

    def _asked_of(self, member: str) -> dict[str, Statistic]:
        if member not in self._asked:
            self._asked[member] = {
                f"{signal}{{{member}}}": one
                for signal, one in self._statistics.items()
                if self._plan.wants_of(signal, member)
            }
        return self._asked[member]

    def add(self, member: str, of_it: Iterable[torch.Tensor], is_counted: bool = True) -> None:
        """Reads tensors of a member. Not counted: it is a part of others, and not of the total."""
        if not self._is_wanted:
            return
        keys = [member] * bool(member) + [""] * is_counted
        wanted = {
            key: {p for one in self._asked_of(key).values() for p in one.parts} for key in keys
        }
        if not any(wanted.values()):
            return
        for tensor in of_it:
            if not tensor.is_floating_point() or not tensor.numel():
                continue
            read = _read(tensor, set().union(*wanted.values()))
            for key, parts in wanted.items():
                self._count(key, {part: read[part] for part in parts})

    def _count(self, key: str, read: Parts) -> None:
        parts = self._parts.setdefault(key, dict.fromkeys(read, 0.0))
        for part, value in read.items():
            parts[part] = parts[part] + value if part in SUMS else max(parts[part], value)

    def take(self, has_total: bool = True) -> dict[str, float]:
        """The signals of the step, which is over."""
        values = {
            signal: one.value(parts)
            for key, parts in self._parts.items()
            if key or has_total
            for signal, one in self._asked[key].items()
        }
        self._parts = {}
        return values
