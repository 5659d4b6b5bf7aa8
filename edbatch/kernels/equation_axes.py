"""Along which axes the values of equations differ, and equations whose result would be of one element only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from edbatch.errors import EdBatchError
from edbatch.kernels.equations import LIST_AXIS, Lines
from edbatch.kernels.language.ir import Instruction, Load, Reduce, operands_of


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
