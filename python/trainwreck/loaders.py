"""What torch's DataLoaders and kinds of them do: how long a program waits, how often they begin."""

from __future__ import annotations

import functools
import time
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import dataloader

if TYPE_CHECKING:
    from trainwreck.hooks import Hooks


class Loaders:
    """Follows the loaders of this process, where a formula asks.

    The training loader is the only one that gave batches before the first backward pass, without
    no_grad. Where several did, it is not known.
    """

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._has_epochs = hooks.plan.wants("epoch")
        self._waits = hooks.plan.wants("data_s")
        self.is_wanted = self._has_epochs or self._waits
        self._seconds = 0.0
        self._begins: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._loaders: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._epochs: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._may_train: weakref.WeakSet[Any] = weakref.WeakSet()
        self._has_trained = False

    def install(self) -> None:
        """To be called after the faults, whose waiting counts, too."""
        if not self.is_wanted:
            return
        # Kinds of loaders may have an `__iter__` of their own; their iterators are of this kind.
        batches: Any = dataloader._BaseDataLoaderIter
        make, reset, following = batches.__init__, batches._reset, batches.__next__

        @functools.wraps(make)
        def call_make(iterator: Any, loader: Any) -> None:
            make(iterator, loader)
            self._hooks.guard("loaders", self._begin, loader, iterator)

        @functools.wraps(reset)
        def call_reset(iterator: Any, loader: Any, first_iter: bool = False) -> None:
            reset(iterator, loader, first_iter)
            if not first_iter:  # with workers that stay, one iterator begins again
                self._hooks.guard("loaders", self._begin, loader, iterator)

        @functools.wraps(following)
        def call_following(iterator: Any) -> Any:
            begin = time.monotonic()
            try:
                batch = following(iterator)
            finally:
                self._seconds += time.monotonic() - begin
            self._hooks.guard("loaders", self._give, iterator)
            return batch

        batches.__init__, batches._reset = call_make, call_reset
        batches.__next__ = call_following

    def _begin(self, loader: Any, iterator: Any) -> None:
        self._begins[loader] = self._begins.get(loader, 0) + 1
        self._loaders[iterator] = weakref.ref(loader)

    def _give(self, iterator: Any) -> None:
        reference = self._loaders.get(iterator)
        loader = reference() if reference is not None else None
        if loader is None:
            return
        self._epochs[loader] = self._begins[loader] - 1
        if not self._has_trained and torch.is_grad_enabled():
            self._may_train.add(loader)

    def on_backward(self) -> None:
        self._has_trained = True

    def finish_step(self) -> None:
        """Records what the step has shown. A run that goes on does not say in which epoch."""
        if self._waits and self._seconds:
            self._hooks.put(data_s=self._seconds)
        self._seconds = 0.0
        if self._has_epochs and len(self._may_train) == 1 and not self._hooks.is_resumed:
            self._hooks.put(epoch=self._epochs[next(iter(self._may_train))])
