"""Faults of checkpoints, as the program saves and loads them."""

from __future__ import annotations

import contextlib
import copy
import errno
import fnmatch
import glob
import io
import os
import signal
from typing import TYPE_CHECKING, Any, Callable

import torch

from trainwreck.trace import rank

if TYPE_CHECKING:
    from trainwreck.faults import Faults
    from trainwreck.trace import Fault


End = Callable[[], None]


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _raise_no_space() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


ENDS: dict[str, End] = {"sigkill": _kill, "no_space": _raise_no_space}  # of a save that breaks


class CheckpointFaults:
    """Acts where the program saves and loads (checkpoints.py)."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._saves: list[int] = []  # the step of each save

    def on_save(self, obj: Any, file: Any, save: Callable[..., None]) -> Any:
        """Before an object is saved; returns what is to be saved."""
        obj = self.without_entries(obj)
        for fault in self.breaking_saves():
            _call(self._faults.guard(self._break_file, fault, obj, file, save))
        return obj

    def without_entries(self, obj: Any) -> Any:
        """The same maps without what the faults drop. Those of the program are often the ones that
        it trains with, and stay as they are."""
        kept = self._faults.guard(self._without_entries, obj)
        return obj if kept is None else kept

    def _without_entries(self, obj: Any) -> Any:
        for fault in self._faults.due("checkpoint.drop_entries"):
            dropped: list[tuple[str, int, int]] = []
            obj = _without(obj, fault.with_["entries"], dropped)
            for entry, before, after in dropped:
                self._faults.fired(fault, before, after, entry=entry)
        return obj

    def breaking_saves(self) -> list[Fault]:
        """The faults that let the save which begins now break."""
        return self._faults.guard(self._breaking_saves) or []

    def _breaking_saves(self) -> list[Fault]:
        step = self._faults.step
        broken = [
            fault
            for fault in self._faults.due("checkpoint.break_save")
            if self._saves.count(step) == int(fault.with_["files"])
        ]
        if self._faults.has("checkpoint.break_save"):
            self._saves.append(step)
        return broken

    def _break_file(self, fault: Fault, obj: Any, file: Any, save: Callable[..., None]) -> End:
        """Writes half of a file; returns what is to end the save. It is told before, since what has
        been written to a stream cannot be taken back."""
        end = ENDS[fault.with_["how"]]
        buffer = io.BytesIO()
        save(obj, buffer)
        whole = buffer.getvalue()
        half = whole[: len(whole) // 2]
        self._faults.fired(fault, len(whole), len(half), what="bytes of a file")
        if isinstance(file, (str, os.PathLike)):
            with open(file, "wb") as opened:
                opened.write(half)
        else:
            file.write(half)
            file.flush()
        return end

    def break_folder(self, fault: Fault, folder: str | None) -> None:
        """Leaves of a checkpoint of torch.distributed, which has just been written, what a process
        leaves that ends within it: half of this rank's last file, and no metadata, which come
        last."""
        if folder is not None:
            _call(self._faults.guard(self._break_folder, fault, folder))

    def _break_folder(self, fault: Fault, folder: str) -> End | None:
        end = ENDS[fault.with_["how"]]
        files = sorted(glob.glob(os.path.join(glob.escape(folder), f"__{rank()}_*")))
        if not files:  # others have written all of it
            return None
        whole = os.path.getsize(files[-1])
        self._faults.fired(fault, whole, whole // 2, what="bytes of a file")
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(folder, ".metadata"))
        os.truncate(files[-1], whole // 2)
        return end

    def on_optimizer_loaded(self, optimizer: torch.optim.Optimizer) -> None:
        """After a state has been loaded into an optimizer."""
        for fault in self._faults.due("checkpoint.lose_optimizer"):
            before = len(optimizer.state)
            optimizer.state.clear()
            self._faults.fired(fault, before, len(optimizer.state))

    def loses_schedule(self, schedule: Any, state_dict: Any) -> bool:
        """Whether a schedule is to load no state."""
        for fault in self._faults.due("checkpoint.lose_schedule"):
            before = state_dict.get("last_epoch")
            self._faults.fired(fault, before, schedule.last_epoch, what="steps done")
            return True
        return False


def _without(obj: Any, entries: list[str], dropped: list[tuple[str, int, int]]) -> Any:
    """The same maps without the entries that match; each, with the number of those beside it before
    and after, is added to `dropped`."""
    if isinstance(obj, list):  # Lightning has one of the states of its optimizers
        return [_without(one, entries, dropped) for one in obj]
    if not isinstance(obj, dict):
        return obj
    kept = copy.copy(obj)
    for key in obj:
        if any(fnmatch.fnmatchcase(str(key), one) for one in entries):
            before = len(kept)
            del kept[key]
            dropped.append((str(key), before, len(kept)))
        else:
            kept[key] = _without(obj[key], entries, dropped)
    return kept


def _call(end: End | None) -> None:
    """None: the save goes on."""
    if end is not None:
        end()
