"""Parameters stacked in place: several arrays that are parts of one, so that one product reads them all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from edbatch.base.locking import lock, signals_deferred
from edbatch.graph.model.parameters import LookupParameters, Parameter
from edbatch.graph.node_type import parameter_array, parameter_of
from edbatch.graph.spec import ParameterSpec


def stacked(specs: Sequence[ParameterSpec]) -> ParameterSpec | None:
    """The spec of one parameter whose rows are those of several vectors, or matrices of as many columns, in order.

    These become views of its storage, and their gradients of its gradient: updating either is updating both. The stack
    lives as long as one of them. None if that cannot be: a parameter occurs twice, is gone, or is part of a stack
    already in which the others do not follow it.

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection()
        >>> a, b = model.add_parameters((1, 2), init=1.0), model.add_parameters((2, 2), init=2.0)
        >>> both = stacked([a.spec, b.spec]).parameter()
        >>> b.set_value([[3, 4], [5, 6]])
        >>> both.value().tolist()
        [[1.0, 1.0], [3.0, 4.0], [5.0, 6.0]]
    """
    with lock, signals_deferred():  # a parameter that is moved by half would be in two places
        return _stacked(specs) if can_stack(specs) else None


def _stacked(specs: Sequence[ParameterSpec]) -> ParameterSpec:
    members = [parameter for spec in specs if (parameter := spec.parameter()) is not None]
    whole = members[0].stack
    if whole is not None:
        begin = whole.parts.index(specs[0])
        return whole.spec if len(specs) == len(whole.parts) else _rows(whole, begin, begin + len(specs)).spec
    device = members[0].device
    rows_of = [device.backend.to_host(member.array) for member in members]
    stack = Parameter("|".join(spec.name for spec in specs), np.concatenate(rows_of), device)
    stack.parts = tuple(specs)
    begin = 0
    for member in members:
        rows = slice(begin, begin + len(member.array))
        gradient = member._sum() if member._has_grad else None  # whatever graph is open: a replayed function may be
        member.array, member.stack, member.rows = stack.array[rows], stack, rows
        if gradient is not None:
            with device.backend.active():
                member.accumulator()[0][...] = gradient
        begin = rows.stop
    return stack.spec


class ColumnRange(Parameter):
    """Some columns of a matrix as a parameter: a view of its array, wherever that is moved, and of its gradient."""

    def __init__(self, whole: ParameterSpec, begin: int, end: int) -> None:
        self._name = f"{whole.name}[:,{begin}:{end}]"
        self.device = whole.device
        self.stack = None
        self.parts = ()
        self.spec = ParameterSpec(self, self.name, (whole.shape[0], end - begin), whole.dtype)
        self._whole, self._range = whole, slice(begin, end)
        self._gathers: Parameter | None = None
        self._seen: Any = None

    @property
    def array(self) -> Any:
        """The part of the matrix; the same object as long as that lies where it did."""
        array = parameter_array(self._whole)
        if self._seen is not array:
            self._seen, self._part = array, array[:, self._range]
        return self._part

    @property
    def matrix(self) -> Parameter:
        """What the columns are of, or, where `of` has given them, what gathers their gradients."""
        return parameter_of(self._whole) if self._gathers is None else self._gathers

    def of(self, stand_in: Parameter) -> ColumnRange:
        """The same columns, whose gradients gather in a stand-in for the matrix."""
        made = object.__new__(ColumnRange)
        vars(made).update(vars(self), _gathers=stand_in)
        return made

    def members(self) -> list[Parameter]:
        """Those of the matrix."""
        return self.matrix.members()

    def _sum(self) -> Any:
        return self.matrix._sum()[:, self._range]


_ranges: WeakKeyDictionary[Parameter, dict[tuple[int, int], ColumnRange]] = WeakKeyDictionary()


def column_range(spec: ParameterSpec, begin: int, end: int) -> ParameterSpec:
    """The spec of some columns of a matrix as a parameter, which lives as long as the matrix."""
    parameter_array(spec)  # or raise
    whole = spec.parameter()
    assert whole is not None
    ranges = _ranges.setdefault(whole, {})
    if (begin, end) not in ranges:
        ranges[begin, end] = ColumnRange(spec, begin, end)
    return ranges[begin, end].spec


def some_rows(spec: ParameterSpec, begin: int, end: int) -> ParameterSpec:
    """The spec of some neighbours in a stack, or of their columns, as one parameter.

    Args:
        spec: of a stack, of neighbours in one, or of columns of either.
        begin, end: rows of it, where the first of the neighbours begins and the last ends.
    """
    whole = parameter_of(spec)
    if isinstance(whole, ColumnRange):
        return column_range(some_rows(whole._whole, begin, end), whole._range.start, whole._range.stop)
    stack = whole if whole.stack is None else whole.stack
    first = whole.rows.start or 0
    ends = [0, *accumulate(part.shape[0] for part in stack.parts)]
    at, to = ends.index(first + begin), ends.index(first + end)
    if to - at == 1 and stack.parts[at].parameter() is not None:
        return stack.parts[at]
    with lock:
        return _rows(stack, at, to).spec


def can_stack(specs: Sequence[ParameterSpec]) -> bool:
    """Whether `stacked` gives a parameter: all are there, each once, and free to move or side by side in one stack."""
    members = [spec.parameter() for spec in specs]
    if len(specs) < 2 or len(set(specs)) < len(specs) or None in members:
        return False
    stacks = {member.stack for member in members if member is not None}
    if len(stacks) > 1:
        return False
    (whole,) = stacks
    if whole is None:
        if any(stays(member) for member in members if member is not None):
            return False
        return len({(len(spec.shape), *spec.shape[1:]) for spec in specs}) == 1 and 1 <= len(specs[0].shape) <= 2
    begin = whole.parts.index(specs[0])
    return whole.parts[begin : begin + len(specs)] == tuple(specs)


def _rows(stack: Parameter, begin: int, end: int) -> Parameter:
    """The parameter that some neighbours in a stack are together; it shares their storage."""
    found = stack.runs.get((begin, end))
    if found is None:
        specs = stack.parts[begin:end]
        first = sum(spec.shape[0] for spec in stack.parts[:begin])
        array = stack.array[first : first + sum(spec.shape[0] for spec in specs)]
        name = "|".join(spec.name for spec in specs)
        found = stack.runs[begin, end] = Parameter(name, array, stack.device, shares=True)
        found.stack, found.parts, found.rows = stack, specs, slice(first, first + len(array))
    return found


def stays(parameter: Parameter) -> bool:
    """Whether a parameter that is no part of a stack stays where it is: a table, or what others hold or own."""
    return isinstance(parameter, LookupParameters) or parameter.is_shared or parameter.is_exported


def space_of(spec: ParameterSpec) -> str:
    """A name that parameters have in common which may be stacked: that of their stack, or their shape."""
    parameter = spec.parameter()
    if parameter is not None and parameter.stack is not None:
        return parameter.stack.name
    if parameter is not None and stays(parameter):
        return f"{spec.name} alone"
    return f"[{','.join(['*', *map(str, spec.shape[1:])])}]" if spec.shape else "[]"
