"""Views: a value is a node, or a node seen through a view; views are no nodes and cost nothing to run.

A slice, a transposition, a part of a split only says how to look at memory that is there. The id of an expression
therefore has two parts: the node in the lower 32 bits, and above them the code of a view (0: the node's value as it
is). Taking a view adds a constant to the id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from edbatch.base.exact import exact
from edbatch.base.locking import lock
from edbatch.graph.expression import Expression
from edbatch.graph.node_type import Attributes, node_type
from edbatch.graph.op import Op
from edbatch.graph.recorder import NODE_BITS as NODE_BITS
from edbatch.graph.spec import Spec

NODE_MASK = (1 << NODE_BITS) - 1

# Windows nest; past this depth a view is copied, so that a chain of thousands of views costs thousands of copies
# and not thousands of nested windows.
MAX_DEPTH = 8


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """How to see the values of nodes of one spec.

    Args:
        code: position in `VIEWS`.
        root, out: specs of the nodes' values, and of what is seen.
        steps: the chain of view ops, with their attributes.
        look: from an array [rows, *root.shape] to the array [rows, *out.shape] on the same memory.
        strides, first: where the entries lie in a row of the root: neighbours along each axis, and the first of all.
        contiguous: whether they lie side by side, in order.
    """

    code: int
    root: Spec
    out: Spec
    steps: tuple[tuple[Op, Attributes], ...]
    look: Callable[[Any], Any]
    strides: tuple[int, ...]
    first: int
    contiguous: bool

    @property
    def in_order(self) -> bool:
        """Whether it shows all entries in their order, be it in another shape."""
        return self.contiguous and self.first == 0 and self.out.size == self.root.size


VIEWS: list[View | None] = [None]
_interned: dict[Any, View | None] = {}


def view_of(spec: Spec, code: int, op: Op, attributes: Attributes) -> View | None:
    """The view `op` on values of `spec` that are themselves seen through view `code`; None if it takes a copy."""
    key = (code or spec, op, exact(attributes))
    if key not in _interned:
        with lock:  # a view's code is its position
            if key not in _interned:
                _interned[key] = _new_view(spec, code, op, attributes)
    return _interned[key]


def _new_view(spec: Spec, code: int, op: Op, attributes: Attributes) -> View | None:
    out = node_type(op, attributes, (spec,)).out
    parent = VIEWS[code]
    look: Callable[[Any], Any] = partial(op.forward, **dict(attributes))
    root = spec
    steps: tuple[tuple[Op, Attributes], ...] = ((op, attributes),)
    if parent is not None:
        root, steps, look = parent.root, (*parent.steps, *steps), _chain(parent.look, look)
    whole = np.empty((2, *root.shape), root.dtype)
    if len(steps) > MAX_DEPTH or not np.may_share_memory(whole, seen := look(whole)):
        return None
    strides = tuple([stride // whole.itemsize for stride in seen.strides[1:]])
    first = (seen.__array_interface__["data"][0] - whole.__array_interface__["data"][0]) // whole.itemsize
    view = View(len(VIEWS), root, out, steps, look, strides, first, bool(seen[0].flags.c_contiguous))
    VIEWS.append(view)
    return view


def _chain(first: Callable[[Any], Any], then: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda array: then(first(array))


@cache
def steps_of(code: int) -> tuple[tuple[Op, Attributes], ...]:
    """The chain of views that a code stands for."""
    view = VIEWS[code]
    return () if view is None else view.steps


def columns_of(view: View) -> tuple[int, int] | None:
    """(First column, entries) of what a view shows in a row of the root; None if it is not side by side, in order."""
    return (view.first, view.out.size) if view.contiguous else None


def look_through(x: Expression, steps: Iterable[tuple[Op, Attributes]]) -> Expression:
    """`x` seen through views, one of the other."""
    for op, attributes in steps:
        x = look(x, op, attributes)
    return x


def look(x: Expression, op: Op, attributes: Attributes) -> Expression:
    """`x` seen through a view; where memory does not allow that, a node that copies."""
    code = x.id >> NODE_BITS
    view = view_of(x.spec, code, op, attributes)
    if view is None:
        return x.graph.add(node_type(op, attributes, (x.spec,)), (x.id,))
    return x.graph.expression_class(x.graph, x.id + ((view.code - code) << NODE_BITS), view.out)
