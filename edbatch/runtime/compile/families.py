"""What is made of types that differ only in sizes: compiled for some, found between these for the others.

What passes, layouts and tables do follows from a type's structure; what they say of sizes - strides, columns, entries -
are sums and products of them. So along a line of types, as one length varies, each integer in what is made is a
polynomial. Which ones these are is found out from what has been compiled, and has to be right for all of that. It is
believed between two types that were compiled: whatever a size is compared with lies before both, or after both.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from math import gcd
from typing import Any, TypeVar

import numpy as np

from edbatch.base.forms import Form, form_of, made_of
from edbatch.errors import EdBatchError
from edbatch.graph.cell.entry import CellOp
from edbatch.graph.node_type import NodeType
from edbatch.runtime.compile.line import LEAST, NOTHING, Line, Sample
from edbatch.runtime.compile.structure import Structure, structure_of

T = TypeVar("T")

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
    if not enabled or len(type.operands) > MOST_OPERANDS or _is_cell_of_vectors(type):
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


def _is_cell_of_vectors(type: NodeType) -> bool:
    """Whether it is a cell's that is hardly ever called with other sizes; to look at its whole body takes a while."""
    return isinstance(type.op, CellOp) and all(len(spec.shape) < 2 for spec in type.operands)


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
