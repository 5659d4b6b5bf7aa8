"""Instructions of a kernel, made one after the other; what is the same is made once."""

from __future__ import annotations

from edbatch.errors import EdBatchError
from edbatch.kernels.language.expressions import evaluate
from edbatch.kernels.language.functions import FUNCTIONS
from edbatch.kernels.language.ir import REDUCTIONS, Compute, Constant, Instruction, Reduce


class Builder:
    """Collects instructions; values are their positions.

    Example:
        >>> from edbatch.kernels.language.ir import Load
        >>> make = Builder()
        >>> x = make.add(Load(0, (1,)))
        >>> make.expression("slope * x + slope", x=x, slope=make.number(0.5))
        3
        >>> make.instructions[1:]
        (Constant(number='0x1.0000000000000p-1'), Compute(function='multiply', operands=(1, 0)),
         Compute(function='add', operands=(2, 1)))
    """

    def __init__(self) -> None:
        self._numbers: dict[Instruction, int] = {}

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """All there are."""
        return tuple(self._numbers)

    def add(self, instruction: Instruction) -> int:
        """The value of an instruction."""
        return self._numbers.setdefault(instruction, len(self._numbers))

    def number(self, value: float) -> int:
        """A constant."""
        return self.add(Constant(float(value).hex()))

    def compute(self, function: str, *operands: int) -> int:
        """A function of values."""
        return operands[0] if function == "same" else self.add(Compute(function, operands))

    def reduce(self, function: str, value: int) -> int:
        """A reduction over a group."""
        return self.add(Reduce(function, value))

    def expression(self, text: str, **values: int) -> int:
        """A scalar expression (see `expressions`), given the values of the names in it; and reductions, as sum(x).

        Raises:
            EdBatchError: it reads a name that is not given, or calls a function that is not in the table.
        """
        return evaluate(text, values, lambda literal: self.number(float(literal)), self.called)

    def called(self, function: str, operands: list[int]) -> int:
        """A function of values, or a reduction of one; an EdBatchError where there is none."""
        if function in REDUCTIONS and len(operands) == 1:
            return self.reduce(function, *operands)
        known = FUNCTIONS.get(function)
        if known is None or len(known.arguments) != len(operands):
            raise EdBatchError(f"no function {function!r} of so many")
        return self.compute(function, *operands)
