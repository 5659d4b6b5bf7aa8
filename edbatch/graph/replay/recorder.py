"""The graph that a function records in when its sample is new: what it gets there can be appended to any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from edbatch.base.exact import Identity
from edbatch.errors import EdBatchError
from edbatch.graph.cell.trace import argument_type
from edbatch.graph.columns import Columns
from edbatch.graph.expression import Expression
from edbatch.graph.guard import Guard, Held
from edbatch.graph.spec import Spec

if TYPE_CHECKING:
    from edbatch.graph.cell.body import Body
    from edbatch.graph.cell.tables import Compiled

#: From here on, integers stand for what is drawn: no seed, index or number of a node is as large.
DRAWN = 1 << 62


class Recorder(Columns):
    """A graph that is never run.

    Attributes:
        name: for errors.
        target: the graph that is recorded for.
        arguments: ids of the expressions that a call gives.
        drawn: how many integers were drawn.
        held: guards of the cells and replayed functions that were called.
    """

    __slots__ = ("arguments", "drawn", "held", "name", "target")

    is_trace = True

    def __init__(self, name: str, target: Columns) -> None:
        super().__init__(target.dtype, target.options, expression_class=target.expression_class)
        self.name = name
        self.target = target
        self.arguments: list[int] = []
        self.drawn = 0
        self.held: dict[Any, Held] = {}

    def note(self, guard: Guard, owner: Any, static: Any = None, besides: frozenset[str] | None = None) -> None:
        """Note what must stay as it is, besides what the function reads itself."""
        super().note(guard, owner, static, besides)
        self.held[id(guard), id(owner)] = guard, Identity(owner).held, static

    @property
    def keeps(self) -> str:
        """The function."""
        return self.name

    def argument(self, spec: Spec) -> Expression:
        """A placeholder for an expression."""
        made = self.add(argument_type(0, spec), ())
        self.arguments.append(made.id)
        return made

    def take_draws(self, count: int) -> Sequence[int]:
        """What stands for integers that every call draws anew."""
        first = DRAWN + self.drawn
        self.drawn += count
        return range(first, first + count)

    def compile(self, body: Body, arguments: Sequence[str]) -> Compiled:
        """As the graph that is recorded for."""
        return self.target.compile(body, arguments)

    def value(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: there are no values."""
        raise EdBatchError(
            f"{self.name} reads a value; what it records is kept, so it must not depend on computed values: read them "
            "after it has returned, or leave the decorator away"
        )

    values = rows = backward = gradient = run = value
