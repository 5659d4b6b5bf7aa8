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
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from edbatch.base.forms import Form, form_of, made_of, maker_of, with_known
from edbatch.errors import EdBatchError
from edbatch.graph.node_type import NodeType
from edbatch.runtime.compile.structure import Structure, structure_of

T = TypeVar("T")

LEAST = 4  # types of a line that are compiled: a polynomial of degree 2, and one that it was not made of
MOST = 24  # types of a family that are kept; then all are forgotten
MOST_OPERANDS = 16  # of types whose structure is looked at: to look takes a while, and the next has one more
FURTHER = 16  # sizes that are tried for a type beyond all others

ALMOST = 1e-3  # what is not further from an integer is one

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
    try:
        value: T = family.find(sizes, lambda others: _compiled_at(structure, others, make, family))
    except EdBatchError:  # as of a view that takes a copy
        return make(type)
    if value is not NOTHING:
        if is_right(value):
            return value
        family.forget()
    made = make(type)
    family.add(sizes, made)
    return made


def _compiled_at(structure: Structure, sizes: tuple[int, ...], make: Callable[[NodeType], Any], family: Family) -> bool:
    """Have a type of other sizes compiled; False: there is none."""
    further = structure.type(sizes)
    if further is None:
        return False
    try:
        family.add(sizes, make(further))
    except Exception:  # of what an op is written with, which nobody has asked for with these sizes
        return False
    return True


NOTHING: Any = object()  # is found


class Sample(NamedTuple):
    """What was compiled.

    Attributes:
        at: where on a line.
        form, integers: of what was compiled.
    """

    at: int
    form: Form
    integers: np.ndarray


_AT = attrgetter("at")


class Fitted:
    """What lies between two samples that are alike.

    Args:
        form: of it; what does not vary is filled in.
        polynomials: coefficients [degree + 1, integers], from the lowest on, of polynomials in the distance from...
        origin: a place on the line.
    """

    def __init__(self, form: Form, polynomials: np.ndarray, origin: int) -> None:
        self._make, self._polynomials, self._origin = maker_of(form), polynomials, origin
        self._is_whole = bool((polynomials == np.rint(polynomials)).all())

    def made(self, at: int) -> Any:
        """What is made there; `NOTHING`: an integer would be none."""
        found = _at(self._polynomials, at - self._origin)
        if self._is_whole:
            return self._make(found.astype(np.int64))
        integers = np.rint(found)
        return self._make(integers.astype(np.int64)) if np.abs(found - integers).max() < ALMOST else NOTHING


class Line:
    """Types of one structure whose sizes lie on a line.

    Args:
        direction, base: of the line.

    Attributes:
        samples: those that were compiled.
        ends: whether no type was found beyond these, when one was looked for.
    """

    def __init__(self, direction: tuple[int, ...], base: tuple[int, ...]) -> None:
        self.ends = False
        self.samples: list[Sample] = []  # in order; another list whenever there are more
        self._direction, self._base = direction, base
        self._first = next(axis for axis, slope in enumerate(direction) if slope)
        self._fitted: dict[int, Fitted | None] = {}

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
        return NOTHING if fitted is None else fitted.made(at)


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
                line = self._lines[key] = Line(*key)
            line.add(Sample(there, its_form, its_integers))
            line.add(Sample(at, *sample))
        self._samples[sizes] = sample

    def find(self, sizes: tuple[int, ...], compiled_at: Callable[[tuple[int, ...]], bool]) -> Any:
        """What would be made of a type; `NOTHING`: that is not known.

        Args:
            compiled_at: has a type of other sizes compiled, which is beyond this; False: there is none.

        Raises:
            EdBatchError: it cannot be made, as a view that would take a copy.
        """
        if sizes in self._samples:
            form, integers = self._samples[sizes]
            return made_of(form, integers.astype(np.int64))
        for line in list(self._lines.values()):
            if len(line.samples) < LEAST:
                continue
            at = line.position(sizes)
            if at is None:
                continue
            if at > line.samples[-1].at and not line.ends:
                line.ends = not any(compiled_at(line.place(2 * at + more)) for more in range(FURTHER))
            found = line.find(at)
            if found is not NOTHING:
                return found
        return NOTHING


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


def _fitted(samples: list[Sample], origin: int) -> Fitted | None:
    """What lies between samples of one form; None: no polynomials of degree 2 say it."""
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
    return Fitted(form, np.ascontiguousarray(found[: degree + 1, left]), origin)


def _at(polynomials: np.ndarray, x: int) -> np.ndarray:
    """Their values."""
    found = polynomials[-1]
    for coefficients in polynomials[-2::-1]:
        found = coefficients + x * found
    return found
