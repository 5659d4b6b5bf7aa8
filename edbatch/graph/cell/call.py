"""The fast way to record a cell: a function made for its number of arguments."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from edbatch.graph.cell.keywords import text_of
from edbatch.graph.columns import graphs
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.integers import Integers, integers
from edbatch.graph.watch.guard import MISSING

if TYPE_CHECKING:
    from edbatch.graph.cell.cell import Cell

# A call compares its arguments' specs with those of the owner's last call, one by one: a loop over the arguments, or
# looking their specs up in a dictionary, would take as long as everything else together. What differs goes to the
# careful way, which makes it the last call.
# Its own names begin with an underscore, so that they do not meet the arguments'.
SOURCE = """
def call({arguments}):
{integers}    _inline = False
    try:
        _graph = {graph}
        _own = {owner}.__dict__  # and not as an attribute, which another object may answer for
        if _graph.careful:
            _inline = _graph.inlines
            _last = _none if _inline else _own[{at}]
        else:
            _last = _own[{usual}]
        {specs}, _type_id, _form, _out, {watched}_serial = _last.call
        if {checks} and (_serial is _graph.serial or _last.renew(_own, {at}, _graph.serial)):
            _node = _graph.n
            _graph.n = _node + 1
            _graph.types.append(_type_id)
            _graph.args += ({ids},)
            _handle = _graph.handle
            if _form == 1:
                return _handle(_graph, _node, _out)
            if _form == 2:
                _step, _spec, _step2, _spec2 = _out
                return _handle(_graph, _node + _step, _spec), _handle(_graph, _node + _step2, _spec2)
            if _out.draws:
                _graph.args += _graph.draw(_out.draws)
            return _out.structure.build([_handle(_graph, _node + _step, _spec) for _step, _spec in _out.outs])
    except (AttributeError, KeyError, TypeError, ValueError):  # no graph, no last call, a copied owner's, or another's
        pass
    if _inline and not any(_x.__class__ in _arrays for _x in {given}):
        return _function({arguments})
    return _cell.call({given}, {static})
"""

# One for all entries would not do for arrays of expressions.
INTEGER = """({name}.__class__ is int and 0 <= {name} < {size}
            or {name}.__class__ is _Integers and {name}.largest < {size} and {name}.count == _graph.count)"""
OTHER = """    if {name}.__class__ is not int:
        {name} = _integers({name})
"""

CAREFUL = """
def call(*args, **static):
    return _cell.call(args, static)
"""


def fast_caller(cell: Cell) -> Callable[..., Any]:
    """The function that a cell's name becomes; a plain function, so that methods bind as usual.

    Where arguments have defaults or vary in number, or are objects given by keyword, it takes the careful way.
    """
    scope: dict[str, Any] = {
        "__name__": __name__,  # nothing that a trace watches
        "_cell": cell,
        "_function": cell.function,
        "_arrays": (ExpressionArray, Integers),  # which give each entry its own
        "_Integers": Integers,
        "_integers": integers,
        "_text": text_of,
        "_top": graphs.top.get,
        "_missing": MISSING,
    }
    return _made(CAREFUL if not cell.is_plain else _source(cell, scope), cell, scope)


def _made(source: str, cell: Cell, scope: dict[str, Any]) -> Callable[..., Any]:
    exec(compile(source, f"<fast call of cell {cell.name}>", "exec"), scope)
    made: Callable[..., Any] = scope["call"]
    return made


def _source(cell: Cell, scope: dict[str, Any]) -> str:
    names = [p.name for p in cell.positional]
    numbers = [name for name in names if cell.is_index.get(name)]
    expressions = [name for name in names if name not in numbers]
    checks = [
        INTEGER.format(name=name, size=f"_s{number}") if name in numbers else f"{name}.spec is _s{number}"
        for number, name in enumerate(names)
    ]
    checks += [f"{name}.graph is _graph" for name in expressions[1:]]
    ids = [f"{name}.id" for name in expressions] + numbers
    owner = [p.name for p in cell.parameters[: cell.is_method]]
    watched = [
        f'_own.get("{name}", _missing)' if name in cell.defaulted else f'_own["{name}"]' for name in cell.watched
    ]
    if not expressions:  # whose specs would tell; constants in the body are of the graph's dtype
        watched.append("_graph.dtype")
    checks += [f"{place} is _w{number}" for number, place in enumerate(watched)]
    # A last call that no call is like.
    scope["_none"] = SimpleNamespace(call=(*(-1 for _ in names), 0, 0, None, *watched, None))
    at = f'"{cell.attribute}" + _graph.variant' + " + _text(static)" * cell.has_static
    return SOURCE.format(
        arguments=", ".join(owner + names + ["**static"] * cell.has_static),
        integers="".join(OTHER.format(name=name) for name in numbers),
        static="static" if cell.has_static else "{}",
        specs=", ".join(f"_s{number}" for number in range(len(names))),
        owner=owner[0] if owner else "_cell",
        at=at,
        usual=at if cell.has_static else f'"{cell.attribute}"',
        graph=f"{expressions[0]}.graph" if expressions else "_top().value",
        checks=" and ".join(checks),
        ids=", ".join(ids),
        watched="".join(f"_w{number}, " for number in range(len(watched))),
        given=f"({', '.join(owner + names)},)",
    )
