"""Tracing: graphs that never run, in which a user's function records once what is then used many times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, NoReturn

from edbatch.base.exact import Identity
from edbatch.errors import EdBatchError
from edbatch.graph.block import DRAWN
from edbatch.graph.columns import Columns
from edbatch.graph.expression import Expression
from edbatch.graph.guard import Guard, Held
from edbatch.graph.hints import KEYWORD_ONLY, MISSING
from edbatch.graph.node_type import NodeType, intern
from edbatch.graph.op import Kind, Op, declare
from edbatch.graph.opened import graphs
from edbatch.graph.options import Options
from edbatch.graph.spec import Shape, Spec


def _given(*_: Any) -> NoReturn:
    raise AssertionError("the result spec of an argument is given, not inferred")


ARGUMENT = declare(Op("argument", _given, lambda *_: None, Kind.SOURCE))


@cache
def argument_type(number: int, spec: Spec) -> NodeType:
    """The type of a body's argument."""
    return intern(ARGUMENT, (("number", number),), (), spec)


class Payload:
    """An integer argument of a cell while the cell is traced: an index or a label, known at run time only.

    Attributes:
        limit: the least size it has been used to index.
        is_alike: whether all were of one size: only then does a negative one mean the same wherever it is used.
        is_label: whether it has been used as a label, which is never negative.
        graph: that it belongs to; None: the one that is traced.
    """

    __slots__ = ("cell", "is_alike", "is_label", "limit", "name", "number")

    graph: Columns | None = None

    def __init__(self, cell: str, number: int, name: str = "") -> None:
        self.cell = cell
        self.number = number
        self.name = name or f"integer {number}"
        self.limit = 2**31
        self.is_alike = True
        self.is_label = False

    def used_in(self, size: int, place: str) -> Any:
        """Note a use as an index below `size`; what stands for it among a node's integers (no index is negative)."""
        self.is_alike = self.is_alike and self.limit in (2**31, size)
        self.limit = min(self.limit, size)
        return -1 - self.number

    def used_as_label(self, classes: int, place: str) -> Any:
        """Note a use as one of so many classes; as `used_in`."""
        self.is_label = True
        return self.used_in(classes, place)

    def refused(self, use: str = "") -> EdBatchError:
        """The error about any other use."""
        return EdBatchError(
            f"cell {self.cell}: argument {self.name} is an integer, known at run time only{use}; it may only be an "
            f"index (x[{self.name}], lookup, pick) or a label. To compute with it, give a float; {KEYWORD_ONLY}"
        )

    def __repr__(self) -> str:
        return self.name

    def _unknown(self, *_: Any) -> NoReturn:
        raise self.refused()

    __eq__ = __bool__ = __index__ = __int__ = __float__ = __round__ = __trunc__ = __hash__ = _unknown
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _unknown
    __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __neg__ = __pos__ = __abs__ = _unknown
    __lt__ = __le__ = __gt__ = __ge__ = _unknown


for _name in MISSING:
    setattr(Payload, _name, Payload._unknown)


class Constant(NamedTuple):
    """The number of a constant that a function uses: the same for all calls, in each graph one of its own."""

    number: int


class FunctionGraph(Columns):
    """A graph that never runs: a function records in it, once for many calls.

    Attributes:
        name: of the function, for errors.
        drawn: how many integers were drawn.
        held: guards of the cells and replayed functions that were called in it, and their roots.
    """

    __slots__ = ("drawn", "held", "name")

    is_trace = True
    #: Why there are no values.
    no_value = "; what it records is kept, so it must not depend on computed values"

    def __init__(self, name: str, *of_graph: Any, **named: Any) -> None:
        super().__init__(*of_graph, **named)
        self.name = name
        self.drawn = 0
        self.held: dict[Any, Held] = {}

    def note(self, guard: Guard, owner: Any, static: Any = None, besides: frozenset[str] | None = None) -> None:
        """Note what must stay as it is, besides what the function reads itself."""
        super().note(guard, owner, static, besides)
        self.held[id(guard), id(owner)] = guard, Identity(owner).held, static

    @property
    def keeps(self) -> str:
        """The function, unless it may record anew for each graph."""
        return self.name if self.base is None else self.base.keeps

    def argument(self, spec: Spec, number: int = 0) -> Expression:
        """A placeholder for an expression of this spec."""
        return self.add(argument_type(number, spec), ())

    def take_draws(self, count: int) -> Sequence[Any]:
        """What stands for integers that every call draws anew."""
        first = DRAWN + self.drawn
        self.drawn += count
        return range(first, first + count)

    @property
    def refusal(self) -> str:
        """The error of who asks for a value."""
        return self.name + self.no_value

    def value(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: there are no values."""
        raise EdBatchError(self.refusal)

    values = rows = backward = gradients = gradient = run = value


class Trace(FunctionGraph):
    """The body of a cell.

    Attributes:
        payloads: the integers that a call gives: the cell's arguments, then what is drawn for it.
        has_ended: whether the cell's function is done: nothing may use its expressions any more.
        enlarging: shapes of the arrays in its body that are larger than what they are computed with.
    """

    __slots__ = ("enlarging", "has_ended", "payloads")

    no_value = " reads a value; a cell is traced once, its structure must not depend on computed values"

    def __init__(
        self, cell: str, dtype: Any, options: Options | None = None, expression_class: type[Expression] = Expression
    ) -> None:
        super().__init__(f"cell {cell}", dtype, options, expression_class=expression_class)
        self.payloads: list[Payload] = []
        self.has_ended = False
        self.enlarging: set[Shape] = set()
        self.inlines = self.careful = True  # a cell in a cell

    @property
    def refusal(self) -> str:
        """The error of who asks for a value, now or afterwards."""
        return self.leaked if self.has_ended else super().refusal

    @property
    def leaked(self) -> str:
        """The error of an expression that outlives the trace."""
        return (
            f"an expression that {self.name} computed while it was traced is used outside of the cell: it has no "
            "value, as a call of the cell records one node; have the cell return it, and use what each call returns"
        )

    def may_mean_each(self, rows: int) -> bool:
        """As calls with arrays of expressions will tell."""
        return True

    def refuse_rows(self, place: str, shape: Shape) -> None:
        """Have them refuse it."""
        self.enlarging.add(shape)

    def payload(self, name: str = "") -> Payload:
        """A placeholder for one more integer of a call."""
        self.payloads.append(Payload(self.name.removeprefix("cell "), len(self.payloads), name))
        return self.payloads[-1]

    def take_draws(self, count: int) -> Sequence[Payload]:
        """Placeholders: every call draws anew."""
        return [self.payload() for _ in range(count)]

    def argument(self, spec: Spec, number: int = 0) -> Expression:
        """A placeholder for an expression of this spec, by its position."""
        return super().argument(spec, self.n)


def traced(trace: Columns, function: Callable[[], Any]) -> Any:
    """Run `function` with `trace` as the current graph; what it returns."""
    with graphs.block(trace):
        return function()


def graph_kind(graph: Columns) -> tuple[Any, ...]:
    """What a function may record differently for."""
    options = graph.options
    return graph.dtype, graph.expression_class, graph.inlines, options.variant, options.trace_lines
