"""Tracing: running a cell's function once on placeholders, to learn what it computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NoReturn

from edbatch.errors import EdBatchError
from edbatch.graph.columns import Columns
from edbatch.graph.expression import Expression
from edbatch.graph.missing_operators import KEYWORD_ONLY, MISSING
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
    """An integer argument of a cell while the cell is traced: known at run time only.

    It may be a look-up index, a label or an index of `pick`, and nothing else.

    Attributes:
        number: position among the cell's integer arguments.
        name: what the cell's function calls it.
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


class Trace(Columns):
    """The body of a cell.

    Attributes:
        payloads: the integers that a call gives: the cell's arguments, then what is drawn for it.
        has_ended: whether the cell's function is done: nothing may use its expressions any more.
        enlarging: shapes of the arrays in its body that are larger than what they are computed with.
    """

    __slots__ = ("cell", "enlarging", "has_ended", "payloads")

    is_trace = True

    def __init__(
        self, cell: str, dtype: Any, options: Options | None = None, expression_class: type[Expression] = Expression
    ) -> None:
        super().__init__(dtype, options, expression_class=expression_class)
        self.cell = cell
        self.payloads: list[Payload] = []
        self.has_ended = False
        self.enlarging: set[Shape] = set()
        self.inlines = self.careful = True  # a cell in a cell

    def value(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: there are no values while tracing."""
        if self.has_ended:
            raise EdBatchError(self.leaked)
        raise EdBatchError(
            f"cell {self.cell} reads a value; a cell is traced once, its structure must not depend on computed values"
        )

    values = backward = gradients = gradient = value

    @property
    def keeps(self) -> str:
        """The cell."""
        return f"cell {self.cell}"

    @property
    def leaked(self) -> str:
        """The error of an expression that outlives the trace."""
        return (
            f"an expression that cell {self.cell} computed while it was traced is used outside of the cell: it has no "
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
        self.payloads.append(Payload(self.cell, len(self.payloads), name))
        return self.payloads[-1]

    def take_draws(self, count: int) -> Sequence[Payload]:
        """Placeholders: every call draws anew."""
        return [self.payload() for _ in range(count)]

    def argument(self, spec: Spec) -> Expression:
        """A placeholder for an expression of this spec."""
        return self.add(argument_type(self.n, spec), ())


def traced(trace: Columns, function: Callable[[], Any]) -> Any:
    """Run `function` with `trace` as the current graph; what it returns."""
    with graphs.block(trace):
        return function()
