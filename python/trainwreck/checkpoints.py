"""Checkpoints as `torch.save` writes and `torch.load` reads them, and the step that a run goes on
from.

A file that was saved is known again by its inode and its size, so also under another name. The
steps that it holds are noted in the run's folder, since most optimizers do not say.
"""

from __future__ import annotations

import functools
import glob
import json
import os
from typing import TYPE_CHECKING, Any

import torch

from trainwreck.trace import rank

if TYPE_CHECKING:
    from trainwreck.hooks import Hooks


def path_of(file: Any) -> str | None:
    """The path of what `torch.save` or `torch.load` was given; None: it is no file."""
    name = getattr(file, "name", file)
    return os.fspath(name) if isinstance(name, (str, os.PathLike)) else None


def _identity(path: str) -> str | None:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return f"{stat.st_dev}.{stat.st_ino}.{stat.st_size}"


def _folder() -> str:
    return os.environ.get("TRAINWRECK_TRACE", ".")


def _read_notes(pattern: str = "saved.rank*.json") -> dict[str, int]:
    """Steps by file, as each rank has noted those that it saved."""
    notes: dict[str, int] = {}
    for path in glob.glob(os.path.join(glob.escape(_folder()), pattern)):
        with open(path, encoding="utf-8") as file:
            notes.update(json.load(file))
    return notes


def _write_note(identity: str, steps: int) -> None:
    name = f"saved.rank{rank()}.json"
    notes = {**_read_notes(name), identity: steps}
    path = os.path.join(_folder(), name)
    with open(path + ".new", "w", encoding="utf-8") as written:
        json.dump(notes, written)
    os.replace(path + ".new", path)


class _Loaded:
    """What this process has loaded before its first step."""

    steps: int | None = None  # of a file that a run of this folder saved
    optimizer_steps: int | None = None  # as the optimizer's state counts them


def find_step(hooks: Hooks) -> None:
    """Lets the first step of a resumed run go on where its checkpoint was."""
    if hooks.has_stepped:
        return
    hooks.has_stepped = True
    steps = _Loaded.steps if _Loaded.steps is not None else _Loaded.optimizer_steps
    if steps is None:
        return
    hooks.step = steps
    hooks.trace.event("resumed", steps, from_step=steps)


def _on_save(hooks: Hooks, file: Any) -> None:
    path = path_of(file)
    identity = _identity(path) if path is not None else None
    if path is None or identity is None:
        return
    _write_note(identity, hooks.step)
    hooks.trace.event(
        "checkpoint_saved", hooks.step - 1, file=os.path.basename(path), steps_done=hooks.step
    )


def _on_load(hooks: Hooks, file: Any) -> None:
    path = path_of(file)
    identity = _identity(path) if path is not None else None
    if hooks.has_stepped or identity is None:
        return
    steps = _read_notes().get(identity)
    if steps is not None:
        _Loaded.steps = steps


def _on_optimizer_state(hooks: Hooks, optimizer: Any) -> None:
    if hooks.has_stepped:
        return
    counted = [int(state["step"]) for state in optimizer.state.values() if "step" in state]
    if counted:
        _Loaded.optimizer_steps = max(counted)


def wrap(hooks: Hooks) -> None:
    """Wraps torch.save, torch.load and Optimizer.load_state_dict."""
    save, load = torch.save, torch.load
    load_state = torch.optim.Optimizer.load_state_dict

    @functools.wraps(save)
    def call_save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        hooks.faults.on_save(obj, f, save)
        save(obj, f, *args, **kwargs)
        hooks.guard("checkpoints", _on_save, hooks, f)

    @functools.wraps(load)
    def call_load(f: Any, *args: Any, **kwargs: Any) -> Any:
        result = load(f, *args, **kwargs)
        hooks.guard("checkpoints", _on_load, hooks, f)
        return result

    @functools.wraps(load_state)
    def call_load_state(self: Any, state_dict: Any) -> None:
        load_state(self, state_dict)
        hooks.guard("checkpoints", _on_optimizer_state, hooks, self)
        hooks.faults.on_optimizer_loaded(self)

    torch.save, torch.load = call_save, call_load
    torch.optim.Optimizer.load_state_dict = call_load_state  # type: ignore[method-assign]
