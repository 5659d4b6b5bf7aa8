"""The expressions that programs can still reach: found as Python's garbage collector would find them."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from edbatch.base.blocks import Block
from edbatch.graph.cell.cell import Cell
from edbatch.graph.cell.entry import Entry, LastCall, Variant
from edbatch.graph.columns import Columns
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.expression_list import ExpressionList
from edbatch.graph.model.collection import ParameterCollection
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.node_type import NodeType
from edbatch.graph.op import Op
from edbatch.graph.recorder import CALLERS

# What holds no expression of a program, and much else. A function is reached without its globals.
_ENDS = (ModuleType, type, CodeType, BuiltinFunctionType, Columns, Block, Parameter, ParameterCollection)
# What leads to all types of the process.
_OF_CELLS = (Entry, LastCall, Variant, NodeType, Op)
_PLAIN = frozenset([int, float, str, bytes, bool, complex, type(None), range])


class Reached(NamedTuple):
    """What can be reached.

    Attributes:
        expressions, lists: of a graph, and lists of them.
        looks: how many objects were looked at; of numbers and texts, an eighth.
    """

    expressions: list[Expression]
    lists: list[ExpressionList]
    looks: float


def reachable(roots: Iterable[Any], graph: Columns) -> Reached | None:
    """All expressions of a graph, and lists of them, that can be reached from some objects; None: arrays of them, too.

    Args:
        roots: programs that wait, what they wait for, what others have returned.
        graph: expressions of others are not looked at.
    """
    expressions: list[Expression] = []
    lists: list[ExpressionList] = []
    waiting = list(roots)
    seen = {id(waiting), id(expressions), id(lists)}
    looks = 0
    while waiting:
        found = waiting.pop()
        looks += 1
        if found.__class__ in _PLAIN or id(found) in seen:
            continue
        seen.add(id(found))
        if found.__class__ is Expression:
            if found.graph is graph:
                expressions.append(found)
            continue
        if found.__class__ is ExpressionArray and found.graph.base is graph:
            return None
        if isinstance(found, ExpressionList) and found.graph is graph:
            lists.append(found)
        waiting.extend(_held(found))
    return Reached(expressions, lists, len(seen) + looks / 8)


def _held(found: Any) -> Iterator[Any]:
    """What an object refers to."""
    if isinstance(found, np.ndarray):
        if found.dtype.hasobject:
            yield from found.flat
    elif isinstance(found, FunctionType):
        yield from (found.__closure__, found.__defaults__, found.__kwdefaults__, found.__dict__)
    elif isinstance(found, CALLERS):
        yield found.__wrapped__
    elif isinstance(found, Cell):
        yield found.function
    elif not isinstance(found, _ENDS + _OF_CELLS):
        yield from gc.get_referents(found)
