"""What a program is made of, for a person who declares it (`trainwreck init`)."""

from __future__ import annotations

import functools
import gc
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader

from trainwreck import options, promises, surroundings
from trainwreck.compat import SCHEDULERS

if TYPE_CHECKING:
    from trainwreck.hooks import Hooks


_autocasts: set[str] = set()  # that have been entered: "bfloat16 on cpu"


def watch_autocast() -> None:
    """Notes each autocast that is entered and on. Nothing else tells when one has been left."""
    kind: Any = torch.autocast
    enter = kind.__enter__

    @functools.wraps(enter)
    def call(self: Any) -> Any:
        if self._enabled:
            _autocasts.add(f"{_name(self.fast_dtype)} on {self.device}")
        return enter(self)

    kind.__enter__ = call


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def tell(hooks: Hooks, has_scaler: bool) -> None:
    """Writes what the first step has used."""
    dist = torch.distributed
    is_group = dist.is_available() and dist.is_initialized()
    ranks = dist.get_world_size() if is_group else 1
    # Nothing keeps a list of them, and looking for them takes long: only where it is asked for.
    objects = gc.get_objects()
    loaders = [one for one in objects if isinstance(one, DataLoader)]
    schedulers = [one for one in objects if isinstance(one, SCHEDULERS)]
    acting = hooks.optimizers.within or hooks.optimizers.acting()
    groups = {id(group) for optimizer in acting for group in optimizer.param_groups}
    hooks.trace.event(
        "program",
        hooks.step,
        optimizer=type(acting[0]).__name__,
        groups=len(groups),
        tensors=len(hooks.parameters()),
        model=hooks.model,
        loaders=sorted(set(map(_describe, loaders))),
        schedulers=sorted({type(scheduler).__name__ for scheduler in schedulers}),
        precision=[
            *sorted({f"{_name(p.dtype)} parameters" for p in hooks.parameters()}),
            *(f"autocast to {one}" for one in sorted(_autocasts)),
        ],
        scaler=has_scaler,
        ranks=ranks,
        promises=promises.seen(acting, ranks, objects),
        **surroundings.told(),
        **options.told(),
    )


def _describe(loader: DataLoader[Any]) -> str:
    size: Any = loader.batch_size
    if size is None:  # the loader's own sampler makes batches
        size = getattr(loader.batch_sampler, "batch_size", "its own size")
    workers = loader.num_workers
    return f"batches of {size}, {workers} {'worker' if workers == 1 else 'workers'}"
