"""The derivative of equations over named axes: lines again, made line by line (see `kernels.equations`)."""

from __future__ import annotations

from edbatch.errors import EdBatchError
from edbatch.kernels.equations import GRADIENT, Line, Lines
from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.ir import Compute, Constant, Instruction, Load, Reduce, made_of, operands_of

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


def derivative(lines: Lines, needed: frozenset[str]) -> tuple[Line, ...]:
    """The lines that compute the gradients of some operands, of operands and the result's gradient.

    Raises:
        EdBatchError: a line has no derivative.

    Example:
        >>> lines = Lines(("x[e,d]",), "total[d] = sum_e(x * x)")
        >>> [line.target for line in derivative(lines, frozenset({"x"}))]
        ['gradient of x']
    """
    depends = set(needed)
    for line in lines.lines:
        depends |= {line.target} if depends & set(line.names) else set()
    found: list[Line] = []
    for line in reversed(lines.lines):
        if line.target == lines.result or GRADIENT + line.target in {one.target for one in found}:
            found += _back(lines, line, depends, {one.target for one in found})
    read = {name for line in found for name in line.names}
    again: list[Line] = []
    for line in reversed(lines.lines):
        if line.target in read:
            again.insert(0, line)
            read |= set(line.names)
    return (*again, *found)


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
    reduced = line.reduced if any(isinstance(step, Reduce) for step in flowing.below(value)) else more
    if more not in (frozenset(), reduced):
        raise EdBatchError(
            f"the gradient of {name!r} through the equation of {line.target!r} would be a sum over {sorted(more)} "
            f"of sums over {sorted(reduced)}; expected these in equations of their own"
        )
    if more:
        value = flowing.make.reduce("sum", value)
    return Line(GRADIENT + name, flowing.make.instructions, value, flowing.names, reduced, adds)


class _Flowing:
    """What flows back through the instructions of a line: each is linear in what flows to it.

    So what flows may have more axes than what it flows to: the sum over these is taken at the end. Only a reduction
    over some of them, which spreads what flows to it over its axes, wants that summed up before.
    """

    def __init__(self, line: Line, lines: Lines) -> None:
        self.make = Builder()
        for step in line.instructions:
            self.make.add(step)
        self.names = (*line.names, GRADIENT + line.target)
        self._line, self._lines = line, lines
        self._flows: dict[int, dict[frozenset[str], int]] = {}  # per value, by the axes that it has not
        self._run()

    def to(self, name: str) -> dict[frozenset[str], int]:
        """What flows to a value that is read, by the axes over which it has to be summed up."""
        return self._flows.get(self.make.add(Load(self._line.names.index(name), ())), {})

    def below(self, value: int) -> list[Instruction]:
        """What a value is made of."""
        return [self.make.instructions[one] for one in made_of(self.make.instructions, [value])]

    def _axes(self, value: int) -> frozenset[str]:
        step = self.make.instructions[value]
        if isinstance(step, Load):
            return frozenset(self._lines.axes(self.names[step.place]))
        found = frozenset[str]().union(*(self._axes(operand) for operand in operands_of(step)))
        return found - self._line.reduced if isinstance(step, Reduce) else found

    def _run(self) -> None:
        line, make = self._line, self.make
        self._add(line.value, make.add(Load(len(line.names), ())))
        for number in range(len(line.instructions) - 1, -1, -1):
            for flow in [*self._flows.get(number, {}).values()]:
                match line.instructions[number]:
                    case Compute("same"):
                        pass
                    case Reduce("sum", value):
                        spread = self._axes(flow) & line.reduced
                        self._add(value, make.reduce("sum", flow) if spread else flow)
                    case Reduce(function):
                        raise EdBatchError(
                            f"the equation of {line.target!r}: no gradient flows through {function}; expected it in "
                            "stop_gradient(...)"
                        )
                    case Compute(function, operands):
                        self._through(number, function, operands, flow)

    def _through(self, number: int, function: str, operands: tuple[int, ...], flow: int) -> None:
        if function not in _SLOPES:
            raise EdBatchError(f"the equation of {self._line.target!r}: no derivative of {function!r} is known")
        given = dict(zip("xy", operands, strict=False)) | {"g": flow, "result": number}
        for operand, slope in zip(operands, _SLOPES[function], strict=True):
            if not isinstance(self._line.instructions[operand], Constant):
                self._add(operand, self.make.expression(slope, **given))

    def _add(self, value: int, flow: int) -> None:
        more, flows = self._axes(flow) - self._axes(value), self._flows.setdefault(value, {})
        flows[more] = self.make.compute("add", flows[more], flow) if more in flows else flow
