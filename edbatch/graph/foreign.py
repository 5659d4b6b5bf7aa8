"""Foreign ops: functions of the user's on whole arrays, called once for each batch, as nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter as Argument
from inspect import Signature
from math import prod
from typing import Any, NamedTuple

from edbatch.base.signature import signature_of
from edbatch.errors import EdBatchError, checked_flag, shown
from edbatch.graph.expression import Expression
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.node_type import NodeType
from edbatch.graph.op import Op, no_gradient
from edbatch.graph.op_callers import Attributes, recorded
from edbatch.graph.ops.shape import reshape, split
from edbatch.graph.record import checked_shape, graph_of, record, to_node
from edbatch.graph.spec import Shape

Shapes = tuple[Shape, ...]


class Bound(NamedTuple):
    """The function that is called for a batch of one type, and the shapes in each operand and in the result."""

    run: Callable[[list[Any]], Sequence[Any]]
    given: list[Shapes]
    results: Shapes


class Call(NamedTuple):
    """A call of a foreign op's function, or of its gradient; `made`: per type and backend what calls it."""

    name: str
    bind: Callable[[NodeType], Bound]
    made: dict[Any, Any]


class ForeignOp:
    """An op that is a function of the user's; `foreign` makes it."""

    def __init__(self, function: Callable[..., Any], out: Any, differentiable: bool) -> None:
        self.__name__ = name = getattr(function, "__name__", type(function).__name__)
        self.__qualname__ = getattr(function, "__qualname__", name)
        self.__doc__, self.__module__ = function.__doc__, function.__module__
        # No `__wrapped__`: a cell depends on which op it records, and not on what that reads when it is called.
        self._function, self._out = function, out
        self._back: Callable[..., Any] | None = None
        self.__signature__, self._n = _signature(name, function)
        call = Call(f"foreign op {name}", self._bind, {})
        back = Call(f"the gradient of {call.name}", self._bind_back, {})
        self._op = Op(name, self._shape, gradient=self._flow if differentiable else no_gradient, call=call)
        self._gradient = Op(f"{name}_gradient", self._shape_of_back, gradient=no_gradient, call=back)
        self._record = self._recorder()
        self._parts: dict[int, Shapes | None] = {}
        self._is_single = not callable(out) and not self._results((), {})[0]

    def __call__(self, *operands: Any, **named: Any) -> Any:
        """Record a call; returns an expression, or a tuple of several."""
        given = (*operands, *named.values()) if named else operands
        for x in given:
            if isinstance(x, Parameter):
                graph = graph_of(self.__name__, given)
                operands = tuple([to_node(graph, x) if isinstance(x, Parameter) else x for x in operands])
                named = {key: to_node(graph, x) if isinstance(x, Parameter) else x for key, x in named.items()}
                break
        whole: Any = self._record(*operands, **named)
        if self._is_single:
            return whole
        type: NodeType = whole.graph.type_of(whole)
        if type.id not in self._parts:
            several, shapes = self._results([x.shape for x in type.operands], dict(type.attributes))
            self._parts[type.id] = shapes if several else None
        return whole if (parts := self._parts[type.id]) is None else tuple(_parts_of(whole, parts))

    def gradient(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Have a function compute the gradient; a decorator, which returns the function.

        Args:
            function: (gradient, *operands, result, **attributes) -> for each operand an array [n, *its shape], or None
                where nothing flows. It is called once for each batch that gradients flow through, with those n of its
                nodes: the gradient of the result, [n, *its shape], the operands and the result as they were; of several
                results, tuples of arrays.
        """
        self._back = function
        return function

    def __repr__(self) -> str:
        return f"<foreign op {self.__name__}>"

    def _recorder(self) -> Callable[..., Expression]:
        """The function that records a call, given operands and attributes."""
        signature, n = self.__signature__, self._n

        def attributes(*given: Any, **named: Any) -> Attributes:
            bound = signature.bind(*given, **named).arguments
            return {key: _checked(self.__name__, key, bound[key]) for key in list(bound)[n:]}

        attributes.__name__, attributes.__signature__ = self.__name__, signature  # type: ignore[attr-defined]
        return recorded(self._op, n)(attributes)

    def _results(self, shapes: Sequence[Shape], attributes: dict[str, Any]) -> tuple[bool, Shapes]:
        """Whether a call has several results, and their shapes."""
        found = self._out(*shapes, **attributes) if callable(self._out) else self._out
        several = isinstance(found, tuple | list) and any(isinstance(one, tuple | list) for one in found)
        listed = found if several else (found,)
        return several, tuple([checked_shape(f"{self.__name__}: out", one) for one in listed])

    def _shape(self, *shapes: Shape, **attributes: Any) -> Shape:
        several, results = self._results(shapes, attributes)
        return (sum(map(prod, results)),) if several else results[0]

    def _bind(self, type: NodeType) -> Bound:
        attributes, shapes = dict(type.attributes), [x.shape for x in type.operands]
        results = self._results(shapes, attributes)[1]

        def run(arrays: list[Any]) -> Sequence[Any]:
            found = _listed(self._function(*arrays, **attributes), len(results), "results")
            if any(x is None for x in found):
                raise EdBatchError("expected an array, got None")
            return found

        return Bound(run, [(shape,) for shape in shapes], results)

    # The gradient is an op as well. Its operands are the result's gradient, the op's operands, and the result; its
    # result is the gradients of the operands side by side.

    def _shape_of_back(self, g: Shape, *shapes: Shape, **_: Any) -> Shape:
        return (sum(map(prod, shapes[:-1])),)

    def _flow(self, g: Any, out: Any, *xs: Any, **attributes: Any) -> list[Expression]:
        return _parts_of(record(self._gradient, (g, *xs, out), **attributes), [x.shape for x in xs])

    def _bind_back(self, type: NodeType) -> Bound:
        attributes, shapes = dict(type.attributes), tuple([x.shape for x in type.operands[1:-1]])
        several, results = self._results(shapes, attributes)
        n = len(results)

        def run(arrays: list[Any]) -> Sequence[Any]:
            if self._back is None:
                stopped = "@edbatch.foreign(..., differentiable=False)"
                raise EdBatchError(f"there is none; give one by @{self.__name__}.gradient, or {stopped} if none flows")
            g, out = (tuple(arrays[:n]), tuple(arrays[-n:])) if several else (arrays[0], arrays[-1])
            return _listed(self._back(g, *arrays[n:-n], out, **attributes), len(shapes), "gradients of operands")

        return Bound(run, [results, *[(shape,) for shape in shapes], results], shapes)


def foreign(out: Any, differentiable: bool = True) -> Callable[[Callable[..., Any]], ForeignOp]:
    """Make an op of a function on whole arrays: a decorator. The function is called once for each batch.

    A call of the op on expressions records one node, as a call of any op does; a parameter, a number or an array may be
    an operand, too. Calls of the same op with operands of the same shapes and equal attributes, from whatever samples,
    are batched, and the function gets their operands side by side. In a cell, a call is a step of the cell's
    computation, and made once for each batch of the cell.

    The function's parameters without a default are the operands: arrays [n, *shape], of the graph's dtype; NumPy's on a
    CPU, CuPy's on a GPU, on the current stream. Other libraries take both without a copy, by DLPack. They are
    copies, in one piece: the function may write to them and keep them. It returns an array [n, *shape of the result]
    of the same dtype, or one that shares it by DLPack; of several results, a tuple of arrays. Its parameters with a
    default are attributes, which calls give by keyword.

    The gradient is another function, see `ForeignOp.gradient`; until there is one, gradients that reach the op are an
    error. Both functions may run graphs of their own, but not ask for values of the graph that calls them.

    Args:
        out: (*shapes of the operands, **attributes) -> the result's shape; or the shape itself, if it is always the
            same. Of several results, a tuple of shapes.
        differentiable: False: no gradient flows through the op.

    Returns:
        The op. It is of the function that it was made of: another op of the same name is another type. Types, and what
        a function refers to, live as long as the process.

    Raises:
        EdBatchError: at once, if there is no operand, or the number of them varies; at a call, if an attribute is not
            hashable. When the graph runs, if a function raises an exception (its cause), or returns what is no array of
            the right shape and dtype; then the graph has no values.

    Example:
        >>> import numpy as np, edbatch as eb
        >>> @eb.foreign(out=lambda x: x)
        ... def sort(x):
        ...     return np.sort(x, axis=-1)
        >>> @sort.gradient
        ... def sort_gradient(gradient, x, result):
        ...     back = np.empty_like(gradient)
        ...     np.put_along_axis(back, np.argsort(x, axis=-1), gradient, axis=-1)
        ...     return back
        >>> with eb.Graph(policy="critical-path") as graph:
        ...     xs = [eb.input(x) for x in ([3.0, 1.0], [5.0, 4.0], [1.0, 2.0])]
        ...     y = eb.sum([sort(x) for x in xs])
        >>> y.value(), graph.report().batches  # one call of `sort`, one sum
        (array([ 6., 10.], dtype=float32), 2)
        >>> y.backward([1.0, 2.0])
        >>> xs[0].gradient()
        array([2., 1.], dtype=float32)
    """
    checked_flag("foreign: differentiable", differentiable)
    return lambda function: ForeignOp(function, out, differentiable)


def _signature(name: str, function: Callable[..., Any]) -> tuple[Signature, int]:
    """How calls are made: operands, of which there are so many, then attributes."""
    signature, kind = signature_of(function), Argument.POSITIONAL_OR_KEYWORD
    parameters = signature.parameters.values()
    n = sum(x.default is x.empty for x in parameters)
    varies = any(x.kind in (x.VAR_POSITIONAL, x.VAR_KEYWORD) for x in parameters)
    if varies or not n or any(x.kind is x.KEYWORD_ONLY and x.default is x.empty for x in parameters):
        expected = "a parameter for each operand, then keywords with defaults"
        raise EdBatchError(f"foreign op {name}: expected {expected}, got {name}{signature}")
    return Signature([Argument(x.name, kind, default=x.default) for x in parameters]), n


def _checked(name: str, key: str, value: Any) -> Any:
    """An attribute."""
    is_known = not isinstance(value, Expression | Parameter)
    try:
        hash(value)
    except TypeError:
        is_known = False
    if not is_known:
        expected = "something hashable that is known now (an operand has no default)"
        raise EdBatchError(f"{name}: {key}: expected {expected}, got {shown(value)}")
    return value


def _listed(found: Any, n: int, what: str) -> Sequence[Any]:
    """The results of a function, as a list of n arrays."""
    listed = found if isinstance(found, tuple | list) else (found,)
    if len(listed) != n:
        raise EdBatchError(f"{what}: expected {n}, got {len(listed)}")
    return listed


def _parts_of(whole: Expression, shapes: Sequence[Shape]) -> list[Expression]:
    """The values that lie side by side in a vector."""
    return [reshape(x, shape) for x, shape in zip(split(whole, [*map(prod, shapes)]), shapes, strict=True)]
