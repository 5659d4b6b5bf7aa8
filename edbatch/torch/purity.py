"""Whether a module's code may be run once for all calls: it reads and changes nothing that may be another each time."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import nn

from edbatch.torch.state import ATOMS, is_users, parts_of

#: Of Python's library and NumPy, what has no state.
_MODULES = ("torch", "math", "numpy", "operator", "typing", "functools", "itertools", "collections")

#: Names of what draws numbers, asks the machine, or goes on each time.
_NAMES = frozenset((
    "random", "rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "randperm", "bernoulli", "poisson",
    "multinomial", "normal", "normal_", "uniform_", "bernoulli_", "exponential_", "sample", "rsample", "manual_seed",
    "Generator", "environ", "getenv", "print", "open", "input", "next", "exec", "eval", "globals", "locals", "vars",
    "setattr", "delattr", "lru_cache", "cache",
))  # fmt: skip


def functions_of(owner: nn.Module) -> list[Any] | None:
    """The functions that the code of a module and its parts consists of; None: it names what may change unseen."""
    walk = _Walk()
    parts = [part for part in parts_of(owner) if is_users(type(part))]
    found, known = all(walk.method(type(part), "forward") for part in parts), -1
    while found and known < len(walk.names):  # functions among attributes have names, too
        known = len(walk.names)
        found = all(map(walk.attributes, parts))
    return walk.functions if found else None


class _Walk:
    """One way through functions, each once; its methods say whether something is pure.

    Attributes:
        functions: of users' that it went through.
        names: that their code has.
    """

    def __init__(self) -> None:
        self._seen: set[CodeType] = set()
        self.names: set[str] = set()
        self.functions: list[Any] = []

    def method(self, kind: type, name: str) -> bool:
        """What classes of a module hold under a name, if that is a function."""
        held = [vars(base).get(name) for base in kind.__mro__ if is_users(base)]
        return all(self._function(one, kind) for one in held if one is not None)

    def attributes(self, part: nn.Module) -> bool:
        """What a module holds under the names that code has."""
        held = [value for name, value in vars(part).items() if name in self.names]
        return all(_is_kept(x) or (isinstance(x, FunctionType) and self._function(x, type(part))) for x in held)

    def _function(self, function: Any, kind: type | None = None) -> bool:
        for wrapper in ("__func__", "fget", "__wrapped__"):
            function = getattr(function, wrapper, function)
        if not isinstance(function, FunctionType):
            return _is_kept(function)
        if function.__code__ in self._seen:
            return True
        self._seen.add(function.__code__)
        self.functions.append(function)
        names = set(_names_of(function.__code__))
        self.names |= names
        if names & _NAMES:
            return False
        variables = [function.__globals__[name] for name in names if name in function.__globals__]
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        try:
            variables += [cell.cell_contents for name, cell in cells.items() if name != "__class__"]
        except ValueError:  # one that has no value yet
            return False
        return all(map(self._variable, variables)) and (kind is None or all(self.method(kind, name) for name in names))

    def _variable(self, value: Any) -> bool:
        if isinstance(value, ModuleType):
            return value.__name__.partition(".")[0] in _MODULES
        if isinstance(value, BuiltinFunctionType):
            return (value.__module__ or "torch").partition(".")[0] in (*_MODULES, "builtins", "_operator")
        if isinstance(value, type):
            is_known = value.__module__.partition(".")[0] in ("torch", "builtins", "collections")
            return is_known or issubclass(value, tuple | Enum | nn.Module)
        if isinstance(value, FunctionType | MethodType) or hasattr(value, "__wrapped__"):
            name = getattr(value, "__module__", None) or ""
            return name.partition(".")[0] in ("torch", "edbatch") or self._function(value)
        return callable(value) is False and _is_kept(value)


def _names_of(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _names_of(part)


def _is_kept(value: Any, depth: int = 0) -> bool:
    """Whether a value is compared as a whole where a cell is called."""
    if isinstance(value, (*ATOMS, torch.Tensor, nn.Module, Enum)) or hasattr(value, "is_lazy"):
        return True
    if isinstance(value, FunctionType | BuiltinFunctionType):
        return (value.__module__ or "torch").partition(".")[0] in ("torch", "math")
    return isinstance(value, tuple) and depth < 3 and all(_is_kept(part, depth + 1) for part in value)
