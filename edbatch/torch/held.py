"""What a module and its code hold, to find out whether a call changes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from inspect import getclosurevars
from types import FunctionType
from typing import Any

from torch import nn

from edbatch.torch.state import is_users, parts_of

#: Entries of a list or dictionary that are looked at; larger ones are data.
_ENTRIES = 4096


class Held:
    """Attributes of a module and its parts, and lists and dictionaries that they, or variables of its code, hold."""

    def __init__(self, owner: Any) -> None:
        modules = parts_of(owner)
        values = [value for module in modules for value in (*vars(module).values(), *_variables(module))]
        self._held = [(vars(module), dict(vars(module))) for module in modules]
        self._held += [(x, x.copy()) for x in values if type(x) in (list, dict) and len(x) <= _ENTRIES]

    def is_changed(self) -> bool:
        """Whether some are others now; they are set back."""
        changed = [(own, held) for own, held in self._held if _differ(own, held)]
        for own, held in changed:
            own.clear()
            (own.extend if isinstance(own, list) else own.update)(held)
        return bool(changed)


def _variables(module: nn.Module) -> Iterator[Any]:
    """What the functions of a module's class, and those among its attributes, find in their closures and globals."""
    classes = filter(is_users, type(module).__mro__)
    for value in (*vars(module).values(), *(value for kind in classes for value in vars(kind).values())):
        if isinstance(value, FunctionType):
            with suppress(ValueError):  # a variable that has no value yet
                nonlocals, found, *_ = getclosurevars(value)
                yield from (*nonlocals.values(), *found.values())


def _differ(own: Any, held: Any) -> bool:
    values = (own, held) if isinstance(own, list) else (own.values(), held.values())
    return len(own) != len(held) or any(a is not b for a, b in zip(*values, strict=True))
