"""Along which axes the values of equations differ, and the derivative of equations: lines again, made line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from edbatch.errors import EdBatchError
from edbatch.kernels.equations import GRADIENT, GRADIENT_OF_EACH, LIST_AXIS, Line, Lines
from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.expressions import names_of
from edbatch.kernels.language.ir import Compute, Constant, Count, Instruction, Load, Reduce, made_of, operands_of

# By function, what flows to each operand of what flows to the result: of the operands x and y, and the result.
_SLOPES = {
    "add": ("g", "g"),
    "subtract": ("g", "-g"),
    "multiply": ("g * y", "g * x"),
    "divide": ("g / y", "-(g * result) / y"),
    "negate": ("-g",),
    "abs": ("g * ((1 if x > 0 else 0) - (1 if x < 0 else 0))",),
    "exp": ("g * result",),
    "log": ("g / x",),
    "sqrt": ("0.5 * g / result",),
    "tanh": ("g * (1 - result * result)",),
    "sigmoid": ("g * result * (1 - result)",),
    "maximum": ("g if x > y else (0.5 * g if x == y else 0)", "g if y > x else (0.5 * g if x == y else 0)"),
    "minimum": ("g if x < y else (0.5 * g if x == y else 0)", "g if y < x else (0.5 * g if x == y else 0)"),
}

_TO_THE_LARGEST = """
among = 1 if x == result or (x != x and result != result) else 0
g / sum(among) if among else 0
"""
# The result is rounded, which counts where it is large; the weights add up to 1, or are 0 where all entries are -inf.
_BY_WEIGHT = """
weight = exp(x - (0 if result == -inf else result))
total = sum(weight)
g * (weight / (total if total > 0 else 1))
"""
# By reduction, what flows to an entry x. Entries that are the result have equal shares; so have all NaN, where it is.
_REDUCTION_SLOPES = {
    "sum": "g",
    "mean": "g / count",
    "max": _TO_THE_LARGEST,
    "min": _TO_THE_LARGEST,
    "logsumexp": _BY_WEIGHT,
}


def axes_of(
    value: int, instructions: Sequence[Instruction], of_place: Callable[[int], Iterable[str]], reduced: frozenset[str]
) -> frozenset[str]:
    """The axes along which a value differs."""
    step = instructions[value]
    if isinstance(step, Load):
        return frozenset(of_place(step.place))
    below = (axes_of(operand, instructions, of_place, reduced) for operand in operands_of(step))
    found = frozenset[str]().union(*below)
    return found - reduced if isinstance(step, Reduce) else found


def check_axes(lines: Lines) -> None:
    """Refuse lines that say several numbers of one entry: all but one would be lost.

    Raises:
        EdBatchError: there is no line, a value differs along an axis that its target lacks, or the result has one for
            each element of a list.

    Example:
        >>> check_axes(Lines(("x[e,d]",), "out[d] = sum_e(x) + x"))
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: the equation of 'out': differs along axis e, which 'out' does not have
    """
    if not lines.lines:
        raise EdBatchError("expected at least one equation")
    for line in lines.lines:
        of_place = [lines.axes(name) for name in line.names].__getitem__
        found = axes_of(line.value, line.instructions, of_place, line.reduced) - set(lines.axes(line.target))
        for axis in sorted(found):
            raise EdBatchError(
                f"the equation of {line.target!r}: differs along axis {axis}, which {line.target!r} does not have"
            )
    if LIST_AXIS in lines.axes(lines.result):
        raise EdBatchError(
            f"the equation of {lines.result!r}, the result: expected no axis {LIST_AXIS}, that of the lists"
        )


def derivative(lines: Lines, needed: frozenset[str]) -> tuple[Line, ...]:
    """The lines that compute the gradients of some operands, of operands, the result and its gradient.

    What is the same for all elements of a list is computed once for all of them (`GRADIENT_OF_EACH`).

    Raises:
        EdBatchError: a line has no derivative.
    """
    depends = set(needed)
    for line in lines.lines:
        depends |= {line.target} if depends & set(line.names) else set()
    found: list[Line] = []
    for line in reversed(lines.lines):
        if line.target == lines.result or GRADIENT + line.target in {one.target for one in found}:
            found += _back(lines, line, depends, {one.target for one in found})
    read = {name for line in found for name in names_read(line)}
    again: list[Line] = []
    for line in reversed(lines.lines[:-1]):
        if line.target in read:
            again.insert(0, line)
            read |= set(line.names)
    return (*again, *(_of_each(line, lines, found) for line in found))


def passes_on(line: Line, lines: Lines) -> bool:
    """Whether what a line computes is the gradient of the result as it is, for each element of a list."""
    step, given = line.instructions[line.value], GRADIENT + lines.result
    unchanged = isinstance(step, Load) and line.names[step.place] == given
    return unchanged and line.target.startswith(GRADIENT_OF_EACH) and lines.axes(line.target) == lines.axes(given)


def names_read(line: Line) -> set[str]:
    """The names of what a line's value is made of."""
    used = (line.instructions[number] for number in made_of(line.instructions, [line.value]))
    return {line.names[step.place] for step in used if isinstance(step, Load)}


def _of_each(line: Line, lines: Lines, found: list[Line]) -> Line:
    """A line of `found`; if it is all that flows to an operand, and the same for all elements, as such."""
    name = line.target.removeprefix(GRADIENT)
    alone = name in lines.operands and sum(one.target == line.target for one in found) == 1
    varies = axes_of(line.value, line.instructions, lambda place: lines.axes(line.names[place]), line.reduced)
    if alone and LIST_AXIS in lines.axes(name) and LIST_AXIS not in varies:
        return replace(line, target=GRADIENT_OF_EACH + name)
    return line


def _back(lines: Lines, line: Line, depends: set[str], before: set[str]) -> list[Line]:
    """What flows through a line to the values that it reads, of those in `depends`."""
    flowing = _Flowing(line, lines)
    found: list[Line] = []
    for name in (name for name in line.names if name in depends):
        for more, value in flowing.to(name).items():
            adds = GRADIENT + name in before
            before.add(GRADIENT + name)
            found.append(_summed(lines, line, name, more, value, adds))
    return found


def _summed(lines: Lines, line: Line, name: str, more: frozenset[str], value: int, adds: bool) -> Line:
    """What flows through a line to a value that it reads, summed over axes that this has not."""
    flowing = _Flowing(line, lines)
    sums = any(isinstance(step, Reduce) for step in flowing.below(value))
    if sums and more not in (frozenset(), line.reduced):
        raise EdBatchError(
            f"the gradient of {name!r} through the equation of {line.target!r} would be a sum over {sorted(more)} "
            f"of sums over {sorted(line.reduced)}; expected these in equations of their own"
        )
    if more:
        value = flowing.make.reduce("sum", value)
    reduced = line.reduced if sums else more
    return Line(GRADIENT + name, flowing.make.instructions, value, flowing.names, reduced, adds, line.reduced)


class _Flowing:
    """What flows back through the instructions of a line: each is linear in what flows to it.

    So what flows may have more axes than what it flows to: the sum over these is taken at the end, also over those
    along which it is the same. Only a reduction over some of them, which spreads what flows to it over its axes, wants
    that summed up before.
    """

    def __init__(self, line: Line, lines: Lines) -> None:
        self.make = Builder()
        for step in line.instructions:
            self.make.add(step)
        self.names = (*line.names, GRADIENT + line.target, line.target)
        self._line, self._lines = line, lines
        self._flows: dict[int, dict[frozenset[str], int]] = {}  # per value, by the axes to sum over
        self._run()

    def to(self, name: str) -> dict[frozenset[str], int]:
        """What flows to a value that is read, by the axes over which it has to be summed up."""
        return self._flows.get(self.make.add(Load(self._line.names.index(name), ())), {})

    def below(self, value: int) -> list[Instruction]:
        """What a value is made of."""
        return [self.make.instructions[one] for one in made_of(self.make.instructions, [value])]

    def _axes(self, value: int) -> frozenset[str]:
        return axes_of(value, self.make.instructions, self._axes_of_place, self._line.reduced)

    def _axes_of_place(self, place: int) -> tuple[str, ...]:
        return self._lines.axes(self.names[place])

    def _run(self) -> None:
        line, make = self._line, self.make
        of_target = frozenset(self._lines.axes(line.target))
        self._add(line.value, of_target - self._axes(line.value), make.add(Load(len(line.names), ())))
        for number in range(len(line.instructions) - 1, -1, -1):
            for more, flow in [*self._flows.get(number, {}).items()]:
                match line.instructions[number]:
                    case Compute("same"):
                        pass
                    case Reduce(function, value):
                        self._through_reduction(number, function, value, more, flow)
                    case Compute(function, operands):
                        self._through(number, function, operands, more, flow)

    def _through_reduction(self, number: int, function: str, value: int, more: frozenset[str], flow: int) -> None:
        make, slope, reduced = self.make, _REDUCTION_SLOPES[function], self._line.reduced
        if more & reduced:
            flow, more = make.reduce("sum", flow), more - reduced
        given = {"g": flow, "x": value, "count": make.add(Count(0))}
        # What is all of a line is at hand; but not to be compared with what this kernel computes again.
        compared = function in ("max", "min") and not isinstance(self._line.instructions[value], Load)
        at_hand = number == self._line.value and not compared
        given["result"] = make.add(Load(len(self._line.names) + 1, ())) if at_hand else number
        flow = make.expression(slope, **{name: given[name] for name in names_of(slope)})
        self._add(value, more | reduced - self._axes(value), flow)

    def _through(self, number: int, function: str, operands: tuple[int, ...], more: frozenset[str], flow: int) -> None:
        if function not in _SLOPES:
            raise EdBatchError(f"the equation of {self._line.target!r}: no derivative of {function!r} is known")
        given = dict(zip("xy", operands, strict=False)) | {"g": flow, "result": number}
        for operand, slope in zip(operands, _SLOPES[function], strict=True):
            if not isinstance(self._line.instructions[operand], Constant):
                lost = self._axes(number) - self._axes(operand)
                self._add(operand, more | lost, self.make.expression(slope, **given))

    def _add(self, value: int, more: frozenset[str], flow: int) -> None:
        flows = self._flows.setdefault(value, {})
        flows[more] = self.make.compute("add", flows[more], flow) if more in flows else flow
