"""From a call on any operands to a node, the careful way: operands are checked and converted, the type is found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np

from edbatch.base.exact import exact
from edbatch.base.numbers import as_integer, is_real
from edbatch.errors import EdBatchError, missing_memory, shown
from edbatch.graph.array_graph import ArrayGraph
from edbatch.graph.cell.trace import Payload, Trace
from edbatch.graph.columns import Columns, current_graph
from edbatch.graph.expression import Expression
from edbatch.graph.integers import Integers
from edbatch.graph.model.exchange import refuse_masked
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.node_type import NodeType, intern, node_type, parameter_of
from edbatch.graph.number_warnings import note_numbers
from edbatch.graph.op import Op
from edbatch.graph.sources import INPUT, PARAMETER, ZEROS
from edbatch.graph.spec import MOST_ENTRIES, ParameterSpec, Shape, Spec, spec_of


def record(op: Op, operands: tuple[Any, ...], payload: tuple[int, ...] = (), **attributes: Any) -> Expression:
    """Record a node of `op`; operands are checked, numbers and arrays among them become inputs."""
    found = converted(op, operands)
    graph = graph_of(op.name, found)
    type = type_of_call(graph, op, attributes, tuple([x.spec for x in found]))
    return graph.add(type, [x.id for x in found if isinstance(x, Expression)], payload)


def converted(op: Op, given: tuple[Any, ...]) -> list[Expression | Parameter]:
    """Operands as expressions and parameters of one graph, at least one an expression."""
    if len(given) == 1:
        return [to_expression(op.name, given[0])]
    graph = graph_of(op.name, given)
    found = to_operands(op, graph, given)
    if not any(isinstance(x, Expression) for x in found):  # who says which graph it is
        found[0] = to_node(graph, found[0])
    return found


def type_of_call(graph: Columns, op: Op, attributes: dict[str, Any], specs: tuple[Spec, ...]) -> NodeType:
    """The type of a node that a user records; see `node_type` and `note_numbers`."""
    note_numbers(graph, op, attributes)
    return node_type(op, tuple(attributes.items()), specs)


def graph_of(name: str, operands: Iterable[Any]) -> Columns:
    """The graph that all expressions among the operands belong to; the current one if there is no expression."""
    graph = None
    for position, operand in enumerate(operands):
        if not isinstance(operand, Expression | Payload) or operand.graph is graph or operand.graph is None:
            continue
        graph = operand.graph if graph is None else _of_both(name, position, graph, operand.graph)
    return current_graph() if graph is None else graph


def _of_both(name: str, position: int, graph: Columns, other: Columns) -> Columns:
    """The graph of what is computed of two: of one in which arrays are, and its base, the first."""
    if _is_over(graph, other):
        return graph
    if _is_over(other, graph):
        return other
    if isinstance(graph, ArrayGraph) and isinstance(other, ArrayGraph) and graph.base is other.base:
        counts = f"{graph.count} entries, got {other.count}"
        raise EdBatchError(f"{name}: operand {position} is an array of expressions: expected {counts}")
    for one in (graph, other):
        if isinstance(one, Trace) and one.has_ended:
            raise EdBatchError(f"{name}: operand {position}: {one.leaked}" if one is other else f"{name}: {one.leaked}")
    hint = "; expected all operands from one graph: of a value of another, give eb.input(x.value())"
    if graph.base is not None and graph.base is other.base:
        hint = "; a vertex function is of one vertex: what others compute it gathers, of an array it pulls an entry"
    if isinstance(graph, Trace) or isinstance(other, Trace):
        hint = "; a cell computes with its arguments: give it as one"
    raise EdBatchError(f"{name}: operand {position} is an expression of another graph{hint}")


def _is_over(graph: Columns, other: Columns) -> bool:
    """Whether nodes of a graph stand for nodes of another."""
    return graph.base is not None and (graph.base is other or _is_over(graph.base, other))


_OPERANDS = (Expression, Parameter)


def to_operands(op: Op, graph: Columns, operands: Iterable[Any]) -> list[Expression | Parameter]:
    """All operands of an op, see `to_operand`; an array is the same for all entries of arrays of expressions.

    It is an error if it would enlarge each entry, and has as many rows as there are entries: one for each is meant.
    """
    for x in operands:
        if isinstance(x, np.ndarray) and x.ndim and graph.may_mean_each(len(x)) and _enlarges(op, x.shape, operands):
            graph.refuse_rows(op.name, x.shape)
    return [to_operand(op.name, graph, x) for x in operands]


def _enlarges(op: Op, shape: Shape, operands: Iterable[Any]) -> bool:
    """Whether an op that broadcasts, or puts operands side by side, makes more of an array than the others are."""
    shapes = [x.spec.shape for x in operands if isinstance(x, _OPERANDS)]
    if op.elementwise:
        try:
            shapes = [np.broadcast_shapes(*shapes)]
        except ValueError:  # which is said elsewhere
            return False
    return (op.elementwise or op.places is not None) and not any(fits(shape, one) for one in shapes)


def fits(shape: Shape, into: Shape) -> bool:
    """Whether a shape broadcasts to another, which stays as it is."""
    pairs = zip(reversed(shape), reversed(into), strict=False)
    return len(shape) <= len(into) and all(few in (1, size) for few, size in pairs)


def to_operand(name: str, graph: Columns, operand: Any, shared: bool = True) -> Expression | Parameter:
    """An operand as an expression or a parameter; numbers and arrays become inputs of the graph.

    Equal numbers are one input if it may be `shared`: not if callers can hold it, and ask for its gradient.
    """
    if isinstance(operand, _OPERANDS):
        if graph.base is None or operand.graph is graph or operand.graph is None:
            return operand
        below = to_operand(name, graph.base, operand)
        return graph.placed(below) if isinstance(below, Expression) and below.graph is graph.base else operand
    if is_real(operand):
        return number(graph, operand, shared)
    if isinstance(operand, np.ndarray):
        refuse_masked(operand, "input")
        return array_input(graph, operand)
    if isinstance(operand, Payload):
        raise operand.refused(f", and no operand of {name}")
    if isinstance(operand, complex | np.complexfloating):
        raise EdBatchError(f"{name}: expected a real number, got {operand!r}")
    hint = "; eb.input(...) takes it, as a constant" if hasattr(operand, "__dlpack__") else ""
    raise EdBatchError(
        f"{name}: expected an expression, a parameter, a number or an array, got {type(operand).__name__}{hint}"
    )


def to_expression(name: str, x: Any) -> Expression:
    """The only operand of an op, as a node of its graph."""
    if isinstance(x, Expression):
        return x
    return to_own_node(name, graph_of(name, (x,)), x)


def to_own_node(name: str, graph: Columns, x: Any) -> Expression:
    """An operand that callers may hold, as a node of the graph: a number as an input of its own."""
    return to_node(graph, to_operand(name, graph, x, shared=False))


def to_node(graph: Columns, operand: Expression | Parameter) -> Expression:
    """An operand that must be a node of the graph: a parameter becomes one."""
    return operand if isinstance(operand, Expression) else parameter_node(graph, operand)


def number(graph: Columns, value: Any, shared: bool = True) -> Expression:
    """A number as a scalar input; equal ones that are `shared` are one node, so that a batch over it reads one row."""
    try:
        key: Any = float(value)
    except OverflowError:
        raise EdBatchError(f"{shown(value)} is too large for a number of a graph") from None
    if not key or key != key:
        key = exact(key)
    found = graph.constants.get(key) if shared else None
    if found is None:
        if graph.base is not None:
            return graph.constant_of_base(number, value, shared)
        made = array_input(graph, np.asarray(float(value)))
        if not shared:
            return made
        found = graph.constants[key] = (made.id, made.spec)
    return graph.expression_class(graph, *found)


def _what(value: np.ndarray) -> str:
    """What an array holds that is not of real numbers: NumPy makes objects of integers beyond 64 bits."""
    if value.dtype.kind != "O":
        return str(value.dtype)
    for x in value.flat:
        if isinstance(x, int) and not -(2**63) <= x < 2**64:
            return f"integers beyond 64 bits ({shown(x)})"
    return str(value.dtype) if value.ndim else type(value.item()).__name__


def array_input(graph: Columns, value: np.ndarray) -> Expression:
    """An array, which is not masked, as an input node; copied now, so that the caller may reuse it."""
    key = value.shape, value.dtype, graph.dtype
    found = _inputs.get(key)
    if found is None:
        type = _input_type(graph, value, value.shape)
        found = _inputs[key] = type.id, type.out
    type_id, spec = found
    inputs = graph.inputs
    inputs.append(np.array(value, graph.dtype))
    return graph.expression_class(graph, graph.append((type_id,), (), (len(inputs) - 1,)), spec)


def array_inputs(graph: Columns, values: np.ndarray) -> tuple[np.ndarray, Spec]:
    """The rows of an array as input nodes: their ids, and the spec of each."""
    type = _input_type(graph, values, values.shape[1:])
    begin = len(graph.inputs)
    graph.inputs.extend(np.array(values, graph.dtype))
    n = len(values)
    first = graph.repeat(type, n, [np.arange(begin, begin + n)])
    return np.arange(first, first + n), type.out


def _input_type(graph: Columns, value: np.ndarray, shape: Shape) -> NodeType:
    if value.dtype.kind not in "fiub":
        raise EdBatchError(f"input: expected real numbers, got an array of {_what(value)}")
    if 0 in shape:
        raise EdBatchError(f"input: expected at least one entry, got an array of shape {value.shape}")
    return intern(INPUT, (), (), spec_of(shape, graph.dtype))


# By shape and dtype of what is given and the graph's dtype: type and spec of the node.
_inputs: dict[tuple[Shape, np.dtype, np.dtype], tuple[int, Spec]] = {}


def constant_node(graph: Columns, op: Op, shape: Shape, inner: bool = False) -> Expression:
    """Zeros or ones; equal shapes are one node of the graph, and one more of all that ops compute with (`inner`).

    What ops compute with is nobody's: gradients that flow there are none of what users hold.
    """
    if graph.base is not None:
        return graph.constant_of_base(constant_node, op, shape, inner)
    key = (op, shape, True) if inner else (op, shape)
    return graph.constant(key, lambda: _constant_type(op, shape, graph.dtype))


def own_zeros(graph: Columns, shape: Shape) -> Expression:
    """Zeros that are a node of their own."""
    if graph.base is not None:
        return graph.constant_of_base(own_zeros, shape)
    return graph.add(_constant_type(ZEROS, shape, graph.dtype), ())


def _constant_type(op: Op, shape: Shape, dtype: np.dtype) -> NodeType:
    return intern(op, (), (), spec_of(shape, dtype))


def parameter_node(graph: Columns, parameter: Parameter, held: bool = False) -> Expression:
    """A parameter as a node: for ops that batch over different parameters of one shape; one more that users hold.

    Another one after the parameter was written to: what has run keeps the value of then. Another library,
    to which the parameter was exported, may have written to it unseen.
    """
    if graph.base is not None:
        return graph.constant_of_base(node_of_parameter, parameter.spec, held)
    key = parameter, parameter.version, held
    found = graph.constants.get(key)
    if found is not None and found[0] < graph.n - len(graph.types) and parameter.is_exported:
        del graph.constants[key]
    out = spec_of(parameter.spec.shape, parameter.spec.dtype)
    attributes = (("parameter", parameter.spec),)
    return graph.constant(key, lambda: intern(PARAMETER, attributes, (), out))


def node_of_parameter(graph: Columns, spec: ParameterSpec, held: bool = False) -> Expression:
    """As `parameter_node`, for those who may outlive the parameter."""
    return parameter_node(graph, parameter_of(spec), held)


_NO_LISTS = (Mapping, Set, str, bytes, bytearray)  # though Python lists what they hold


def entries_of(value: Any) -> list[Any]:
    """What is listed; what is no list as the only entry: arrays without axes, too, text, and what has no order."""
    try:
        found = [value] if isinstance(value, _NO_LISTS) else list(value)
    except TypeError:  # arrays without axes say that they are iterable, and are not
        return [value]
    except MemoryError:
        raise missing_memory("a list", value) from None
    return found if found or getattr(value, "ndim", 1) == 1 else [value]  # no rows of several entries: no empty list


def checked_shape(place: str, shape: Any, least: int = 1, what: str = "a shape of integers") -> Shape:
    """A size, or several, as a tuple of Python ints from `least` to `MOST_ENTRIES`; `what` they are is for errors."""
    try:
        # A list: where a trace function raised inside a generator here, Python 3.11 was seen to lose the error.
        sizes = tuple([int(as_integer(size)) for size in entries_of(shape)])
    except TypeError:
        raise EdBatchError(f"{place}: expected {what}, got {shown(shape)}") from None
    if min(sizes, default=least) < least:
        raise EdBatchError(f"{place}: expected sizes of at least {least}, got {shown(shape)}")
    if max(sizes, default=0) > MOST_ENTRIES:
        raise EdBatchError(f"{place}: expected at most {MOST_ENTRIES:,} entries along an axis, got {shown(shape)}")
    return sizes


def checked_size(place: str, size: Any) -> int:
    """One size as a Python int; errors as of `checked_shape`, and where several are given, or none."""
    sizes = checked_shape(place, size, what="an integer")
    if len(sizes) != 1:
        raise EdBatchError(f"{place}: expected one integer, got {shown(size)}")
    return sizes[0]


def checked_number(place: str, value: Any) -> float:
    """What belongs to a node's type as a Python float; no expression: it would be run, no gradient would reach it."""
    if is_real(value):
        try:
            return float(value)
        except OverflowError:
            raise EdBatchError(f"{place}: {shown(value)} is too large") from None
    if isinstance(value, Payload):
        raise value.refused(f", and no {place}")
    raise EdBatchError(f"{place}: expected a number, got {type(value).__name__}")


def checked_index(index: Any, size: int, place: str) -> Any:
    """`index` as a Python int in [0, size); negative ones count from the end. Of `Integers`, an array.

    An integer argument of a cell that is traced is checked when the cell is called.
    """
    if isinstance(index, Integers | Payload):
        return index.used_in(size, place)
    try:
        found = as_integer(index)
    except TypeError:
        hint = ""
        if isinstance(index, Expression) and isinstance(index.graph, Trace):
            hint = "; an index of a cell is given as an integer"
        elif isinstance(index, list | tuple) or hasattr(index, "__array__"):
            hint = "; one for each of several expressions is given as an array of integers, np.array(labels)"
        elif isinstance(index, Expression):
            hint = "; for an index that is computed see eb.gather, or read its value()"
        raise EdBatchError(f"{place}: expected an integer, got {type(index).__name__}{hint}") from None
    if not -size <= found < size:
        raise EdBatchError(f"{place}: index {shown(found)} is out of range for {size} entries")
    return found % size


def checked_label(label: Any, classes: int, place: str) -> Any:
    """A class as a Python int in [0, classes): unlike an index, none counts from the end. Of `Integers`, an array.

    As often as not -1 stands for padding or for a missing label: it would train the last class.
    """
    if isinstance(label, Integers | Payload):
        return label.used_as_label(classes, place)
    found = checked_index(label, classes, place)
    if as_integer(label) < 0:
        raise EdBatchError(
            f"{place}: label {shown(label)} is negative, expected one in [0, {classes}); what has no label has no "
            "loss: leave it out"
        )
    return found
