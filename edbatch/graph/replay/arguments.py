"""The arguments of one call: the model, the sample, and expressions, which each call gives anew."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.array_graph import array_graph
from edbatch.graph.cell.tree import LEAF, TreeDef, is_nesting, leads_to_expression, tree_of
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.model.collection import ParameterCollection
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.replay.recording import ReplayGraph
from edbatch.graph.replay.sample import Sample, attributes_of, is_python
from edbatch.graph.spec import Spec

MOST = 1000  # objects that are looked at to find out whether one is a model


class Arguments:
    """What a call gives, but for the model.

    Args:
        opened: the `id` of arguments in which expressions are looked for everywhere, not only where one comes first.

    Attributes:
        expressions: in any nesting.
        values: all else, the sample.
        same: by which a call with the same objects is known.
        kind: what is known of the expressions, and where values are.
    """

    same: Hashable
    kind: Hashable
    _tree: TreeDef | None

    def __init__(self, args: tuple[Any, ...], keywords: dict[str, Any], opened: frozenset[int] = frozenset()) -> None:
        self.args, self.keywords = args, keywords
        self.expressions: list[Expression] = []
        self._opened = opened
        self._leaves: list[Any] = []
        if len(args) == 1 and not keywords and not opened and not leads_to_expression(args[0]):
            self.values, self.same, self.kind, self._tree = [args[0]], id(args[0]), None, None
            return
        parts = []
        for x in (*args, *keywords.values()):
            self._is_whole = id(x) in opened
            parts.append(self._leaf(x) or tree_of(x, self._leaf))
        self._tree = TreeDef(list, tuple(parts))
        self.kind = tuple(keywords), *parts
        self.expressions = [x for x in self._leaves if isinstance(x, Expression)]
        self.values = [x for x in self._leaves if not isinstance(x, Expression)]
        self.same = self.kind, *map(id, self.values)

    def sample(self, place: str, strict: bool) -> tuple[Arguments, Sample]:
        """The sample gone through, and the arguments, in which expressions may have been found by that."""
        found = Sample(tuple(self.values), place, strict)
        if not found.holds_expressions:
            return self, found
        if self._opened:
            raise EdBatchError(
                f"{place}: got an object that holds an expression; expected expressions as arguments, or in tuples, "
                "lists, dictionaries and data classes"
            )
        given = (*self.args, *self.keywords.values())
        opened = {id(x) for x in given if is_nesting(x) and Sample((x,), place, strict).holds_expressions}
        return Arguments(self.args, self.keywords, frozenset(opened or [0])).sample(place, strict)

    def placed(self, graph: ReplayGraph) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """With placeholders for expressions."""
        if self._tree is None:
            return self.args, self.keywords
        leaves = (_placeholder(x, graph) if isinstance(x, Expression) else x for x in self._leaves)
        placed, n = self._tree.build(leaves), len(self.args)
        return tuple(placed[:n]), dict(zip(self.keywords, placed[n:], strict=True))

    @property
    def operands(self) -> list[Expression]:
        """The expressions, those of arrays one by one."""
        return [one for x in self.expressions for one in (x if isinstance(x, ExpressionArray) else [x])]

    def _leaf(self, x: Any) -> TreeDef | None:
        if is_nesting(x) and (self._is_whole or leads_to_expression(x)):
            return None
        self._leaves.append(x)
        if isinstance(x, Expression):
            return _leaf_of(x.spec, len(x) if isinstance(x, ExpressionArray) else -1)
        return LEAF


@lru_cache(1000)
def _leaf_of(spec: Spec, count: int) -> TreeDef:
    return TreeDef(None, told=(spec, count))


def is_model(x: Any) -> bool:
    """Whether a first argument is what others call `self`: an object that has parameters, or whose parts have."""
    if isinstance(x, ParameterCollection):
        return True
    if not is_python(type(x)) or isinstance(x, type | Parameter | Expression):
        return False
    waiting, seen = [x], {id(x): x}
    for held in waiting:  # which grows
        parts = (
            held.values() if isinstance(held, dict) else held if isinstance(held, list | tuple) else attributes_of(held)
        )
        for part in islice(parts, MOST):
            if isinstance(part, Parameter | ParameterCollection):
                return True
            is_opened = isinstance(part, dict | list | tuple) or is_python(type(part))
            if is_opened and id(part) not in seen and len(seen) < MOST:
                seen[id(part)] = part
                waiting.append(part)
    return False


def _placeholder(x: Expression, graph: ReplayGraph) -> Expression:
    """What stands for an expression while a sample is recorded."""
    if isinstance(x, ExpressionArray):
        made = [graph.argument(x.spec).id for _ in range(len(x))]
        return array_graph(graph, len(x)).leaf(np.array(made, np.int64), x.spec)
    return graph.argument(x.spec)
