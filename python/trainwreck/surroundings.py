"""What the program asks of its surroundings, for a person who declares it (`trainwreck init`): the
environment variables that it reads, and where it writes.

Nothing here needs torch.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import sysconfig
from typing import Any

_variables: dict[str, None] = {}  # in the order in which they were read
_written: dict[str, None] = {}
_own: list[str] = []  # folders that each run has to itself
_begin = os.getcwd()
_LIBRARIES = (
    *(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    os.path.dirname(os.path.abspath(__file__)),
)


def watch() -> None:
    kind: Any = type(os.environ)
    get = kind.__getitem__

    @functools.wraps(get)
    def call(self: Any, key: Any) -> Any:
        if self is os.environ and isinstance(key, str) and key not in _variables and _is_own():
            _variables[key] = None
        return get(self, key)

    kind.__getitem__ = call
    sys.addaudithook(_on_event)


def _is_own() -> bool:
    """Whether the caller is the program's own code, and no library."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith("<frozen"):
        frame = frame.f_back
    file = frame.f_code.co_filename if frame is not None else "<"
    if os.path.basename(file) in ("os.py", "_collections_abc.py"):  # before Python 3.11
        while frame is not None and frame.f_code.co_filename == file:
            frame = frame.f_back
        file = frame.f_code.co_filename if frame is not None else "<"
    return not file.startswith("<") and not _is_library(os.path.abspath(file))


def _is_library(path: str) -> bool:
    parts = path.split("/")
    return path.startswith(_LIBRARIES) or "site-packages" in parts or "dist-packages" in parts


def _on_event(event: str, args: tuple[Any, ...]) -> None:
    if event == "os.mkdir" or (event == "open" and _is_for_writing(args)):
        with contextlib.suppress(Exception):  # the program goes on without us
            note_written(args[0])


def _is_for_writing(args: tuple[Any, ...]) -> bool:
    mode, flags = args[1], args[2]
    if mode is not None:
        return isinstance(mode, str) and any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def note_written(path: Any) -> None:
    """A path that the program makes or writes, in whose place the runs would meet."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        return
    place = os.path.abspath(os.fsdecode(path))
    run = os.environ.get("TRAINWRECK_TRACE", "")
    if run and (place + "/").startswith(os.path.join(os.path.abspath(run), "")):
        return
    if any(one.startswith(place + "/") or (place + "/").startswith(one) for one in _own):
        return
    inside = os.path.relpath(place, _begin)
    if not inside.startswith(".."):
        first = inside.partition("/")[0]
        if not first.startswith((".", "__pycache__")):
            _written[first] = None
    elif not _is_of_system(place):
        _written[place] = None


def note_own(folder: str) -> None:
    _own.append(os.path.join(os.path.abspath(folder), ""))


def _is_of_system(place: str) -> bool:
    """Whether it is a device, a temporary file or a cache."""
    # `tempfile` makes a file to find its folder, which would come here again.
    temporary = os.environ.get("TMPDIR", "/tmp").rstrip("/")
    folders = ("/dev", "/proc", "/sys", "/tmp", "/var/tmp", temporary)
    return (
        place.startswith(tuple(folder + "/" for folder in folders))
        or place in folders
        or _is_library(place)
        or any(part.startswith(".") or part == "__pycache__" for part in place.split("/"))
    )


def told() -> dict[str, Any]:
    """`variables`: names; `writes`: paths, those in the folder where it began by their first
    part."""
    return {"variables": list(_variables), "writes": list(_written)}
