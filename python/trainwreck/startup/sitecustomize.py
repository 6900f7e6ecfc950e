"""Runs at the start of each Python of a target with `adapter: python`, as PYTHONPATH says.

It waits until the program imports torch, and sets the hooks then. A Python that never imports torch
is left as it is.
"""

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Optional

HERE = os.path.dirname(os.path.abspath(__file__))


def run_hidden() -> None:
    """Runs the sitecustomize that this one hides, if there is one."""
    path = [folder for folder in sys.path if os.path.abspath(folder) != HERE]
    spec = PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(_module_of(spec))


def _module_of(spec: ModuleSpec) -> ModuleType:
    from importlib.util import module_from_spec

    return module_from_spec(spec)


def load(module: str) -> ModuleType:
    """A module of the package `trainwreck` of this folder, wherever the program's own packages
    are."""
    from importlib.util import spec_from_file_location

    if "trainwreck" not in sys.modules:
        folder = os.path.dirname(HERE)
        spec = spec_from_file_location(
            "trainwreck", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        assert spec is not None and spec.loader is not None
        sys.modules["trainwreck"] = _module_of(spec)
        spec.loader.exec_module(sys.modules["trainwreck"])
    from importlib import import_module

    return import_module("trainwreck." + module)


def say_failed(error: Exception) -> None:
    said = error if type(error).__name__ == "TooOld" else repr(error)
    print(f"trainwreck: the hooks could not be set: {said}", file=sys.stderr)


class AfterTorch:
    """A finder that sets the hooks as soon as torch has been imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        from importlib.util import find_spec

        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        execute = loader.exec_module

        def execute_and_hook(module: ModuleType) -> None:
            execute(module)
            try:
                load("install").install()
            except Exception as error:  # the training goes on without us
                say_failed(error)

        loader.exec_module = execute_and_hook
        return spec


if os.environ.get("TRAINWRECK_ADAPTER") == "python" and "TRAINWRECK_TRACE" in os.environ:
    sys.meta_path.insert(0, AfterTorch())
    if os.environ.get("TRAINWRECK_ADAPTER_TELL"):  # what the program declares, for `init`
        try:
            load("options").watch()
        except Exception as error:
            say_failed(error)
run_hidden()
