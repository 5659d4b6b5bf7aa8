"""Types along a line of sizes: what is made of those between two that were compiled is found by polynomials."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from edbatch.base.forms import Form, made_of, with_known

LEAST = 4  # types of a line that are compiled: a polynomial of degree 2, and one that it was not made of
ALMOST = 1e-3  # what is not further from an integer is one

NOTHING: Any = object()  # is found


class Sample(NamedTuple):
    """What was compiled at a place on a line."""

    at: int
    form: Form
    integers: np.ndarray


_AT = attrgetter("at")


class Line:
    """Types of one structure whose sizes lie on a line.

    Attributes:
        samples: those that were compiled.
        ends: whether no type was found beyond these, when one was looked for.
    """

    def __init__(self, direction: tuple[int, ...], base: tuple[int, ...]) -> None:
        self.ends = False
        self.samples: list[Sample] = []  # in order; another list whenever there are more
        self._direction, self._base = direction, base
        self._first = next(axis for axis, slope in enumerate(direction) if slope)
        self._fitted: dict[int, Callable[[int], Any] | None] = {}

    def add(self, sample: Sample) -> None:
        """One more type."""
        if all(sample.at != other.at for other in self.samples):
            self._fitted = {}  # first: an interrupt may come at any time
            self.samples = sorted([*self.samples, sample], key=_AT)

    def place(self, at: int) -> tuple[int, ...]:
        """The sizes of a type."""
        return tuple([x + at * slope for x, slope in zip(self._base, self._direction, strict=True)])

    def position(self, sizes: tuple[int, ...]) -> int | None:
        """Where a type is; None: nowhere."""
        at = sizes[self._first] // self._direction[self._first]
        return at if self.place(at) == sizes else None

    def find(self, at: int) -> Any:
        """What lies between two that are alike; `NOTHING`: these are not, or no polynomial says it."""
        samples = self.samples
        next = bisect_left(samples, at, key=_AT)
        if not 0 < next < len(samples) or samples[next - 1].form is not samples[next].form:
            return NOTHING
        form = samples[next].form
        key = id(form)
        if key not in self._fitted:
            self._fitted[key] = _fitted([one for one in samples if one.form is form], samples[0].at)
        fitted = self._fitted[key]
        return NOTHING if fitted is None else fitted(at)


def _fitted(samples: list[Sample], origin: int) -> Callable[[int], Any] | None:
    """Makes what lies at a place between samples of one form (`NOTHING`: an integer would be none).

    None: no polynomials of degree 2 say it.
    """
    if len(samples) < LEAST:
        return None
    (a, form, first), (b, _, middle), (c, _, last) = samples[0], samples[len(samples) // 2], samples[-1]
    a, b, c = a - origin, b - origin, c - origin
    slope = (middle - first) / (b - a)
    bend = ((last - middle) / (c - b) - slope) / (c - a)
    found = np.stack([first - slope * a + bend * a * b, slope - bend * (a + b), bend])
    if any(np.abs(_at(found, one.at - origin) - one.integers).max(initial=0) >= ALMOST for one in samples):
        return None
    varies = (found[1] != 0) | (found[2] != 0)
    form, left = with_known(form, first.astype(np.int64), varies)
    degree = 2 if found[2].any() else 1
    # Coefficients [degree + 1, integers], from the lowest on; what does not vary is in the form.
    polynomials = np.ascontiguousarray(found[: degree + 1, left])
    is_whole = bool((polynomials == np.rint(polynomials)).all())

    def made(at: int) -> Any:
        found = _at(polynomials, at - origin)
        if is_whole:
            return made_of(form, found.astype(np.int64))
        integers = np.rint(found)
        return made_of(form, integers.astype(np.int64)) if np.abs(found - integers).max() < ALMOST else NOTHING

    return made


def _at(polynomials: np.ndarray, x: int) -> np.ndarray:
    """Their values."""
    found = polynomials[-1]
    for coefficients in polynomials[-2::-1]:
        found = coefficients + x * found
    return found
