"""Checkpoints as `torch.save` and torch.distributed.checkpoint write and read them, and the step
that a run goes on from.

A file that was saved is known again by its inode and its size, so also under another name. The
steps that it holds are noted in the run's folder, since most optimizers do not say.
"""

from __future__ import annotations

import functools
import glob
import json
import os
import threading
from typing import TYPE_CHECKING, Any

import torch

from trainwreck import imports
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
    hooks.is_resumed = True
    hooks.trace.event("resumed", steps, from_step=steps)


def _count(obj: Any) -> int:
    """The entries of a checkpoint: all values within its maps and lists."""
    if isinstance(obj, dict):
        return sum(map(_count, obj.values()))
    return sum(map(_count, obj)) if isinstance(obj, (list, tuple)) else 1


def _on_save(hooks: Hooks, path: str | None, file: str | None, obj: Any, steps: int) -> None:
    """After a checkpoint has been saved at a path; it is known again by this file of it."""
    identity = _identity(file) if file is not None else None
    if path is None or identity is None:
        return
    _write_note(identity, steps)
    hooks.trace.event(
        "checkpoint_saved",
        steps - 1,
        file=os.path.basename(path),
        steps_done=steps,
        entries=_count(obj),
    )


def _on_save_file(hooks: Hooks, f: Any, obj: Any) -> None:
    path = path_of(f)
    _on_save(hooks, path, path, obj, hooks.step)


def _on_load(hooks: Hooks, file: str | None) -> None:
    identity = _identity(file) if file is not None else None
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
        obj = hooks.faults.checkpoints.on_save(obj, f, save)
        save(obj, f, *args, **kwargs)
        hooks.guard("checkpoints", _on_save_file, hooks, f, obj)

    @functools.wraps(load)
    def call_load(f: Any, *args: Any, **kwargs: Any) -> Any:
        result = load(f, *args, **kwargs)
        hooks.guard("checkpoints", lambda: _on_load(hooks, path_of(f)))
        return result

    @functools.wraps(load_state)
    def call_load_state(self: Any, state_dict: Any) -> None:
        load_state(self, state_dict)
        hooks.guard("checkpoints", _on_optimizer_state, hooks, self)
        hooks.guard("faults", hooks.faults.checkpoints.on_optimizer_loaded, self)

    torch.save, torch.load = call_save, call_load
    torch.optim.Optimizer.load_state_dict = call_load_state  # type: ignore[method-assign]
    package = "torch.distributed.checkpoint"
    imports.after_import(f"{package}.state_dict_saver", lambda saver: _wrap_saver(hooks, saver))
    imports.after_import(f"{package}.state_dict_loader", lambda loader: _wrap_loader(hooks, loader))
    imports.after_import(f"{package}.state_dict", lambda module: _wrap_states(hooks, module))


def _folder_of(options: dict[str, Any]) -> str | None:
    """Where torch.distributed.checkpoint saves to or loads from; None: in no folder."""
    by = options.get("storage_writer") or options.get("storage_reader")
    return path_of(options.get("checkpoint_id") or getattr(by, "path", None))


def _metadata(folder: str | None) -> str | None:
    """The file that is written last: a checkpoint without it is none."""
    return None if folder is None else os.path.join(folder, ".metadata")


def _wrap_saver(hooks: Hooks, saver: Any) -> None:
    save: Any = saver.save
    save_later: Any = getattr(saver, "async_save", None)
    expanded: Any = getattr(saver, "_stateful_to_state_dict", None)

    def without_entries(state: Any) -> Any:
        """As a fault wants it. Objects that give their state when asked are asked here already."""
        if expanded is not None and hooks.faults.has("checkpoint.drop_entries"):
            told = hooks.guard("faults", expanded, state)
            state = state if told is None else told
        return hooks.faults.checkpoints.without_entries(state)

    def on_save(state: Any, options: dict[str, Any], steps: int) -> None:
        folder = _folder_of(options)
        _on_save(hooks, folder, _metadata(folder), state, steps)

    def note(*args: Any) -> None:
        hooks.guard("checkpoints", on_save, *args)

    def note_when_done(saving: Any, *args: Any) -> None:
        future = getattr(saving, "upload_completion", saving)
        future.add_done_callback(lambda done: None if done.exception() else note(*args))

    @functools.wraps(save)
    def call(state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():  # it is a part of async_save
            return save(state_dict, *args, **kwargs)
        state_dict = without_entries(state_dict)
        breaking = hooks.faults.checkpoints.breaking_saves()
        result = save(state_dict, *args, **kwargs)
        for fault in breaking:
            hooks.faults.checkpoints.break_folder(fault, hooks.guard("faults", _folder_of, kwargs))
        note(state_dict, kwargs, hooks.step)
        return result

    def call_later(state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        steps = hooks.step
        state_dict = without_entries(state_dict)
        result = save_later(state_dict, *args, **kwargs)
        hooks.guard("checkpoints", note_when_done, result, state_dict, kwargs, steps)
        return result

    saver.save = call
    if save_later is not None:
        saver.async_save = functools.wraps(save_later)(call_later)


def _wrap_loader(hooks: Hooks, loader: Any) -> None:
    load = loader.load

    @functools.wraps(load)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = load(*args, **kwargs)
        hooks.guard("checkpoints", lambda: _on_load(hooks, _metadata(_folder_of(kwargs))))
        return result

    loader.load = call


def _wrap_states(hooks: Hooks, module: Any) -> None:
    """Where an optimizer has no state yet, torch makes a step without gradients to have one."""
    begin = module._init_optim_state

    @functools.wraps(begin)
    def call(*args: Any, **kwargs: Any) -> Any:
        hooks.is_paused = True
        try:
            return begin(*args, **kwargs)
        finally:
            hooks.is_paused = False

    module._init_optim_state = call
