"""Equations over named axes: what an op over lists computes, line by line (its derivative: `equation_gradients`).

    score[e,h] = scale * sum_d(query * key)
    weight[e,h] = exp(score - stop_gradient(max_e(score))) / sum_e(exp(score - stop_gradient(max_e(score))))
    out[h,c] = sum_e(weight * value)

Axes are letters. Axis e is that of a node's lists, as long as these are; the sizes of the others belong to the node's
type. A value with axis e has an entry for each element, others one for each node; what lacks an axis is the same along
it. A line is an expression of `kernels.language.expressions` with reductions over axes, all over the same ones, and
becomes one kernel. What is written to is read by later lines; the last is the result.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, partial, reduce

from edbatch.errors import EdBatchError
from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.expressions import evaluate, names_of
from edbatch.kernels.language.ir import (
    NEXT,
    RUN,
    SAME,
    Compute,
    Count,
    Instruction,
    Kernel,
    Load,
    Place,
    Reduce,
    Store,
    made_of,
)

LIST_AXIS = "e"
NUMBERS = "the numbers"  # the place of those that are attributes
GRADIENT = "gradient of "  # before a name
GRADIENT_OF_EACH = "gradient of each "  # before the name of a list whose elements all have the same: it has no axis e
_VALUE = re.compile(r"(\w+)\[([\w,]*)\]")
_LINE = re.compile(r"(\w+\[[\w,]*\]) = (.+)")
_REDUCTION = re.compile(r"(sum|max|min|mean|logsumexp)_([a-z]+)")

#: Those that are written with others: of the entries x of a group of so many.
WRITTEN = {
    "mean": "sum(x) / count",
    # Entries of -inf contribute nothing, all of them give -inf.
    "logsumexp": """
top = max(x)
shift = top if abs(top) < inf else 0
log(sum(exp(x - shift))) + shift
""",
}


@dataclass(frozen=True)
class Line:
    """One equation.

    Args:
        target: the name of what it computes.
        instructions: what is computed of an entry; a load's place is the number of its name in `names`, a count is of
            `counted`, reductions may be those of `WRITTEN`, and no gradient flows through the function "same".
        value: which of them is stored.
        names: of what it reads.
        reduced: the axes that its reductions are over.
        adds: whether the value is added to what is there.
        counted: the axes whose entries a count is of.
    """

    target: str
    instructions: tuple[Instruction, ...]
    value: int
    names: tuple[str, ...]
    reduced: frozenset[str]
    adds: bool = False
    counted: frozenset[str] = frozenset()


@dataclass(frozen=True)
class LineKernel:
    """A line as a kernel.

    Attributes:
        kernel: the kernel.
        names: of its places.
        axes: of the kernel.
        strides: of each stride that it is given, the axis, and the name of the value whose distance along it is meant.
    """

    kernel: Kernel
    names: tuple[str, ...]
    axes: tuple[str, ...]
    strides: tuple[tuple[str, str], ...]


class Lines:
    """The lines of an op, parsed; names that are no value are numbers, attributes of the type: entries of one row.

    Args:
        operands: as "query[h,d]"; those with axis e are lists, and come last.
        text: the lines.

    Attributes:
        operands: their names.
        lines: in order.

    Raises:
        EdBatchError: a line is none.

    Example:
        >>> found = Lines(("x[e,d]",), "total[d] = sum_e(x * x)")
        >>> found.axes("total"), found.lines[0].reduced
        (('d',), frozenset({'e'}))
    """

    def __init__(self, operands: Iterable[str], text: str) -> None:
        self._axes: dict[str, tuple[str, ...]] = {}
        self.operands = tuple(self._declared(operand) for operand in operands)
        found = []
        for line in filter(None, map(str.strip, text.splitlines())):
            match = _LINE.fullmatch(line)
            if match is None:
                raise EdBatchError(f"the equation {line!r}: expected name[axes] = expression")
            found.append(_parsed(self._declared(match[1]), match[2]))
        self.lines = tuple(found)

    def axes(self, name: str) -> tuple[str, ...]:
        """Those of a value, or of its gradient; of a number none."""
        if name.startswith(GRADIENT_OF_EACH):
            return tuple(axis for axis in self.axes(name.removeprefix(GRADIENT_OF_EACH)) if axis != LIST_AXIS)
        return self._axes.get(name.removeprefix(GRADIENT), ())

    @property
    def result(self) -> str:
        """The name of what the last line computes."""
        return self.lines[-1].target

    def kernel(self, line: Line, numbers: tuple[str, ...], dtype: str) -> LineKernel:
        """A line as a kernel, given the names of the type's numbers in the order in which they lie in NUMBERS."""
        values = {before + name for name in self._axes for before in ("", GRADIENT, GRADIENT_OF_EACH)}
        read = dict.fromkeys(name for name in (*line.names, line.target) if name in values)
        return _kernel(line, tuple((name, self.axes(name)) for name in read), numbers, dtype)

    def _declared(self, text: str) -> str:
        match = _VALUE.fullmatch(text)
        if match is None or match[1] in self._axes:
            raise EdBatchError(f"the value {text!r}: expected a name of its own, and axes: name[axes]")
        self._axes[match[1]] = tuple(filter(None, match[2].split(",")))
        return match[1]


@cache
def lines_of(operands: tuple[str, ...], text: str) -> Lines:
    """The equations of an op, parsed."""
    return Lines(operands, text)


def _parsed(target: str, text: str) -> Line:
    make, names, over = Builder(), tuple(names_of(text)), set[str]()

    def called(function: str, operands: list[int]) -> int:
        nonlocal over
        reduction = _REDUCTION.fullmatch(function)
        if reduction is not None:
            if over not in (set(), set(reduction[2])):
                raise EdBatchError("expected all reductions over the same axes")
            over = set(reduction[2])
            return make.reduce(reduction[1], *operands)
        if function == "stop_gradient":
            return make.add(Compute("same", tuple(operands)))
        return make.called(function, operands)

    read = {name: make.add(Load(at, ())) for at, name in enumerate(names)}
    value = evaluate(text, read, lambda literal: make.number(float(literal)), called)
    return Line(target, make.instructions, value, names, frozenset(over))


@cache
def _kernel(
    line: Line, axes: tuple[tuple[str, tuple[str, ...]], ...], numbers: tuple[str, ...], dtype: str
) -> LineKernel:
    of: dict[str, tuple[str, ...]] = {**dict(axes), NUMBERS: ()}
    used = sorted(made_of(line.instructions, [line.value]))
    read = [step.place for number in used if isinstance(step := line.instructions[number], Load)]
    names = [line.names[place] for place in read if line.names[place] in of]
    names += [line.target] if line.target not in names else []
    names += [NUMBERS] if any(line.names[place] in numbers for place in read) else []
    steps = [line.instructions[number] for number in used]
    reduced = line.reduced if any(isinstance(step, Reduce) for step in steps) else frozenset[str]()
    counted = line.counted if any(isinstance(step, Count) for step in steps) else frozenset[str]()
    inside = reduced | (counted - set(of[line.target]))
    every = dict.fromkeys((*(axis for name in names for axis in of[name]), *sorted(inside | counted)))
    order = sorted(every, key=lambda axis: (axis in inside, axis != LIST_AXIS))
    make, new = Builder(), {}  # type: Builder, dict[int, int]

    def strides(name: str) -> tuple[int, ...]:
        own = [axis for axis in of[name] if axis != LIST_AXIS]
        return tuple(SAME if axis not in own else NEXT if axis == own[-1] else RUN for axis in order)

    def count(axes: frozenset[str]) -> int:
        counts = [make.add(Count(at)) for at, axis in enumerate(order) if axis in axes]
        return reduce(partial(make.compute, "multiply"), counts)

    for number in used:
        match line.instructions[number]:
            case Count():
                new[number] = count(counted)
            case Reduce(function, value) if function in WRITTEN:
                given_to = {"x": new[value]} | ({"count": count(reduced)} if "count" in WRITTEN[function] else {})
                new[number] = make.expression(WRITTEN[function], **given_to)
            case Load(place) if line.names[place] in of:
                name = line.names[place]
                new[number] = make.add(Load(names.index(name), strides(name)))
            case Load(place) if line.names[place] in numbers:
                entry = numbers.index(line.names[place])
                new[number] = make.add(Load(names.index(NUMBERS), strides(NUMBERS), entry=entry))
            case Load(place):
                raise EdBatchError(f"the equation of {line.target!r}: {line.names[place]!r} is no value and no number")
            case Compute(function, operands):
                new[number] = make.compute(function, *(new[operand] for operand in operands))
            case Reduce(function, value):
                new[number] = make.reduce(function, new[value])
            case step:
                new[number] = make.add(step)
    store = Store(new[line.value], names.index(line.target), strides(line.target), add=line.adds)
    inner = len(inside)
    places = tuple(Place(elements=LIST_AXIS in of[name], once=name == NUMBERS) for name in names)
    list_axis = order.index(LIST_AXIS) if LIST_AXIS in order else None
    kernel = Kernel(len(order) - inner, inner, places, make.instructions, (store,), list_axis, dtype)
    words = tuple(
        (order[at], names[access.place])
        for access in kernel.accesses
        for at, stride in enumerate(access.strides)
        if stride == RUN
    )
    return LineKernel(kernel, tuple(names), tuple(order), words)


def entries(axes: Iterable[str], sizes: dict[str, int]) -> int:
    """How many entries a value has, of a node or of an element."""
    return math.prod(sizes[axis] for axis in axes if axis != LIST_AXIS)


def distance(axis: str, axes: tuple[str, ...], sizes: dict[str, int]) -> int:
    """Entries between neighbours along an axis of a value."""
    return entries(axes[axes.index(axis) + 1 :], sizes)
