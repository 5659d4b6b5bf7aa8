"""Ops over lists as programs: the equations of an op (`graph.op.Equations`), or of its derivative, as steps.

A batch of such a program is one block. What has a row for each element of the nodes' lists lies in scratch memory for
all of them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.node_type import NodeType
from edbatch.kernels.backend import Backend
from edbatch.kernels.equation_gradients import check_axes, derivative, names_read, passes_on
from edbatch.kernels.equations import (
    GRADIENT,
    GRADIENT_OF_EACH,
    LIST_AXIS,
    NUMBERS,
    Line,
    LineKernel,
    Lines,
    distance,
    entries,
    lines_of,
)
from edbatch.kernels.language.analysis import analysis_of
from edbatch.kernels.program import (
    ARGUMENT_OF,
    POSITION,
    SLOT,
    Argument,
    KernelStep,
    Move,
    Over,
    Position,
    Slot,
    Storage,
    step_table,
)
from edbatch.runtime.compile.linked import Tables, number_row, shape_of

_ALL_CALLS = 2**31 - 1  # of a block


class ListProgram:
    """Lines of equations as a program.

    Args:
        lines: what is computed.
        arguments: the names of what batches are given, in order; then of what lines write to, operands as well.
        result: the name of what goes to the batch's rows; None: nothing does.

    Attributes:
        given: how many arguments, the first, are only read; sizes: per argument, how many entries a row has.
        width, element_width: entries of scratch per node, and per element of its list.
    """

    def __init__(
        self, type: NodeType, lines: Sequence[Line], arguments: Sequence[str], result: str | None, backend: Backend
    ) -> None:
        equations = type.op.equations
        assert equations is not None
        self._lines, self._all = lines_of(equations.operands, equations.text), lines
        self._dtype, self._backend = type.out.dtype, backend
        attributes = dict(type.attributes)
        self._sizes = equations.sizes(*(operand.shape for operand in type.operands), **attributes)
        numbers = {name: value for name, value in attributes.items() if isinstance(value, float)}
        self._numbers = number_row(numbers.values(), self._dtype, backend) if numbers else None
        self._kernels = [self._lines.kernel(line, tuple(numbers), self._dtype.name) for line in lines]
        self.arguments = tuple(arguments)
        self.given = sum(name not in {line.target for line in lines} for name in arguments)
        self.sizes = [entries(self._lines.axes(name), self._sizes) for name in arguments]
        self._result = result
        self._place()
        self._tables: Tables | None = None

    def is_listed(self, argument: str) -> bool:
        """Whether an argument has a row for each element."""
        return LIST_AXIS in self._lines.axes(argument)

    def tables(self) -> Tables:
        """What the interpreter reads."""
        if self._tables is None:
            positions: list[Position] = []
            read = {name for one in self._kernels for name in one.names}
            steps = [self._step(number, one, positions) for number, one in enumerate(self._kernels)]
            arguments = [
                Argument(at, size, Move.UNLESS_FOLLOWED if name in read else Move.UNUSED, int(self.is_listed(name)))
                for at, (name, size) in enumerate(zip(self.arguments, self.sizes, strict=True))
            ]
            listed = next(at for at, name in enumerate(self.arguments) if self.is_listed(name))
            fixed = [self._numbers] if self._numbers is not None else []
            handles = self._backend.handles([one.kernel for one in self._kernels])
            self._tables = Tables(
                np.array(list(self._slots.values()), SLOT),
                np.array(arguments, ARGUMENT_OF),
                step_table(steps),
                np.array(positions, POSITION),
                np.array(handles, np.int64),
                np.array([self._backend.address(row) for row in fixed], np.int64),
                calls=_ALL_CALLS,
                itemsize=self._dtype.itemsize,
                lists=listed,
                parameters=[],
                constants=fixed,
            )
        return self._tables

    def _place(self) -> None:
        """Where everything lies: arguments that have to be moved and what is computed in between, in scratch."""
        self._slots: dict[str, Slot] = {}
        self.width = self.element_width = 0
        between = dict.fromkeys(line.target for line in self._all if line.target not in (*self.arguments, self._result))
        sizes = {name: entries(self._lines.axes(name), self._sizes) for name in (*self.arguments, *between)}
        self.width = sum(size for name, size in sizes.items() if not self.is_listed(name))
        before = 0
        for name, size in sizes.items():
            storage = Storage.ARGUMENT if name in self.arguments else Storage.SCRATCH
            if self.is_listed(name):
                self._slots[name] = Slot(storage, self.width, 0, size, self.element_width)
                self.element_width += size
            else:
                self._slots[name] = Slot(storage, before, 0, size)
                before += size
        if self._result is not None:
            self._slots[self._result] = Slot(Storage.RESULT, 0, 0, 0)
        if self._numbers is not None:
            self._slots[NUMBERS] = Slot(Storage.FIXED, 0, 0, 0)

    def _step(self, number: int, one: LineKernel, positions: list[Position]) -> KernelStep:
        """The step of a kernel; appends what it is given."""
        slots, kernel = list(self._slots), one.kernel
        first = len(positions)
        positions += [Position(slots.index(name), 0) for name in one.names]
        positions += [Position(-1, 0) if axis == LIST_AXIS else Position(0, self._sizes[axis]) for axis in one.axes]
        positions += [Position(0, distance(axis, self._lines.axes(name), self._sizes)) for axis, name in one.strides]
        over = Over.CALLS
        if kernel.list_axis is not None:
            over = Over.LISTS if kernel.list_axis >= kernel.outer else Over.ELEMENTS
        sizes = [entries([axis], self._sizes) for axis in one.axes]  # a list counts as one
        shape = shape_of(analysis_of(kernel), sizes)
        return KernelStep(number, first, len(one.names), len(one.axes), len(one.strides), 0, *shape, over)


def forward_of(type: NodeType, backend: Backend) -> ListProgram:
    """What computes batches of a type that has equations.

    Raises:
        EdBatchError: they do not say one number for each entry of the result, or do not fit the op.
    """
    try:
        lines = _checked_lines(type)
    except EdBatchError as error:
        raise EdBatchError(f"op {type.op.name!r}: {error}") from None
    return ListProgram(type, lines.lines, lines.operands, lines.result, backend)


def _checked_lines(type: NodeType) -> Lines:
    """The lines of a type's equations, which are an op's own affair until it is used."""
    equations = type.op.equations
    assert equations is not None
    lines = lines_of(equations.operands, equations.text)
    check_axes(lines)
    listed = [LIST_AXIS in lines.axes(name) for name in lines.operands]
    if listed != sorted(listed) or not any(listed) or listed.count(False) != type.op.singles:
        raise EdBatchError(f"expected {type.op.singles} operands without axis {LIST_AXIS}, then lists, with it")
    sizes = equations.sizes(*(operand.shape for operand in type.operands), **dict(type.attributes))
    for name, of in zip((*lines.operands, lines.result), (*type.operands, type.out), strict=True):
        if entries(lines.axes(name), sizes) != of.size:
            what = "its shape rule gives" if name == lines.result else "it has"
            raise EdBatchError(f"{name!r} has other entries than the axes of its equations say: {what} {of!r}")
    return lines


class Output(NamedTuple):
    """What a derivative leaves of an operand's gradient.

    Attributes:
        entries: of a row.
        of_each: whether that of a list has a row for each node, which is that of each element.
        given: whether these are the rows of the result's gradient, and nothing has to be computed.
    """

    entries: int
    of_each: bool
    given: bool


class ListDerivative(NamedTuple):
    """What goes back through batches of a type that has equations.

    Attributes:
        program: given the operands, the gradient of the result, the result if it is read, and where to write outputs;
            None if all of these are given.
        outputs: per operand; None: nothing flows to it, or it is not needed.
    """

    program: ListProgram | None
    outputs: tuple[Output | None, ...]


def derivative_of(type: NodeType, needed: Sequence[bool], backend: Backend) -> ListDerivative:
    """The derivative of a type that has equations, of operands that are needed.

    Raises:
        EdBatchError: a line has none.
    """
    equations = type.op.equations
    assert equations is not None
    lines = lines_of(equations.operands, equations.text)
    wanted = frozenset(name for name, some in zip(lines.operands, needed, strict=True) if some)
    try:
        back = derivative(lines, wanted)
    except EdBatchError as error:
        hint = f"op {type.op.name!r} has no gradient; give `no_gradient` if none flows"
        raise EdBatchError(f"{type}: {error}: {hint}") from None
    given = {line.target for line in back if passes_on(line, lines)}
    computed = [line for line in back if line.target not in given]
    targets = {line.target for line in back}
    found: dict[str, Output] = {}
    for name, operand in zip(lines.operands, type.operands, strict=True):
        for before in (GRADIENT, GRADIENT_OF_EACH):
            if before + name in targets:
                found[before + name] = Output(operand.size, before is GRADIENT_OF_EACH, before + name in given)
    written = [name for name in found if name not in given]
    program = None
    if written:
        at_hand = [lines.result] if any(lines.result in names_read(line) for line in computed) else []
        arguments = (*lines.operands, GRADIENT + lines.result, *at_hand, *written)
        program = ListProgram(type, computed, arguments, None, backend)
    outputs = (found.get(GRADIENT + name) or found.get(GRADIENT_OF_EACH + name) for name in lines.operands)
    return ListDerivative(program, tuple(outputs))
