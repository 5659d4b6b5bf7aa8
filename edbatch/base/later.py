"""Modules that are imported when they are first used: those that take long, Numba and what it compiles above all.

It is the one way in which the package puts an import off; names that users import are put off by the `__getattr__` of
their package.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Later:
    """Stands for a module.

    Args:
        name: of the module, with its packages.

    Example:
        >>> fractions = Later("fractions")
        >>> fractions.Fraction(3, 6)
        Fraction(1, 2)
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: Any = None

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # who asks what this is, as doctest does of every name, does not use it
            raise AttributeError(attribute)
        if self._module is None:
            self._module = import_module(self._name)
        return getattr(self._module, attribute)
