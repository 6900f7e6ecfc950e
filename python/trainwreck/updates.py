"""What an update does to the parameters. It is read only where a formula asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from trainwreck import tensors
from trainwreck.families import NORM, STATISTICS, Family

if TYPE_CHECKING:
    from trainwreck.hooks import Hooks

# Of a parameter's size: less may be lost in rounding (6e-8), clipping and the optimizer's moments.
SMALLEST_UPDATE = 1e-5


class Updates:
    """Compares the optimizer's parameters before and after each update."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._plan = plan = hooks.plan
        self._initial = Family("initial", plan, {**NORM, **STATISTICS})
        self._parameters = Family("param", plan, {**NORM, **STATISTICS})
        self._updates = Family("update", plan, {**NORM, **STATISTICS})
        counts = ("updated", "untrained", "frozen_moved")
        self._compares = bool(self._updates) or plan.wants(*counts)
        self.is_wanted = (
            self._compares
            or bool(self._parameters or self._initial)
            or plan.wants("param_norm", "param_digest", "shard_digest")
        )
        self._copies: list[torch.Tensor] = []
        self._has_rate = False
        self._reach: list[float] = []  # of each parameter, its rate times its largest gradient

    def before(self, parameters: list[torch.Tensor]) -> None:
        if self._hooks.step == 0 and self._initial:
            self._read(self._initial, parameters, lambda i: parameters[i])
        if not self._compares:
            return
        self._copies = [tensors.plain(p).clone() for p in parameters]
        rates: dict[int, float] = {}
        for group in self._hooks.optimizers.groups():  # of several rates of one the smallest
            rate = float(group.get("lr", 0))
            rates.update((id(p), min(rate, rates.get(id(p), rate))) for p in group["params"])
        self._has_rate = any(rate > 0 for rate in rates.values())
        self._reach = [rates[id(p)] * tensors.largest(p.grad) for p in parameters]

    def after(self, parameters: list[torch.Tensor]) -> None:
        if self._parameters:
            self._read(self._parameters, parameters, lambda i: parameters[i])
        if self._plan.wants("param_digest"):
            self._put_digests(parameters)
        if self._plan.wants("shard_digest"):
            self._hooks.put(shard_digest=tensors.digest(list(map(tensors.local, parameters))))
        old, self._copies = self._copies, []
        if not old:
            return
        if self._updates:
            self._read(self._updates, parameters, lambda i: tensors.plain(parameters[i]) - old[i])
        if not any(map(tensors.is_sharded, parameters)):
            self._put_counts(parameters, old)

    def _read(
        self,
        family: Family,
        parameters: list[torch.Tensor],
        tensor_at: Callable[[int], torch.Tensor],
    ) -> None:
        """Parts of a parameter that other ranks hold, too, are left out, and then the total."""
        whole = [i for i, p in enumerate(parameters) if not tensors.is_sharded(p)]
        for i in whole:
            family.add(self._hooks.names.get(id(parameters[i]), ""), [tensor_at(i)])
        self._hooks.put(**family.take(has_total=len(whole) == len(parameters)))

    def _put_digests(self, parameters: list[torch.Tensor]) -> None:
        if not any(map(tensors.is_sharded, parameters)):
            self._hooks.put(param_digest=tensors.digest(parameters))
        for name, p in self._named(parameters, "param_digest"):
            self._hooks.put(**{f"param_digest{{{name}}}": tensors.digest([p])})

    def _put_counts(self, parameters: list[torch.Tensor], old: list[torch.Tensor]) -> None:
        moved = [tensors.count_changed(p, before) for p, before in zip(parameters, old)]
        self._hooks.put(
            updated=sum(moved),
            frozen_moved=sum(1 for n, p in zip(moved, parameters) if n and not p.requires_grad),
        )
        changed = {id(p): n for n, p in zip(moved, parameters)}
        for name, p in self._named(parameters, "updated"):
            self._hooks.put(**{f"updated{{{name}}}": changed[id(p)]})
        if self._has_rate:
            seen = [
                p.requires_grad and reach > SMALLEST_UPDATE * tensors.rms(p)
                for reach, p in zip(self._reach, parameters)
            ]
            self._hooks.put(
                untrained=sum(1 for n, is_seen in zip(moved, seen) if is_seen and not n)
            )

    def _named(self, parameters: list[torch.Tensor], signal: str) -> list[tuple[str, torch.Tensor]]:
        """Those that formulas mention by name, and that no other rank has a part of."""
        named = [(self._hooks.names.get(id(p), ""), p) for p in parameters]
        return [
            (name, p)
            for name, p in named
            if self._plan.wants_of(signal, name) and not tensors.is_sharded(p)
        ]
