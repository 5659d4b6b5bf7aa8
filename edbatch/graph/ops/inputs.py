"""What enters a graph: arrays, numbers, parameters, rows of a look-up table."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.base.numbers import is_real
from edbatch.errors import EdBatchError, missing_memory, shown
from edbatch.graph.array_graph import numbered
from edbatch.graph.columns import current_graph
from edbatch.graph.expression import Expression
from edbatch.graph.integers import is_integers
from edbatch.graph.model.exchange import UNREADABLE, refuse_masked
from edbatch.graph.model.parameters import LookupParameters, Parameter
from edbatch.graph.node_type import intern
from edbatch.graph.op import Op, declare
from edbatch.graph.op_callers import looked_up
from edbatch.graph.ops.loss import unpick
from edbatch.graph.ops.place import stack
from edbatch.graph.ops.shape import is_advanced
from edbatch.graph.record import array_input, checked_index, checked_shape, constant_node, parameter_node
from edbatch.graph.sources import ONES, ZEROS
from edbatch.graph.spec import spec_of

LOOKUP = declare(
    Op(
        "lookup",
        lambda shape: shape[1:],
        payload=1,
        picks=True,
        gradient=lambda g, out, table, index: unpick(g, index, table.shape[0]),
    )
)


def input(value: Any) -> Expression:
    """An array, or a nested list of numbers, as a value of the current graph, copied now and cast to its dtype.

    Raises:
        EdBatchError: no graph is current, or `value` is no array of real numbers, is empty or masked; or a tensor of
            another library that is on a GPU or takes part in its differentiation.

    Example: eb.input([[1, 2, 3]]) -> [[1. 2. 3.]]
    """
    graph = current_graph()
    if value.__class__ is np.ndarray:
        return array_input(graph, value)
    refuse_masked(value, "input")
    try:
        array = np.asarray(value)
    except MemoryError:
        raise missing_memory("input", value) from None
    except UNREADABLE as error:
        raise EdBatchError(f"input: expected an array of numbers ({error})") from None
    return array_input(graph, array)


def scalar(value: float) -> Expression:
    """A number as a value of the current graph, with a gradient of its own; shape ().

    Example: eb.scalar(3) -> 3.0
    """
    if not is_real(value):
        raise EdBatchError(f"scalar: expected a number, got {type(value).__name__}")
    return array_input(current_graph(), np.asarray(value))


def zeros(shape: int | tuple[int, ...]) -> Expression:
    """A value of zeros; equal shapes are one node of the graph, whose gradient counts the uses of all.

    `eb.input(np.zeros(shape))` has a gradient of its own.

    Example: eb.zeros(2) -> [0. 0.]
    """
    return _constant(ZEROS, shape)


def ones(shape: int | tuple[int, ...]) -> Expression:
    """A value of ones; equal shapes are one node of the graph, whose gradient counts the uses of all, as of `zeros`.

    Example: eb.ones((1, 2)) -> [[1. 1.]]
    """
    return _constant(ONES, shape)


def _constant(op: Op, shape: int | tuple[int, ...]) -> Expression:
    graph = current_graph()
    if shape.__class__ is int and (found := graph.constants.get((op, (shape,)))) is not None:
        return graph.expression_class(graph, *found)
    return constant_node(graph, op, checked_shape(op.name, shape))


def parameter(parameter: Parameter) -> Expression:
    """A parameter as a value of the current graph, copied when the graph runs.

    `W @ x` needs no such node. It is for batching over DIFFERENT parameters of one shape: products of such nodes run
    as one batched product.

    Example:
        >>> import edbatch as eb
        >>> experts = [eb.ParameterCollection().add_parameters((2, 2), init=float(i)) for i in range(3)]
        >>> with eb.Graph():
        ...     print(eb.sum([eb.parameter(W) @ eb.ones(2) for W in experts]).value())
        [6. 6.]
    """
    if not isinstance(parameter, Parameter):
        raise EdBatchError(f"parameter: expected a Parameter, got {shown(parameter)}")
    return parameter_node(current_graph(), parameter, held=True)


@looked_up
def lookup(table: Parameter, index: int) -> Expression:
    """One row of a look-up table, or of another parameter; look-ups of different rows are one type and one batch.

    Args:
        table: from `ParameterCollection.add_lookup_parameters`; or any parameter of at least one axis, which keeps a
            gradient of all its rows, while that of a table is of those that were looked up.
        index: of the row; negative counts from the end. Of an array of integers (NumPy, one axis), an `ExpressionArray`
            of as many rows.

    Raises:
        EdBatchError: the index is out of range, `table` is no parameter or has no axes, or no graph is current.

    Example:
        >>> import edbatch as eb
        >>> embed = eb.ParameterCollection().add_lookup_parameters((3, 2), init=[[0, 1], [2, 3], [4, 5]])
        >>> with eb.Graph():
        ...     print(eb.lookup(embed, 2).value())
        [4. 5.]
    """
    graph = current_graph()
    if not isinstance(table, Parameter) or not table.spec.shape:
        raise EdBatchError(f"lookup: expected a parameter of at least one axis, got {shown(table)}")
    rows, shape = table.spec.shape[0], table.spec.shape[1:]
    type = intern(LOOKUP, (), (table.spec,), spec_of(shape, table.spec.dtype))
    for call in (lookup, _rows_of):
        call.learn((table.spec,), type.id, type.out, (), 0, 0, rows)
    if index.__class__ is not int or not 0 <= index < rows:
        if is_integers(index):
            graph, numbers = numbered(graph, index)
            return graph.add(type, (), (numbers.used_in(rows, f"lookup in {table.name}"),))
        if index is not None and is_advanced(index):
            raise EdBatchError(
                f"lookup({table.spec!r}, {shown(index)}): expected an integer, got {index.__class__.__name__}; several "
                f"rows, as a matrix, are {table.name}[{shown(index)}]; as expressions, an array of integers says which"
            )
        index = checked_index(index, rows, f"lookup({table.spec!r}, {shown(index)})")
    return graph.add(type, (), (index,))


@looked_up
def _rows_of(table: LookupParameters, key: Any) -> Expression:
    """A row, what an index with more parts shows of it, or several rows as a matrix."""
    first, *others = key if key.__class__ is tuple and key else (key,)
    if key.__class__ is not tuple and key is not None and is_advanced(key):
        return stack([lookup(table, row) for row in key])
    if key.__class__ is tuple and (first is Ellipsis or isinstance(first, slice | tuple) or is_advanced(first)):
        raise EdBatchError(
            f"{table.spec!r}: expected an index that begins with the number of one row, got {shown(key)}; several "
            f"rows, as a matrix, are {table.name}[[0, 1]], and the whole table is eb.parameter({table.name})"
        )
    row = lookup(table, first)
    return row[tuple(others)] if others else row


LookupParameters.__getitem__ = _rows_of  # type: ignore[method-assign]
