"""Modules that are imported when they are first used: those that take long, Numba and what it compiles above all."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from edbatch.base.locking import signals_deferred


def imported(name: str) -> ModuleType:
    """Import a module; an interrupt waits: one that is imported by half, as Numba then is, stays so."""
    with signals_deferred():
        return import_module(name)


class LazyModule:
    """Stands for a module, which is imported when one of its names is read."""

    def __init__(self, name: str) -> None:
        self._module_name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # who asks what this is, as doctest does of every name, does not use it
            raise AttributeError(attribute)
        known = self.__dict__
        module = imported(known.get("_module_name") or known["__name__"])
        self.__dict__ = vars(module)  # from now on names are found there, without a call
        return getattr(module, attribute)
