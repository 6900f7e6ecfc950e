"""Runs at the start of each Python of a target with `adapter: python`, as PYTHONPATH says.

It waits until the program imports torch, and sets the hooks then. A Python that never imports torch
is left as it is.
"""

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)


def run_hidden() -> None:
    """Runs the sitecustomize that this one hides, if there is one."""
    path = [folder for folder in sys.path if os.path.abspath(folder) != HERE]
    spec = PathFinder.find_spec("sitecustomize", path)
    if spec is not None:
        run(spec)


def run(spec: ModuleSpec, name: str = "") -> ModuleType:
    """A module; the others know it only by a name."""
    from importlib.util import module_from_spec

    assert spec.loader is not None
    module = module_from_spec(spec)
    if name:
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def run_alone(name: str) -> ModuleType:
    """A module of the package, without the package."""
    from importlib.util import spec_from_file_location

    spec = spec_from_file_location(f"trainwreck.{name}", os.path.join(PACKAGE, f"{name}.py"))
    assert spec is not None
    return run(spec)


def load(module: str) -> ModuleType:
    """A module of the package `trainwreck` of this folder, wherever the program's own packages
    are."""
    from importlib.util import spec_from_file_location

    if "trainwreck" not in sys.modules:
        file = os.path.join(PACKAGE, "__init__.py")
        spec = spec_from_file_location("trainwreck", file, submodule_search_locations=[PACKAGE])
        assert spec is not None
        run(spec, "trainwreck")
    from importlib import import_module

    return import_module("trainwreck." + module)


def say_failed(error: Exception) -> None:
    said = error if type(error).__name__ == "TooOld" else repr(error)
    print(f"trainwreck: the hooks could not be set: {said}", file=sys.stderr)


def set_hooks(_torch: ModuleType) -> None:
    try:
        load("install").install()
    except Exception as error:  # the training goes on without us
        say_failed(error)


if os.environ.get("TRAINWRECK_ADAPTER") == "python" and "TRAINWRECK_TRACE" in os.environ:
    try:
        run_alone("imports").after_import("torch", set_hooks)
        if os.environ.get("TRAINWRECK_ADAPTER_TELL"):  # what the program declares, for `init`
            load("options").watch()
            load("surroundings").watch()
    except Exception as error:
        say_failed(error)
run_hidden()
