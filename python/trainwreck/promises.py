"""What a program can promise of itself, as its first step shows it (`trainwreck init`): the
features that portable scenarios ask for. Each comes with what was seen."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import dataloader

from trainwreck import data_faults, generators, tensors

if TYPE_CHECKING:
    from trainwreck.hooks import Hooks

# Beside an epsilon of this size the size of a gradient counts.
LARGEST_EPSILON = 1e-4

_batches: list[Any] = []  # of DataLoaders
_targets: list[torch.Tensor] = []  # of losses over classes
_before: dict[str, int] = {}  # the generators, as the first training step of the model found them
_mixing: set[str] = set()  # modules that let the samples of a batch act on each other


def watch(hooks: Hooks) -> None:
    """Follows the first step. Nothing else tells later what it was made of."""
    batches: Any = dataloader._BaseDataLoaderIter
    following = batches.__next__

    @functools.wraps(following)
    def call(self: Any) -> Any:
        batch = following(self)
        if not hooks.has_stepped:
            _batches.append(batch)
        return batch

    batches.__next__ = call
    for name in ("cross_entropy", "nll_loss"):
        _watch_loss(hooks, name)
    torch.nn.modules.module.register_module_forward_pre_hook(
        lambda module, _args: hooks.guard("generators", _on_forward, hooks, module)
    )


def _watch_loss(hooks: Hooks, name: str) -> None:
    holder: Any = torch.nn.functional
    loss = getattr(holder, name)

    @functools.wraps(loss)
    def call(given: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        if not hooks.has_stepped and torch.is_grad_enabled() and isinstance(target, torch.Tensor):
            _targets.append(target)
        return loss(given, target, *args, **kwargs)

    setattr(holder, name, call)


def _on_forward(hooks: Hooks, module: torch.nn.Module) -> None:
    if hooks.has_stepped or not module.training or not torch.is_grad_enabled():
        return
    parts = [module] if _before else module.modules()  # hooks do not see into a compiled one
    if not _before:
        _before.update(generators.digests())
    _mixing.update(type(one).__name__ for one in parts if one.training and _mixes(one))


def _mixes(module: torch.nn.Module) -> bool:
    is_norm = isinstance(module, torch.nn.modules.batchnorm._BatchNorm)
    return is_norm or bool(getattr(module, "track_running_stats", False))


def seen(acting: list[Any], ranks: int, objects: list[Any]) -> dict[str, str]:
    """Each promise, and what was seen of it: of the optimizers that act, the ranks, all objects."""
    groups = [group for optimizer in acting for group in optimizer.param_groups]
    found = {
        "optimizer:adam": _adam(acting, groups),
        "model:no-draws": _no_draws(),
        "batches:loader": "from a DataLoader of torch" if _batches else "",
        "batches:labels": _labels(),
        "batches:numbers": _numbers(),
        "batches:classes": _classes(),
        "backend:nccl": _nccl(ranks),
        "ranks:whole-model": _whole_model(groups, ranks, objects),
    }
    return {name: text for name, text in found.items() if text}


def _adam(acting: list[Any], groups: list[dict[str, Any]]) -> str:
    """Its update divides by the size of the gradient, so the rate alone makes its size."""
    kinds = (torch.optim.Adam, torch.optim.AdamW)
    is_adam = all(isinstance(one, kinds) for one in acting) and all(
        "betas" in group and float(group.get("eps", 1)) <= LARGEST_EPSILON for group in groups
    )
    if not groups or not is_adam:
        return ""
    first = groups[0]
    betas = " and ".join(f"{float(beta):g}" for beta in first["betas"])
    return f"{type(acting[0]).__name__}, betas {betas}, eps {float(first['eps']):g}"


def _no_draws() -> str:
    is_still = bool(_before) and generators.digests() == _before
    return "generators as before the step, no batch norm" if is_still and not _mixing else ""


def _labels() -> str:
    has_labels = all(data_faults.labels_of(batch) is not None for batch in _batches)
    return "each batch has some" if _batches and has_labels else ""


def _numbers() -> str:
    """The first numbers of a batch are what a NaN is put into: they must not be its labels."""
    kinds = set()
    for batch in _batches:
        first = next((one for one in tensors.all_in(batch) if one.is_floating_point()), None)
        if first is None or first is data_faults.labels_of(batch):
            return ""
        kinds.add(str(first.dtype).removeprefix("torch."))
    return "inputs of " + " and ".join(sorted(kinds)) if kinds else ""


def _classes() -> str:
    """Labels that a loss over classes was given: another number than a class is an error there."""
    for batch in _batches:
        labels = data_faults.labels_of(batch)
        if labels is None or labels.is_floating_point() or labels.dtype == torch.bool:
            return ""
    is_used = any(not target.is_floating_point() for target in _targets)
    return "whole numbers as labels, and a loss over classes" if _batches and is_used else ""


def _nccl(ranks: int) -> str:
    is_nccl = ranks > 1 and torch.distributed.get_backend() == "nccl"
    return f"the backend of {ranks} ranks" if is_nccl else ""


def _whole_model(groups: list[dict[str, Any]], ranks: int, objects: list[Any]) -> str:
    """DDP averages the gradients of all that a rank holds, so each has the same, and all of it."""
    has_parts = any(tensors.is_sharded(p) for group in groups for p in group["params"])
    kind = torch.nn.parallel.DistributedDataParallel
    is_parallel = ranks > 1 and not has_parts and any(isinstance(one, kind) for one in objects)
    return f"{kind.__name__} over {ranks} ranks" if is_parallel else ""
