"""Arrays of expressions: n expressions of one shape that are recorded by one call."""

from __future__ import annotations

from collections.abc import Iterator
from types import new_class
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from edbatch.base.numbers import as_integer
from edbatch.errors import EdBatchError, Place, shown
from edbatch.graph.expression import Expression
from edbatch.graph.integers import chosen_entries

if TYPE_CHECKING:
    from edbatch.graph.array_graph import ArrayGraph


_ALL = slice(None)


class ExpressionArray(Expression):
    """n expressions of one graph, shape and dtype, which functions and cells take as they take one expression.

    A function or a cell that is given an array records n ordinary nodes, one for each entry, and returns an array, at a
    small part of the cost of n calls. Other arrays that it is given have as many entries; a single expression, a
    parameter, a number or a NumPy array is the same for all entries. Where it takes an integer (a look-up, a label, an
    argument of a cell that is annotated `int`), an array of n integers gives each entry its own. A NumPy array that has
    a row for each entry and would make each larger is refused: `eb.array(x)` gives each its row, `eb.input(x)` all of
    it. It is no tensor with an axis more: `shape` and axes are those of an entry, entries are independent, and run with
    whatever else the policy finds ready.

    Where a function takes a list of expressions and no axis (`eb.sum(xs)`, the keys of `eb.attention`), an array is
    that list; `eb.sum(xs, axis=0)` is of each entry, and so is `eb.softmax(xs)`, which has an axis by default.

    `xs[3]` is an expression; slices, integers in a list and masks choose entries, further indices are of an entry:
    `xs[:, 0]`. `len(xs)` and iteration are those of a list. `eb.array` joins.

    A node that no array leads to any more when the graph runs is not computed.

    Example:
        >>> import numpy as np, edbatch as eb
        >>> with eb.Graph():
        ...     xs = eb.array(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
        ...     total = eb.sum(eb.relu(xs - 3.0)[1:])
        >>> len(xs), xs.shape, total.value()
        (3, (2,), array([2., 4.], dtype=float32))
    """

    __slots__ = ()

    # Its graph is one whose nodes each stand for n; so all that takes an expression takes an array, and does no more.

    if TYPE_CHECKING:
        graph: ArrayGraph

    @property
    def ids(self) -> np.ndarray:
        """Per entry the id (int64) that the expression has in the graph."""
        return self.graph.ids_of(self.id)

    def __len__(self) -> int:
        return self.graph.count

    def __iter__(self) -> Iterator[Expression]:
        graph, spec = self.graph.base, self.spec
        return (graph.expression_class(graph, id, spec) for id in self.ids.tolist())

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not parts or parts[0] is Ellipsis:
            given = sum(part is not None for part in parts[1:])
            parts = (_ALL, *parts) if given <= len(self.shape) else parts[1:]  # for one more, it stands for nothing
        chosen, *rest = parts
        if rest and chosen.__class__ is slice and chosen == _ALL:
            found = self
        else:
            found = self.graph.chosen(self, _checked_entries(chosen, len(self)))
        return Expression.__getitem__(found, tuple(rest)) if rest else found

    def value(self) -> np.ndarray:
        """The values of all entries, an array [n, *shape] of the caller's own; runs what is pending, once."""
        return self.graph.base.rows(self.ids, self.spec)

    def gradient(self) -> np.ndarray:
        """The gradients of all entries, an array [n, *shape]; see `Expression.gradient`."""
        found: np.ndarray = self.graph.base.gradient(self)
        return found

    def backward(self, gradient: Any = None) -> NoReturn:
        """Refuse: gradients are of one number, or given for each entry."""
        what = "expected one expression, as eb.sum(xs) is; eb.backward(xs, gradients) takes an array"
        raise EdBatchError(f"backward of {self!r}: {what}")

    def item(self) -> NoReturn:
        """Refuse: an array is no number."""
        raise EdBatchError(f"{self!r} as a number: expected one expression; .value() is an array of all")

    def __repr__(self) -> str:
        return f"ExpressionArray({len(self)} expressions, shape={self.shape})"


Expression.of_arrays = ExpressionArray


def is_one(x: Any) -> bool:
    """Whether it is a single expression."""
    return x.__class__ is Expression or (isinstance(x, Expression) and not isinstance(x, ExpressionArray))


def expect_expression_class(found: Any) -> None:
    """Check that expressions of a graph can be of a class, and give it one for arrays if it has none of its own."""
    if not (isinstance(found, type) and issubclass(found, Expression)) or issubclass(found, ExpressionArray):
        raise EdBatchError(f"expression_class: expected a subclass of Expression, for single ones, got {shown(found)}")
    if "of_arrays" not in vars(found):
        bases = found.of_arrays, found  # in this order: an array is a list first
        about = {"__slots__": (), "__module__": found.__module__, "__doc__": f"Several of `{found.__name__}`."}
        found.of_arrays = new_class(f"{found.__name__}Array", bases, None, lambda held: held.update(about))
    if not (isinstance(found.of_arrays, type) and issubclass(found.of_arrays, ExpressionArray)):
        raise EdBatchError(
            f"expression_class: {found.__name__}.of_arrays: expected a subclass of ExpressionArray, "
            f"got {shown(found.of_arrays)}"
        )


def _checked_entries(chosen: Any, count: int) -> Any:
    """An index into a list of so many entries: an integer, a slice, or an array of integers."""
    if chosen.__class__ is int and -count <= chosen < count:
        return chosen
    place = Place(lambda: f"entries {shown(chosen)} of {count} expressions")
    if isinstance(chosen, slice):
        try:
            chosen.indices(count)
        except (TypeError, ValueError) as error:
            raise EdBatchError(f"{place}: {error}") from None
        return chosen
    try:
        found = as_integer(chosen)
    except TypeError:
        return chosen_entries(place, chosen, count)
    if not -count <= found < count:
        raise EdBatchError(f"{place}: index {shown(found)} is out of range for {count} entries")
    return found
