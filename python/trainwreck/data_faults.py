"""Faults of batches, as a DataLoader gives them to the program."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import dataloader
from torch.utils.data._utils import fetch, worker

from trainwreck import tensors
from trainwreck.trace import Fault

if TYPE_CHECKING:
    from trainwreck.faults import Faults


# Those that write into a tensor.
WRITING = ("data.corrupt_batch", "data.shuffle_labels", "data.label_out_of_range")


def wrap(faults: Faults) -> None:
    """Wraps what gives batches, and with a fault of fetching what makes them."""
    batches: Any = dataloader._BaseDataLoaderIter
    following = batches.__next__

    @functools.wraps(following)
    def call(iterator: Any) -> Any:
        if faults.guard(_ends, faults):
            raise StopIteration
        batch = faults.guard(_again, faults, iterator)
        if batch is None:
            batch = following(iterator)
            faults.guard(_keep, faults, iterator, batch)
        changed = faults.guard(_change, faults, batch)
        return batch if changed is None else changed

    batches.__next__ = call
    if faults.has("data.same_worker"):
        _wrap_workers(faults)
    if faults.has("data.slow_fetch"):
        for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
            _wrap_fetch(faults, kind)


def _ends(faults: Faults) -> bool:
    for fault in faults.once("data.early_end"):
        faults.fired(fault, "has batches", "ends")
        return True
    return False


def _keep(faults: Faults, iterator: Any, batch: Any) -> None:
    """Keeps a batch that comes several times."""
    for fault in faults.due("data.repeat_batches"):
        times = int(fault.with_["times"])
        kept = copy.deepcopy(batch)
        faults.fired(fault, 1, times)
        iterator._kept = (kept, times - 1)


def _again(faults: Faults, iterator: Any) -> Any:
    kept, left = getattr(iterator, "_kept", (None, 0))
    if not left or not list(faults.due("data.repeat_batches")):
        return None
    iterator._kept = (kept, left - 1)
    return copy.deepcopy(kept)


def _change(faults: Faults, batch: Any) -> Any:
    """A batch as the faults make it. The given one stays as it is."""
    faults.wait("data.slow_loader")
    if any(fault for name in WRITING for fault in faults.due(name)):
        batch = tensors.mapped(batch, torch.Tensor.clone)
    for fault in faults.once("data.corrupt_batch"):
        for tensor in tensors.all_in(batch):
            if tensor.is_floating_point() and tensor.numel():
                what = fault.with_["what"]
                before = float(tensor.view(-1)[0])
                tensor.view(-1)[0] = float(fault.with_["value"] if what == "value" else what)
                faults.fired(fault, before, float(tensor.view(-1)[0]))
                break
    for fault in faults.due("data.shuffle_labels"):
        _shuffle_labels(faults, fault, batch)
    for fault in faults.once("data.label_out_of_range"):
        labels = labels_of(batch)
        if labels is not None and not labels.is_floating_point():
            before = int(labels.view(-1)[-1])
            labels.view(-1)[-1] = int(fault.with_["value"])
            faults.fired(fault, before, int(labels.view(-1)[-1]))
    for fault in faults.due("data.rearrange_batch"):
        old = tensors.digest(list(tensors.all_in(batch)))
        batch = tensors.mapped(batch, REARRANGED[fault.with_["how"]])
        faults.fired(fault, old, tensors.digest(list(tensors.all_in(batch))))
    return batch


def _reversed(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.flip(0) if tensor.dim() else tensor


def _twice(tensor: torch.Tensor) -> torch.Tensor:
    return torch.cat([tensor, tensor]) if tensor.dim() else tensor


REARRANGED = {"reversed": _reversed, "doubled": _twice}


def labels_of(batch: Any) -> torch.Tensor | None:
    """Those of (inputs, labels), or of a map with a key for them."""
    if isinstance(batch, dict):
        labels = batch.get("labels", batch.get("label"))
    else:
        labels = batch[-1] if isinstance(batch, (list, tuple)) and len(batch) > 1 else None
    is_one_each = isinstance(labels, torch.Tensor) and labels.dim() > 0
    return labels if is_one_each else None


def _shuffle_labels(faults: Faults, fault: Fault, batch: Any) -> None:
    """Gives each sample of the batch the label of the next one."""
    labels = labels_of(batch)
    if labels is None or len(labels) < 2:
        return
    before = tensors.digest([labels])
    labels.copy_(labels.roll(1, 0))
    if tensors.digest([labels]) != before:
        faults.fired(fault, before, tensors.digest([labels]))


def _wrap_fetch(faults: Faults, kind: Any) -> None:
    """Also in worker processes, which have the step at which they were made."""
    fetched = kind.fetch

    @functools.wraps(fetched)
    def call(self: Any, *args: Any) -> Any:
        faults.guard(faults.wait, "data.slow_fetch")
        return fetched(self, *args)

    kind.fetch = call


def _wrap_workers(faults: Faults) -> None:
    """What tells a worker process which one it is. It is made in that process, which has the step
    at which it was made."""
    info: Any = worker.WorkerInfo
    begin = info.__init__

    @functools.wraps(begin)
    def call(self: Any, *args: Any, **fields: Any) -> None:
        if faults.guard(_is_another, faults, fields):
            fields["id"] = 0
        begin(self, *args, **fields)

    info.__init__ = call


def _is_another(faults: Faults, fields: dict[str, Any]) -> bool:
    for fault in faults.due("data.same_worker"):
        if fields["id"] > 0:
            faults.fired(fault, fields["id"], 0)
            return True
    return False
