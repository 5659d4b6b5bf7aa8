"""Types that differ in sizes alone, as one length varies: compiled for some lengths, found between these for others.

A structure says which sizes are equal, which are 0 or 1, and which divide which. Passes, layouts and tables follow from
that; what they say of sizes - strides, columns, entries - are sums and products of them. So along a line of types, as
one length varies, each integer in what is made is a polynomial. It is found from what has been compiled, has to be
right for all of that, and is believed between two types that were compiled: whatever a size is compared with lies
before both, or after both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import combinations
from math import comb, gcd, prod
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from edbatch.base.exact import exact
from edbatch.graph import shape_rules
from edbatch.graph.cell.body import Node
from edbatch.graph.cell.entry import CellOp
from edbatch.graph.node_type import Attributes, NodeType
from edbatch.graph.op import Op
from edbatch.graph.spec import ParameterSpec, Spec, spec_of

T = TypeVar("T")

MOST_STRUCTURES = 2048  # then all are forgotten
MOST_SAMPLES = 24  # types of a family that are kept; then all are forgotten
MOST_OPERANDS = 16  # of types whose structure is looked at: to look takes a while, and the next has one more
MOST_FACTORS = 512  # sizes, and products of them, of a structure; a type with more has its own
LEAST_SAMPLES = 4  # of a line: a polynomial of degree 2, and one that it was not made of
ALMOST = 1e-3  # what is not further from an integer is one

# Attributes that say sizes. What else is an integer, as an axis, belongs to the structure.
SIZES = frozenset({"shape_to", "index", "size"})
NOTHING: Any = object()  # is found

enabled = True  # set by tests, which compare with what is compiled


def made_for(
    type: NodeType, what: Hashable, make: Callable[[NodeType], T], is_right: Callable[[T], bool] = lambda _: True
) -> T:
    """What is made of a type; nobody may change it.

    Args:
        what: is made: a key, the same for all types.
        make: makes it, of any type of the same structure.
        is_right: whether what was found is right now; else all that was compiled is forgotten.
    """
    if not enabled or len(type.operands) > MOST_OPERANDS or _is_cell_of_vectors(type):
        return make(type)
    families, sizes = _structure_of(type)
    if families is None:
        return make(type)
    family = families.get(what)
    if family is None:
        family = families[what] = Family()
    value: T = family.find(sizes)
    if value is not NOTHING:
        if is_right(value):
            return value
        family.forget()
    made = make(type)
    family.add(sizes, made)
    return made


def _is_cell_of_vectors(type: NodeType) -> bool:
    """Whether it is a cell's that is hardly ever called with other sizes; to look at its whole body takes a while."""
    return isinstance(type.op, CellOp) and all(len(spec.shape) < 2 for spec in type.operands)


class Sample(NamedTuple):
    """What was compiled of a type, taken apart; `at`: where on a line the type is."""

    at: int
    form: Form
    integers: np.ndarray


_AT = attrgetter("at")


class Family:
    """What is made of the types of one structure."""

    def __init__(self) -> None:
        self._samples: dict[tuple[int, ...], Sample] = {}
        self._lines: dict[tuple[tuple[int, ...], tuple[int, ...]], _Line] = {}  # by direction and base
        self._forms: dict[Form, Form] = {}

    def forget(self) -> None:
        """Begin anew."""
        for known in (self._samples, self._lines, self._forms):
            known.clear()

    def add(self, sizes: tuple[int, ...], made: Any) -> None:
        """What was compiled of a type."""
        if sizes in self._samples:
            return
        if len(self._samples) >= MOST_SAMPLES:
            self.forget()
        integers: list[int] = []
        form = form_of(made, integers)
        sample = Sample(0, self._forms.setdefault(form, form), np.array(integers, np.int64))
        for others, other in self._samples.items():
            difference = [x - y for x, y in zip(sizes, others, strict=True)]
            step = gcd(*difference)
            direction = tuple(x // step for x in difference)
            if max(direction) <= 0:
                step, direction = -step, tuple(-x for x in direction)
            if min(direction) < 0:
                continue
            first = next(axis for axis, slope in enumerate(direction) if slope)
            at = sizes[first] // direction[first]
            base = tuple(x - at * slope for x, slope in zip(sizes, direction, strict=True))
            line = self._lines.get((direction, base))
            if line is None:
                line = self._lines[direction, base] = _Line(direction, base, first)
            line.add(other._replace(at=at - step))
            line.add(sample._replace(at=at))
        self._samples[sizes] = sample

    def find(self, sizes: tuple[int, ...]) -> Any:
        """What would be made of a type; `NOTHING`: that is not known."""
        if sizes in self._samples:
            _, form, integers = self._samples[sizes]
            return made_of(form, integers)
        for line in self._lines.values():
            if len(line.samples) >= LEAST_SAMPLES:
                found = line.find(sizes)
                if found is not NOTHING:
                    return found
        return NOTHING


class _Line:
    """Types of one structure whose sizes lie on a line: its `base`, and so many times its `direction`."""

    def __init__(self, direction: tuple[int, ...], base: tuple[int, ...], first: int) -> None:
        self.samples: list[Sample] = []  # in order; another list whenever there are more
        self._direction, self._base, self._first = direction, base, first
        self._polynomials: dict[int, np.ndarray | None] = {}  # by the form, which samples hold

    def add(self, sample: Sample) -> None:
        """One more type."""
        if all(sample.at != other.at for other in self.samples):
            self._polynomials = {}  # first: an interrupt may come at any time
            self.samples = sorted([*self.samples, sample], key=_AT)

    def find(self, sizes: tuple[int, ...]) -> Any:
        """What lies between two that are alike; `NOTHING`: these are not, or no polynomial says it."""
        at = sizes[self._first] // self._direction[self._first]
        if any(x + at * slope != size for x, slope, size in zip(self._base, self._direction, sizes, strict=True)):
            return NOTHING
        samples = self.samples
        next = bisect_left(samples, at, key=_AT)
        if not 0 < next < len(samples) or samples[next - 1].form is not samples[next].form:
            return NOTHING
        form, origin = samples[next].form, samples[0].at
        key = id(form)
        if key not in self._polynomials:
            self._polynomials[key] = _fitted([one for one in samples if one.form is form], origin)
        polynomials = self._polynomials[key]
        if polynomials is None:
            return NOTHING
        exactly = _values(polynomials, at - origin)
        if polynomials.dtype == np.int64:
            return made_of(form, exactly)
        integers = np.rint(exactly)
        return (
            made_of(form, integers.astype(np.int64)) if np.abs(exactly - integers).max(initial=0) < ALMOST else NOTHING
        )


def _fitted(samples: list[Sample], origin: int) -> np.ndarray | None:
    """Polynomials of degree 2, [coefficients, integers], from the lowest on, of places from an origin on; or none."""
    if len(samples) < LEAST_SAMPLES:
        return None
    (a, _, first), (b, _, middle), (c, _, last) = samples[0], samples[len(samples) // 2], samples[-1]
    a, b, c = a - origin, b - origin, c - origin
    slope = (middle - first) / (b - a)
    bend = ((last - middle) / (c - b) - slope) / (c - a)
    found = np.stack([first - slope * a + bend * a * b, slope - bend * (a + b), bend])
    if any(np.abs(_values(found, one.at - origin) - one.integers).max(initial=0) >= ALMOST for one in samples):
        return None
    whole = np.rint(found)
    return whole.astype(np.int64) if (whole == found).all() else found


def _values(polynomials: np.ndarray, x: int) -> np.ndarray:
    constant, slope, bend = polynomials
    found: np.ndarray = constant + x * (slope + x * bend)
    return found


# Structures.

Families = dict[Any, Family]  # by what is made
_structures: dict[Hashable, Families] = {}


def _structure_of(type: NodeType) -> tuple[Families | None, tuple[int, ...]]:
    """What is made of types of this one's structure, and its sizes.

    None if not all ops in it are written here: what others write may ask of a size whatever they like.
    """
    if type.sizes is None:
        parts, integers = list[Any](), list[int]()
        if not _take_apart(type, parts, integers):
            type.sizes = None, ()
            return type.sizes
        numbers: dict[int, int] = {}
        pattern = tuple([numbers.setdefault(x, len(numbers)) if x > 1 else (x,) for x in integers])
        sizes = tuple(numbers)
        key = tuple(parts), pattern, _divides(sizes, max([len(spec.shape) for spec in (*type.operands, type.out)]))
        families = _structures.get(key)
        if families is None:
            if len(_structures) >= MOST_STRUCTURES:
                _structures.clear()
            for spec in type.parameters:
                spec.enters(_structures, key)
            families = _structures[key] = {}
        type.sizes = families, sizes
    found: tuple[Families | None, tuple[int, ...]] = type.sizes
    return found


def _take_apart(type: NodeType, parts: list[Any], sizes: list[int]) -> bool:
    """Append what a type is made of: what else it says, and all integers that sizes may be compared with.

    Those that are no sizes, as an axis, are among both. False if an op was written by somebody else.
    """
    if isinstance(type.op, CellOp):
        body = type.op.body
        parts.append(len(body.nodes))
        sizes += body.columns
        for node in body.nodes:
            if not _take_apart(node.type, parts, sizes):
                return False
            parts += exact(node.payload), _constant(node), len(node.cuts)
            sizes += node.cuts
        for value in [*body.outputs, *[operand for node in body.nodes for operand in node.operands]]:
            parts += value.node, len(value.steps)
            if value.view is not None:
                _take_spec(value.view.root, parts, sizes)
            for op, attributes in value.steps:
                parts.append(op)
                _take_attributes(attributes, parts, sizes)
    elif is_ours(type.op):
        parts.append(type.op)
    else:
        return False
    parts.append(len(type.operands))
    for spec in (*type.operands, type.out):
        _take_spec(spec, parts, sizes)
    _take_attributes(type.attributes, parts, sizes)
    return True


def _take_spec(spec: Spec, parts: list[Any], sizes: list[int]) -> None:
    parts += spec if spec.__class__ is ParameterSpec else spec.dtype, spec.each, len(spec.shape)
    sizes += spec.shape


def _take_attributes(attributes: Attributes, parts: list[Any], sizes: list[int]) -> None:
    for name, value in attributes:
        rest = _without_integers(value, sizes)
        parts += name, rest if name in SIZES else exact(value)


def _without_integers(value: Any, integers: list[int]) -> Any:
    """What is left of a value of nested tuples when its integers are taken out."""
    if value.__class__ is int:
        integers.append(value)
        return int
    return tuple([_without_integers(part, integers) for part in value]) if isinstance(value, tuple) else value


def _constant(node: Node) -> Hashable:
    """What fills a constant."""
    if isinstance(node.value, np.ndarray):
        return node.value.shape, node.value.dtype, node.value.tobytes()
    return exact(node.value)


@cache
def is_ours(op: Op) -> bool:
    """Whether all that an op is declared by is of this package."""
    written = (op.shape, op.forward, op.places, op.composite, op.unrolled, op.gradient)
    return op.call is None and all(shape_rules.is_ours(one) for one in written if one is not None)


def _divides(sizes: Sequence[int], rank: int) -> Hashable:
    """Which sizes, and products of them, divide which; of very many the sizes themselves.

    Args:
        rank: the axes of a value: places along these are products of fewer sizes.
    """
    if rank <= 2 and len(sizes) < 12:
        return tuple([x % y == 0 for x in sizes for y in sizes])
    at_once = range(1, max(2, min(rank, 4)))
    if sum(comb(len(sizes), n) for n in at_once) > MOST_FACTORS:
        return tuple(sizes)
    factors = np.array([prod(some) for n in at_once for some in combinations(sizes, n)], np.float64)
    return np.packbits(np.remainder(factors[:, None], factors[None]) == 0).tobytes()


# What is made, taken apart into integers and a form, which says all else.

Form = Any  # int, or a tuple that begins with a class, or with None: anything else


def form_of(value: Any, integers: list[int]) -> Form:
    """Return the form of a value, whose integers are appended: arrays are of int64, or of records of these."""
    kind = value.__class__
    if kind is int:
        integers.append(value)
        return int
    if kind is np.ndarray:
        words = value.view(np.int64).tolist() if value.size else []
        integers += words
        return kind, value.dtype, len(words)
    if kind is Spec:
        return kind, value.dtype, value.each, form_of(value.shape, integers)
    if kind is dict:
        return kind, form_of(tuple(value.items()), integers)
    if kind is list or isinstance(value, tuple):
        return (kind, *[form_of(part, integers) for part in value])
    if is_dataclass(kind) and kind.__eq__ is not object.__eq__:
        return (kind, *[form_of(getattr(value, field.name), integers) for field in fields(kind)])
    return None, value


def made_of(form: Form, integers: np.ndarray) -> Any:
    """Make the value of a form and its integers, int64, whose memory arrays share."""
    numbers, at = integers.tolist(), 0

    def make(form: Form) -> Any:
        nonlocal at
        if form is int:
            at += 1
            return numbers[at - 1]
        kind = form[0]
        if kind is None:
            return form[1]
        if kind is np.ndarray:
            begin, at = at, at + form[2]
            return np.frombuffer(integers, form[1], 8 * form[2] // form[1].itemsize, 8 * begin)
        if kind is Spec:
            return spec_of(make(form[3]), form[1], form[2])
        if kind is dict:
            return dict(make(form[1]))
        parts = [make(part) for part in form[1:]]
        return parts if kind is list else tuple(parts) if kind is tuple else kind(*parts)

    return make(form)
