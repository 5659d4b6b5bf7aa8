"""Ops that move no arithmetic: views of memory (index, slice, reshape, transpose, flip) and placing side by side."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as as_index
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.expression import Expression
from edbatch.graph.node_type import node_type
from edbatch.graph.op import Kind, Op, Sample, declare, expect
from edbatch.graph.parameters import LookupParameters, Parameter
from edbatch.graph.record import checked_index, graph_of, record, to_node, to_operand
from edbatch.graph.spec import Shape

# A static index: per axis an int or a (start, stop, step) triple, hashable as part of a type.
Index = tuple[int | tuple[int | None, int | None, int | None], ...]


def _as_key(index: Index) -> tuple[int | slice, ...]:
    return tuple(part if isinstance(part, int) else slice(*part) for part in index)


def _index_shape(shape: Shape, index: Index) -> Shape:
    return np.empty(shape, dtype=np.bool_)[_as_key(index)].shape if shape else ()


def _view(name: str, shape: Any, forward: Any, samples: tuple[Sample, ...]) -> Op:
    return declare(Op(name, shape, forward, Kind.VIEW, samples=samples))


INDEX = _view(
    "index",
    _index_shape,
    lambda x, index: x[(slice(None), *_as_key(index))],
    (
        Sample(((5,),), {"index": ((1, 4, None),)}),
        Sample(((5,),), {"index": (2,)}),
        Sample(((4, 3),), {"index": (1,)}),
        Sample(((4, 3),), {"index": ((None, None, -1), (0, 3, 2))}),
    ),
)


def _reshape_shape(shape: Shape, shape_to: Shape) -> Shape:
    expect(int(np.prod(shape)) == int(np.prod(shape_to)), f"expected {int(np.prod(shape))} entries in {shape_to}")
    return shape_to


RESHAPE = _view(
    "reshape",
    _reshape_shape,
    lambda x, shape_to: x.reshape(len(x), *shape_to),
    (Sample(((2, 3),), {"shape_to": (3, 2)}), Sample(((6,),), {"shape_to": (2, 1, 3)})),
)
TRANSPOSE = _view(
    "transpose",
    lambda shape, axes: tuple(shape[axis] for axis in axes),
    lambda x, axes: x.transpose(0, *(axis + 1 for axis in axes)),
    (Sample(((2, 3),), {"axes": (1, 0)}), Sample(((2, 3, 4),), {"axes": (2, 0, 1)})),
)
STOP_GRADIENT = _view("stop_gradient", lambda shape: shape, lambda x: x, (Sample(((3,),)),))


def _concatenate_shape(*shapes: Shape, axis: int) -> Shape:
    first = shapes[0]
    for at, shape in enumerate(shapes):
        if len(shape) != len(first) or shape[:axis] + shape[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            raise EdBatchError(f"operand {at} has shape {shape}; expected {first} except on axis {axis}")
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def _concatenate_places(out: Any, shapes: Sequence[Shape], axis: int) -> list[Any]:
    ends = np.cumsum([shape[axis] for shape in shapes]).tolist()
    lead = (slice(None),) * (axis + 1)
    return [out[(*lead, slice(end - shape[axis], end))] for end, shape in zip(ends, shapes, strict=True)]


def _stack_shape(*shapes: Shape, axis: int) -> Shape:
    expect(len(set(shapes)) == 1, "expected operands of one shape")
    return (*shapes[0][:axis], len(shapes), *shapes[0][axis:])


CONCATENATE = declare(
    Op(
        "concatenate",
        _concatenate_shape,
        None,
        places=_concatenate_places,
        samples=(
            Sample(((2,), (3,), (1,)), {"axis": 0}),
            Sample(((2, 3), (2, 1)), {"axis": 1}),
            Sample(((2, 3), (1, 3)), {"axis": 0}),
        ),
    )
)
STACK = declare(
    Op(
        "stack",
        _stack_shape,
        None,
        places=lambda out, shapes, axis: [out[(slice(None),) * (axis + 1) + (i,)] for i in range(len(shapes))],
        samples=(Sample(((), (), ()), {"axis": 0}), Sample(((3,), (3,)), {"axis": 1})),
    )
)


def checked_axis(name: str, ndim: int, axis: Any) -> int:
    """`axis` as an int in [0, ndim)."""
    try:
        found = as_index(axis)
    except TypeError:
        raise EdBatchError(f"{name}: expected an integer axis, got {axis!r}") from None
    if not -ndim <= found < ndim:
        raise EdBatchError(f"{name}: axis {found} of a value with {ndim} axes")
    return found % ndim


def concatenate(xs: Sequence[Any], axis: int = 0) -> Expression:
    """Expressions one after the other along an axis.

    Args:
        xs: at least one expression or parameter, of equal shapes except on `axis`.
        axis: of one sample's value.

    Raises:
        EdBatchError: an empty list, or shapes that do not fit; the operand is named.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     y = eb.concatenate([eb.input([1.0, 2.0]), eb.input([3.0])])
        >>> y.value()
        array([1., 2., 3.], dtype=float32)
    """
    return _placed(CONCATENATE, xs, axis, 0)


def stack(xs: Sequence[Any], axis: int = 0) -> Expression:
    """Expressions of one shape side by side along a new axis.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     y = eb.stack([eb.input([1.0, 2.0]), eb.input([3.0, 4.0])])
        >>> y.value()
        array([[1., 2.],
               [3., 4.]], dtype=float32)
    """
    return _placed(STACK, xs, axis, 1)


_placed_types: dict[Any, tuple[int, Any]] = {}


def _placed(op: Op, xs: Sequence[Any], axis: int, new_axes: int) -> Expression:
    if not xs:
        raise EdBatchError(f"{op.name}([]): expected at least one expression")
    graph = xs[0].graph if xs[0].__class__ is Expression else None
    try:
        type_id, spec = _placed_types[op, axis, *[x.spec for x in xs]]
        if graph is None or any(x.graph is not graph for x in xs):
            raise KeyError
    except (KeyError, AttributeError):
        owner = graph_of(op.name, xs)
        ndim = len(to_operand(op, owner, xs[0]).spec.shape)
        out = record(op, tuple(xs), axis=checked_axis(op.name, ndim + new_axes, axis))
        if all(isinstance(x, Expression) for x in xs):
            _placed_types[op, axis, *[x.spec for x in xs]] = (out.graph.type_of(out).id, out.spec)
        return out
    node = graph.n
    graph.n = node + 1
    graph.push_type(type_id)
    for x in xs:
        graph.push(x.id)
    return Expression(graph, node, spec)


def _parse_index(place: str, shape: Shape, key: Any) -> Index:
    parts = list(key) if isinstance(key, tuple) else [key]
    ellipses = [at for at, part in enumerate(parts) if part is Ellipsis]
    if len(ellipses) > 1 or len(parts) - len(ellipses) > len(shape):
        raise EdBatchError(f"{place}: too many indices for {len(shape)} axes")
    full = slice(None)
    if ellipses:
        at = ellipses[0]
        parts[at : at + 1] = [full] * (len(shape) - len(parts) + 1)
    parts += [full] * (len(shape) - len(parts))
    index: list[int | tuple[int | None, int | None, int | None]] = []
    for part, size in zip(parts, shape, strict=True):
        if isinstance(part, slice):
            try:
                start, stop, step = part.indices(size)
            except (TypeError, ValueError) as error:
                raise EdBatchError(f"{place}: {error}") from None
            if len(range(start, stop, step)) == 0:
                raise EdBatchError(f"{place}: the slice {start}:{stop}:{step} of {size} entries is empty")
            index.append((start, stop if stop >= 0 else None, step))
        else:
            index.append(checked_index(part, size, place))
    return tuple(index)


# Per spec, from a key as the user writes it to (type id, result spec); slices are no dictionary keys before Python
# 3.12, their three numbers are.
_indexed_types: dict[Any, tuple[int, Any]] = {}


def _getitem(x: Expression, key: Any) -> Expression:
    plain = (key.start, key.stop, key.step, x.spec) if key.__class__ is slice else (key, x.spec)
    try:
        type_id, spec = _indexed_types[plain]
    except (KeyError, TypeError):
        index = _parse_index(f"{x.spec!r}[{key!r}]", x.spec.shape, key)
        type = node_type(INDEX, (("index", index),), (x.spec,))
        type_id, spec = type.id, type.out
        if key.__class__ in (slice, int):
            _indexed_types[plain] = (type_id, spec)
    graph = x.graph
    node = graph.n
    graph.n = node + 1
    graph.push_type(type_id)
    graph.push(x.id)
    return Expression(graph, node, spec)


def _parameter_getitem(parameter: Parameter, key: Any) -> Expression:
    if isinstance(parameter, LookupParameters):
        from edbatch.graph.ops.inputs import lookup

        return lookup(parameter, key)
    return _getitem(to_node(graph_of("index", ()), parameter), key)


_split_types: dict[Any, list[tuple[int, Any]]] = {}


def split(x: Any, parts: int | Sequence[int], axis: int = 0) -> list[Expression]:
    """Cut an expression along an axis into views; costs no batch and no copy.

    Args:
        x: expression.
        parts: a number of equal parts, or the sizes of the parts.
        axis: of one sample's value.

    Raises:
        EdBatchError: the axis does not divide into these parts.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     a, b = eb.split(eb.input([1.0, 2.0, 3.0, 4.0]), 2)
        >>> b.value()
        array([3., 4.], dtype=float32)
    """
    if x.__class__ is not Expression:
        x = to_node(graph_of("split", (x,)), to_operand(INDEX, graph_of("split", (x,)), x))
    plain = (x.spec, parts if isinstance(parts, int) else tuple(parts), axis)
    entries = _split_types.get(plain)
    if entries is None:
        entries = _split_types[plain] = _split_entries(x, parts, axis)
    graph, id = x.graph, x.id
    out = []
    for type_id, spec in entries:
        node = graph.n
        graph.n = node + 1
        graph.push_type(type_id)
        graph.push(id)
        out.append(Expression(graph, node, spec))
    return out


def _split_entries(x: Expression, parts: int | Sequence[int], axis: int) -> list[tuple[int, Any]]:
    place = f"split({x.spec!r}, {parts!r}, axis={axis})"
    shape = x.spec.shape
    axis = checked_axis(place, len(shape), axis)
    if isinstance(parts, int):
        expect(parts > 0 and shape[axis] % parts == 0, f"{place}: {shape[axis]} entries do not divide evenly")
        sizes = [shape[axis] // parts] * parts
    else:
        sizes = [int(size) for size in parts]
        expect(min(sizes, default=0) > 0 and sum(sizes) == shape[axis], f"{place}: expected sizes adding to {shape[axis]}")
    entries = []
    start = 0
    for size in sizes:
        key = (*[slice(None)] * axis, slice(start, start + size))
        type = node_type(INDEX, (("index", _parse_index(place, shape, key)),), (x.spec,))
        entries.append((type.id, type.out))
        start += size
    return entries


def reshape(x: Any, shape: int | Sequence[int]) -> Expression:
    """The same entries in another shape (row-major order); one size may be -1.

    Raises:
        EdBatchError: the number of entries differs.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     y = eb.reshape(eb.input([1.0, 2.0, 3.0, 4.0]), (2, -1))
        >>> y.shape
        (2, 2)
    """
    given = [shape] if isinstance(shape, int) else list(shape)
    x = to_operand(RESHAPE, graph_of("reshape", (x,)), x)
    known = int(np.prod([size for size in given if size != -1]))
    if given.count(-1) == 1 and known > 0 and x.spec.size % known == 0:
        given[given.index(-1)] = x.spec.size // known
    if any(size < 0 for size in given):
        raise EdBatchError(f"reshape({x.spec!r}, {tuple(shape) if not isinstance(shape, int) else shape}): does not fit")
    return record(RESHAPE, (x,), shape_to=tuple(int(size) for size in given))


def transpose(x: Any, axes: Sequence[int] | None = None) -> Expression:
    """Permute the axes; reversed by default. `x.T` is `transpose(x)`.

    Raises:
        EdBatchError: `axes` is no permutation of the axes.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     y = eb.transpose(eb.input([[1.0, 2.0, 3.0]]))
        >>> y.shape
        (3, 1)
    """
    x = to_operand(TRANSPOSE, graph_of("transpose", (x,)), x)
    ndim = len(x.spec.shape)
    order = tuple(range(ndim))[::-1] if axes is None else tuple(checked_axis("transpose", ndim, a) for a in axes)
    expect(sorted(order) == list(range(ndim)), f"transpose({x.spec!r}, {axes}): expected a permutation of the axes")
    return record(TRANSPOSE, (x,), axes=order)


def flip(x: Any, axis: int = 0) -> Expression:
    """The entries along an axis in reverse order.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     y = eb.flip(eb.input([1.0, 2.0, 3.0]))
        >>> y.value()
        array([3., 2., 1.], dtype=float32)
    """
    graph = graph_of("flip", (x,))
    x = to_node(graph, to_operand(INDEX, graph, x))
    axis = checked_axis("flip", len(x.spec.shape), axis)
    return _getitem(x, (*[slice(None)] * axis, slice(None, None, -1)))


def stop_gradient(x: Any) -> Expression:
    """The same value, through which no gradient will flow.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     y = eb.stop_gradient(eb.scalar(2))
        >>> y.value()
        np.float32(2.0)
    """
    return record(STOP_GRADIENT, (x,))


Expression.__getitem__ = _getitem  # type: ignore[method-assign]
Parameter.__getitem__ = _parameter_getitem  # type: ignore[attr-defined]
for _class in (Expression, Parameter):
    _class.T = property(transpose)  # type: ignore[assignment, union-attr]
