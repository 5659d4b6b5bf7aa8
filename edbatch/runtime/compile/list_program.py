"""Ops over lists as programs: the equations of an op (`graph.op.Equations`), or of its derivative, as steps.

A batch of such a program is one block. What has a row for each element of the nodes' lists lies in scratch memory for
all of them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.node_type import NodeType
from edbatch.kernels.backend import Backend
from edbatch.kernels.equation_gradients import derivative
from edbatch.kernels.equations import GRADIENT, LIST_AXIS, Line, LineKernel, Lines, distance, entries
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
from edbatch.runtime.compile.link import Tables, shape_of

_ALL_CALLS = 2**31 - 1  # of a block


@cache
def lines_of(operands: tuple[str, ...], text: str) -> Lines:
    """The equations of an op, parsed."""
    return Lines(operands, text)


class ListProgram:
    """Lines of equations as a program.

    Args:
        type: whose sizes and numbers they are of.
        lines: what is computed.
        arguments: the names of what batches are given, in order; lines may write to some of them.
        result: the name of what goes to the batch's rows; None: nothing does.
        backend: what kernels compute with.

    Attributes:
        arguments: names.
        sizes: per argument, how many entries a row has.
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
        for name, operand in zip(self._lines.operands, type.operands, strict=True):
            if entries(self._lines.axes(name), self._sizes) != operand.size:
                raise EdBatchError(f"{type}: {name!r} has other entries than the axes of its equations say")
        numbers = tuple((name, value) for name, value in attributes.items() if isinstance(value, float))
        self._kernels = [self._lines.kernel(line, numbers, self._dtype.name) for line in lines]
        self.arguments = tuple(arguments)
        self.sizes = [entries(self._lines.axes(name), self._sizes) for name in arguments]
        self._result = result
        self._place()
        self._tables: Tables | None = None

    def variant(self) -> ListProgram:
        """The program itself: options change nothing about it."""
        return self

    def is_listed(self, argument: str) -> bool:
        """Whether an argument has a row for each element."""
        return LIST_AXIS in self._lines.axes(argument)

    def tables(self) -> Tables:
        """What the interpreter reads."""
        if self._tables is None:
            positions: list[Position] = []
            steps = [self._step(number, one, positions) for number, one in enumerate(self._kernels)]
            arguments = [
                Argument(at, size, Move.UNLESS_FOLLOWED, int(self.is_listed(name)))
                for at, (name, size) in enumerate(zip(self.arguments, self.sizes, strict=True))
            ]
            listed = next(at for at, name in enumerate(self.arguments) if self.is_listed(name))
            handles = self._backend.handles([one.kernel for one in self._kernels])
            self._tables = Tables(
                np.array(list(self._slots.values()), SLOT),
                np.array(arguments, ARGUMENT_OF),
                step_table(steps),
                np.array(positions, POSITION),
                np.array(handles, np.int64),
                np.zeros(0, np.int64),
                calls=_ALL_CALLS,
                itemsize=self._dtype.itemsize,
                lists=listed,
                parameters=[],
                constants=[],
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
        shape = shape_of(kernel, [entries([axis], self._sizes) for axis in one.axes])  # a list counts as one
        return KernelStep(number, first, len(one.names), len(one.axes), len(one.strides), 0, *shape, over)


def forward_of(type: NodeType, backend: Backend) -> ListProgram:
    """What computes batches of a type that has equations."""
    equations = type.op.equations
    assert equations is not None
    lines = lines_of(equations.operands, equations.text)
    return ListProgram(type, lines.lines, lines.operands, lines.lines[-1].target, backend)


def derivative_of(type: NodeType, needed: Sequence[bool], backend: Backend) -> ListProgram | None:
    """What goes back through batches of a type that has equations; None if nothing flows to what is needed.

    It is given the operands, the gradient of the result, and where to write the gradients of operands that are needed.
    """
    equations = type.op.equations
    assert equations is not None
    lines = lines_of(equations.operands, equations.text)
    wanted = [name for name, some in zip(lines.operands, needed, strict=True) if some]
    back = derivative(lines, frozenset(wanted))
    written = {line.target for line in back}
    outputs = [GRADIENT + name for name in wanted if GRADIENT + name in written]
    if not outputs:
        return None
    arguments = (*lines.operands, GRADIENT + lines.lines[-1].target, *outputs)
    return ListProgram(type, back, arguments, None, backend)
