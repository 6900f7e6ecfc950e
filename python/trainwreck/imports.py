"""Calls a function as soon as a program has imported a module. Needs no torch, and imports none."""

from __future__ import annotations

import sys
from typing import Any, Callable


class _AfterImport:
    """A finder that gives a module a loader which makes the call. It stays until the module has
    been imported: programs ask where a module is (`importlib.util.find_spec`) and import it later,
    or not at all."""

    def __init__(self, name: str, call: Callable[[Any], None]) -> None:
        self._name, self._call = name, call
        self._is_asking = False  # the other finders

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._name or self._is_asking:
            return None
        from importlib.util import find_spec

        self._is_asking = True
        try:
            spec: Any = find_spec(name)
        finally:
            self._is_asking = False
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_call(module: Any) -> None:
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._call(module)

        spec.loader.exec_module = execute_and_call
        return spec


def after_import(name: str, call: Callable[[Any], None]) -> None:
    """Calls a function with this module as soon as it has been imported, and once."""
    if name in sys.modules:
        call(sys.modules[name])
    else:
        sys.meta_path.insert(0, _AfterImport(name, call))
