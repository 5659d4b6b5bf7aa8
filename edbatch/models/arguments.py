"""The check of what models and layers are made of, before anything is made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec

import edbatch as eb
from edbatch.base.numbers import checked_integer, checked_real
from edbatch.errors import shown

P = ParamSpec("P")
MOST = 2**31 - 1  # of what an index may tell apart
MOST_MADE = 10_000  # parts that each have parameters of their own
_PARTS = ("experts", "layers", "relations")


def checked(init: Callable[P, None]) -> Callable[P, None]:
    """Have an `__init__` check its arguments by their annotations; numbers become plain ones.

    Raises:
        EdBatchError: one is of another kind, or out of range; the message has the class, its name and what is expected.

    Example:
        >>> import edbatch as eb
        >>> eb.models.LSTM(eb.ParameterCollection(), 3, dim="4")
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: LSTM: dim='4'; expected an integer of at least 0
    """
    known = signature(init)
    kinds = {name: _KINDS[p.annotation] for name, p in known.parameters.items() if p.annotation in _KINDS}

    @wraps(init)
    def call(*args: P.args, **keywords: P.kwargs) -> None:
        try:
            given = known.bind(*args, **keywords)
        except TypeError:  # too few, too many, or of other names, which Python says better
            return init(*args, **keywords)
        place = type(args[0]).__name__
        for name, value in given.arguments.items():
            if name in kinds:
                given.arguments[name] = kinds[name](place, name, value)
        return init(*given.args, **given.kwargs)

    return call


def _one_of(what: str, fits: Callable[[Any], bool]) -> Callable[[str, str, Any], Any]:
    def check(place: str, name: str, value: Any) -> Any:
        if not fits(value):
            raise eb.EdBatchError(f"{place}: {name}={shown(value)}; expected {what}")
        return value

    return check


def _number(place: str, name: str, value: Any) -> int:
    return checked_integer(place, name, value, least=0, most=MOST_MADE if name in _PARTS else MOST)


def _rate(place: str, name: str, value: Any) -> float:
    return checked_real(place, name, value, below=1)


def _numbers(place: str, name: str, value: Any) -> dict[str, int]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise eb.EdBatchError(f"{place}: {name}={shown(value)}; expected a dictionary of numbers by name")
    return {key: _number(place, f"{name}[{key!r}]", number) for key, number in value.items()}


def _is_layer(value: Any) -> bool:
    return hasattr(value, "initial_state")


# By annotation, as it is written.
_KINDS: dict[Any, Callable[[str, str, Any], Any]] = {
    "eb.ParameterCollection": _one_of("a ParameterCollection", lambda x: isinstance(x, eb.ParameterCollection)),
    "int": _number,
    "float": _rate,
    "str | None": _one_of("a name", lambda x: x is None or isinstance(x, str)),
    "dict[str, int]": _numbers,
    "Recurrent | Stacked": _one_of("a layer, or several stacked", _is_layer),
    "Sequence[Recurrent]": _one_of("a list of layers", lambda x: isinstance(x, Sequence) and all(map(_is_layer, x))),
}
