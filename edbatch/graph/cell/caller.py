"""The fast way to record a cell: a function made for its number of arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from edbatch.base.numbers import is_real
from edbatch.graph.cell.keywords import text_of
from edbatch.graph.cell.structure import flatten
from edbatch.graph.columns import Columns
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.integers import Integers, integers
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.opened import graphs
from edbatch.graph.record import to_node, to_operand
from edbatch.graph.recorder import cell_caller
from edbatch.graph.step import MISSING


def returned(graph: Columns, found: Any) -> Any:
    """Turn parameters, numbers and arrays that the function returned into expressions, as a cell does."""
    if isinstance(found, Expression) or (found.__class__ is tuple and _are_expressions(found)):
        return found
    leaves, structure = flatten(found)
    if all(isinstance(x, Expression) for x in leaves):
        return found
    return structure.build([_as_expression(graph, x) for x in leaves])


def _are_expressions(found: tuple[Any, ...]) -> bool:
    for x in found:  # noqa: SIM110 (a generator takes three times as long)
        if not isinstance(x, Expression):
            return False
    return True


def _as_expression(graph: Columns, x: Any) -> Any:
    if not (isinstance(x, Parameter | np.ndarray) or is_real(x)):
        return x
    return to_node(graph, to_operand("result", graph, x))


if TYPE_CHECKING:
    from edbatch.graph.cell.cell import Cell

# A call compares its arguments' specs with those of the owner's last call, one by one: a loop over the arguments, or
# looking their specs up in a dictionary, would take as long as everything else together. What differs goes to the
# careful way, which makes it the last call.
MOST = 16  # arguments of a call that is recorded in C

# Its own names begin with an underscore, so that they do not meet the arguments'.
SOURCE = """
def call({arguments}):
{integers}    _inline = False
    try:
        _graph = {graph}
        _inline = _graph.inlines
        if not _inline:
{own}            _last = {kept}[{at} if _graph.careful else {usual}]
            {specs}, _type_id, _form, _out, {watched}_serial = _last.call
            if {checks} and (_serial is _graph.serial or _last.renew({owner}, {kept}, {at}, _graph)):
                _node = _graph.n
                _graph.n = _node + 1
                _graph.types.append(_type_id)
{ids}                if _form == 1:
                    return _graph.expression_class(_graph, _node, _out)
                if _form == 2:
                    _step, _spec, _step2, _spec2 = _out
                    _expression = _graph.expression_class
                    return _expression(_graph, _node + _step, _spec), _expression(_graph, _node + _step2, _spec2)
                return _out.recorded(_graph, _node)
    except (AttributeError, KeyError, TypeError, ValueError):  # no graph, no last call, a copied owner's, or another's
        pass
    if _inline{no_arrays}:
        return _returned(_graph, _function({arguments}))
    return _cell.call({given}, {static})
"""

# Where an owner keeps its last calls: not read as an attribute, which another object may answer for.
OWN = """            _own = {owner}.__dict__
"""

# One for all entries would not do for arrays of expressions. What else knows the largest of several are `Integers`, and
# what stands for one of these in a vertex function; anything else has no such attribute and takes the careful way.
INTEGER = """({name}.__class__ is int and 0 <= {name} < {size}
            or {name}.__class__ is not int and {name}.largest < {size} and {name}.count == _graph.count)"""
OTHER = """    if {name}.__class__ is not int:
        {name} = _integers({name})
"""

# Arguments with defaults, as many as there are, or with names like those here, have a function for each number of them.
COUNTED = """
def call(*args, **static):
    if static and not {has_static}:
        return _cell.call(args, static)
    return (_counted.get(len(args)) or _for_count(len(args)))(*args, **static)
"""

CAREFUL = """
def call(*args, **static):
    return _cell.call(args, static)
"""


def fast_caller(cell: Cell) -> Callable[..., Any]:
    """The function that a cell's name becomes; a plain function, so that methods bind as usual.

    It takes the careful way where nothing is given by place, or an object by keyword.
    """
    if cell.is_plain:
        return _for_names(cell, [p.name for p in cell.positional])
    return _made(COUNTED.format(has_static=cell.has_static), cell, _scope(cell))


def _scope(cell: Cell) -> dict[str, Any]:
    """What the code of any of its functions reads: one may be given that of another."""
    return {
        "__name__": __name__,  # of which nothing is state
        "_cell": cell,
        "_counted": cell.counted,
        "_for_count": partial(_for_count, cell),
        "_function": cell.function,
        "_returned": returned,
        "_arrays": (ExpressionArray, Integers),  # which give each entry its own
        "_Integers": Integers,
        "_integers": integers,
        "_text": text_of,
        "_top": graphs.top.get,
        "_missing": MISSING,
        "_kept": cell.kept_apart,
        "_own": vars(cell),  # of functions, which have no other owner
        "_id": id,
    }


def _for_count(cell: Cell, count: int) -> Callable[..., Any]:
    """The function for calls with so many arguments by place, the owner among them."""
    names = [] if count < cell.is_method else cell.names(count - cell.is_method)
    return cell.counted.setdefault(count, _for_names(cell, names))


def _for_names(cell: Cell, names: list[str]) -> Callable[..., Any]:
    """The function for arguments of these names."""
    scope = _scope(cell)
    made = _made(_source(cell, names, scope) if names else CAREFUL, cell, scope)
    if not names or len(names) > MOST or cell.is_of_classes:
        return made
    numbers = sum(1 << at for at, name in enumerate(names) if cell.is_index.get(name))
    kept = None if cell.is_method else vars(cell)
    compared = kept, cell.place(len(names)), cell.watched, MISSING, len(names), int(cell.is_method), numbers
    return cell_caller(made, *compared)


def _made(source: str, cell: Cell, scope: dict[str, Any]) -> Callable[..., Any]:
    exec(compile(source, f"<fast call of cell {cell.name}>", "exec"), scope)
    made: Callable[..., Any] = scope["call"]
    return made


def _source(cell: Cell, names: list[str], scope: dict[str, Any]) -> str:
    numbers = [name for name in names if cell.is_index.get(name)]
    expressions = [name for name in names if name not in numbers]
    checks = [
        INTEGER.format(name=name, size=f"_s{number}") if name in numbers else f"{name}.spec is _s{number}"
        for number, name in enumerate(names)
    ]
    checks += [f"{name}.graph is _graph" for name in expressions[1:]]
    columns = [("operands", [f"{name}.id" for name in expressions]), ("integers", numbers)]
    owner = ["_owner"] * cell.is_method if not cell.is_plain else [p.name for p in cell.parameters[: cell.is_method]]
    watched = [f'_own.get("{name}", _missing)' for name in cell.watched]
    if not expressions:  # whose specs would tell; constants in the body are of the graph's dtype
        watched.append("_graph.dtype")
    checks += [f"{place} is _w{number}" for number, place in enumerate(watched)]
    place = f'"{cell.place(len(names))}"'
    at = f"{place} + _graph.variant" + " + _text(_static)" * cell.has_static
    return SOURCE.format(
        arguments=", ".join(owner + names + ["**_static"] * cell.has_static),
        integers="".join(OTHER.format(name=name) for name in numbers),
        static="_static" if cell.has_static else "{}",
        specs=", ".join(f"_s{number}" for number in range(len(names))),
        owner=owner[0] if owner else "_cell",
        own=OWN.format(owner=owner[0]) if owner else "",
        kept=f"_kept[_id({owner[0]})][1]" if cell.is_of_classes else "_own",
        at=at,
        usual=at if cell.has_static else place,
        graph=f"{expressions[0]}.graph" if expressions else "_top().value",
        checks=" and ".join(checks),
        ids="".join(_appended(*column) for column in columns),
        watched="".join(f"_w{number}, " for number in range(len(watched))),
        given=f"({', '.join(owner + names)},)",
        no_arrays="".join(f" and {name}.__class__ not in _arrays" for name in names),
    )


def _appended(column: str, values: list[str]) -> str:
    """The line that appends values to a column of the graph."""
    if len(values) < 2:
        return "".join(f"                _graph.{column}.append({x})\n" for x in values)
    return f"                _column = _graph.{column}; " + "; ".join(f"_column.append({x})" for x in values) + "\n"
