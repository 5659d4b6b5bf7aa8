"""What is made of types that differ only in sizes: compiled for some, found between these for the others.

What passes, layouts and tables do follows from a type's structure; what they say of sizes - strides, columns, entries -
are sums and products of them. So along a line of types, as one length varies, each integer in what is made is a
polynomial. Which ones these are is found out from what has been compiled, and has to be right for all of that. It is
believed between two types that were compiled: whatever a size is compared with lies before both, or after both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable
from math import gcd
from typing import Any, NamedTuple, TypeVar

import numpy as np

from edbatch.base.forms import Form, form_of, made_of, with_known
from edbatch.errors import EdBatchError
from edbatch.graph.node_type import NodeType
from edbatch.runtime.compile.structure import structure_of

T = TypeVar("T")

LEAST = 4  # types of a line that are compiled: a polynomial of degree 2, and one that it was not made of
MOST = 24  # types of a family that are kept; then all are forgotten
MOST_OPERANDS = 16  # of types whose structure is looked at: to look takes a while, and the next has one more
FURTHER = 16  # sizes that are tried for a type beyond all others

enabled = True  # set by tests, which compare with what is compiled


def made_for(
    type: NodeType,
    what: Hashable,
    make: Callable[[NodeType], T],
    backend: Any = None,
    is_right: Callable[[T], bool] = lambda _: True,
) -> T:
    """What is made of a type; nobody may change it.

    Args:
        what: is made: a key, the same for all types.
        make: makes it, of any type of the same structure.
        backend: for which; None: it is the same for all.
        is_right: whether what was found is right now; else all that was compiled is forgotten.
    """
    if not enabled or len(type.operands) > MOST_OPERANDS:
        return make(type)
    structure, sizes = structure_of(type)
    if not structure.is_ours:
        return make(type)
    families = structure.families if backend is None else structure.of_backends.setdefault(backend, {})
    family = families.get(what)
    if family is None:
        family = families[what] = Family()

    def compiled_at(sizes: tuple[int, ...]) -> bool:
        further = structure.type(sizes)
        if further is None:
            return False
        try:
            family.add(sizes, make(further))
        except Exception:  # of what an op is written with, which nobody has asked for with these sizes
            return False
        return True

    found = family.find(sizes, compiled_at)
    if found is not None:
        try:
            value: T = made_of(*found)
        except EdBatchError:  # as of a view that takes a copy
            return make(type)
        if is_right(value):
            return value
        family.forget()
    made = make(type)
    family.add(sizes, made)
    return made


class Sample(NamedTuple):
    """What was compiled.

    Attributes:
        at: where on a line.
        form, integers: of what was compiled.
    """

    at: int
    form: Form
    integers: np.ndarray


class Line:
    """Types of one structure whose sizes lie on a line.

    Attributes:
        samples: those that were compiled.
        ends: whether no type was found beyond these, when one was looked for.
    """

    def __init__(self) -> None:
        self.ends = False
        self.samples: list[Sample] = []  # in order; another list whenever there are more
        self._fitted: dict[int, tuple[Form, np.ndarray] | None] = {}

    def add(self, sample: Sample) -> None:
        """One more type."""
        if all(sample.at != other.at for other in self.samples):
            self._fitted = {}  # first: an interrupt may come at any time
            self.samples = sorted([*self.samples, sample], key=lambda one: one.at)

    def find(self, at: int) -> tuple[Form, np.ndarray] | None:
        """Form and integers of what lies between two that are alike."""
        samples = self.samples
        next = bisect_left(samples, at, key=lambda one: one.at)
        if not 0 < next < len(samples) or samples[next - 1].form is not samples[next].form:
            return None
        form = samples[next].form
        if id(form) not in self._fitted:
            self._fitted[id(form)] = _fitted([one for one in samples if one.form is form], samples[0].at)
        fitted = self._fitted[id(form)]
        integers = None if fitted is None else _at(fitted[1], at - samples[0].at)
        return None if fitted is None or integers is None else (fitted[0], integers.astype(np.int64))


class Family:
    """What is made of types of one structure."""

    def __init__(self) -> None:
        self._samples: dict[tuple[int, ...], tuple[Form, np.ndarray]] = {}
        self._lines: dict[tuple[tuple[int, ...], tuple[int, ...]], Line] = {}
        self._forms: dict[Form, Form] = {}

    def forget(self) -> None:
        """Begin anew."""
        for known in (self._samples, self._lines, self._forms):
            known.clear()

    def add(self, sizes: tuple[int, ...], made: Any) -> None:
        """What was compiled of a type."""
        if sizes in self._samples:
            return
        if len(self._samples) >= MOST:
            self.forget()
        integers: list[int] = []
        form = form_of(made, integers)
        form = self._forms.setdefault(form, form)
        sample = form, np.array(integers, np.float64)
        for other, (its_form, its_integers) in self._samples.items():
            key, at, there = _line(sizes, other)
            if min(key[0]) < 0:
                continue
            line = self._lines.get(key)
            if line is None:
                line = self._lines[key] = Line()
            line.add(Sample(there, its_form, its_integers))
            line.add(Sample(at, *sample))
        self._samples[sizes] = sample

    def find(
        self, sizes: tuple[int, ...], compiled_at: Callable[[tuple[int, ...]], bool]
    ) -> tuple[Form, np.ndarray] | None:
        """Form and integers of what would be made of a type.

        Args:
            compiled_at: has a type of other sizes compiled, which is beyond this; False: there is none.
        """
        if sizes in self._samples:
            form, integers = self._samples[sizes]
            return form, integers.astype(np.int64)
        for (direction, base), line in list(self._lines.items()):
            if len(line.samples) < LEAST:
                continue
            at = _position(sizes, direction, base)
            if at is None:
                continue
            if at > line.samples[-1].at and not line.ends:
                line.ends = not any(compiled_at(_place(direction, base, 2 * at + more)) for more in range(FURTHER))
            found = line.find(at)
            if found is not None:
                return found
        return None


def _line(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], int, int]:
    """The line through two places: direction and base; and where on it they are."""
    difference = [x - y for x, y in zip(a, b, strict=True)]
    step = gcd(*difference)
    if next(x for x in difference if x) < 0:
        step = -step
    direction = tuple(x // step for x in difference)
    first, slope = next((at, x) for at, x in enumerate(direction) if x)
    here = a[first] // slope
    base = tuple(x - here * d for x, d in zip(a, direction, strict=True))
    return (direction, base), here, here - step


def _place(direction: tuple[int, ...], base: tuple[int, ...], at: int) -> tuple[int, ...]:
    return tuple(x + at * d for x, d in zip(base, direction, strict=True))


def _position(sizes: tuple[int, ...], direction: tuple[int, ...], base: tuple[int, ...]) -> int | None:
    """Where on a line a place is; None: nowhere."""
    first, slope = next((at, x) for at, x in enumerate(direction) if x)
    at = sizes[first] // slope
    return at if _place(direction, base, at) == sizes else None


def _fitted(samples: list[Sample], origin: int) -> tuple[Form, np.ndarray] | None:
    """What varies, and coefficients [3, integers] of polynomials in the distance from an origin; None: these are none.

    The form is that of the samples, with what does not vary filled in.
    """
    if len(samples) < LEAST:
        return None
    (a, form, first), (b, _, middle), (c, _, last) = samples[0], samples[len(samples) // 2], samples[-1]
    a, b, c = a - origin, b - origin, c - origin
    slope = (middle - first) / (b - a)
    bend = ((last - middle) / (c - b) - slope) / (c - a)
    found = np.stack([first - slope * a + bend * a * b, slope - bend * (a + b), bend])
    if not all(_is(_at(found, one.at - origin), one.integers) for one in samples):
        return None
    form, left = with_known(form, first.astype(np.int64), (found[1] != 0) | (found[2] != 0))
    return form, found[:, left]


def _at(polynomials: np.ndarray, x: int) -> np.ndarray | None:
    """Their values; None: one is no integer."""
    found = polynomials[0] + x * (polynomials[1] + x * polynomials[2])
    integers = np.rint(found)
    return integers if np.abs(found - integers).max(initial=0) < 1e-3 else None


def _is(found: np.ndarray | None, integers: np.ndarray) -> bool:
    return found is not None and bool((found == integers).all())
