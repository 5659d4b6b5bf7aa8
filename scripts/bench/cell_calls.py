"""Calls of cells recorded from Python, in nanoseconds: by number and kind of arguments, functions and methods.

    python -m scripts.bench.cell_calls [--json] [--rounds 25] [--calls 2000]

The thread's processor time of loops over calls whose arguments are at hand, less that of the same loop with nothing in
it, of the fastest round, since whatever else runs can only add to it. Forms take turns. Nothing is computed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import repeat
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.experiments.measure import interleaved
from scripts.bench.report import Tables, command

ASKED = 250  # nanoseconds a call
DIM = 8

_model = eb.ParameterCollection(seed=0)
_W, _table = _model.add_parameters((DIM, DIM)), _model.add_lookup_parameters((50, DIM))


@eb.cell
def one(x: eb.Expression) -> eb.Expression:
    """Of one expression."""
    return eb.tanh(_W @ x)


@eb.cell
def three(x: eb.Expression, y: eb.Expression, z: eb.Expression) -> eb.Expression:
    """Of three."""
    return eb.tanh(_W @ x + y * z)


@eb.cell
def six(
    u: eb.Expression, v: eb.Expression, w: eb.Expression, x: eb.Expression, y: eb.Expression, z: eb.Expression
) -> eb.Expression:
    """Of six."""
    return eb.tanh(_W @ u + v * w + x * y + z)


@eb.cell
def word(number: int) -> eb.Expression:
    """Of an integer."""
    return eb.tanh(eb.lookup(_table, number))


@eb.cell
def labelled(x: eb.Expression, label: int) -> eb.Expression:
    """Of an expression and an integer."""
    return eb.cross_entropy(_W @ x, label)


@eb.cell
def pair(x: eb.Expression, y: eb.Expression) -> tuple[eb.Expression, eb.Expression]:
    """Two results."""
    return eb.tanh(_W @ x), x + y


@eb.cell
def chosen(x: eb.Expression, *, how: str) -> eb.Expression:
    """With an argument by keyword only."""
    return eb.tanh(_W @ x) if how == "tanh" else eb.sigmoid(_W @ x)


class Layer:
    """Methods; the owner is the model."""

    def __init__(self) -> None:
        self.W, self.table = _W, _table

    @eb.cell
    def one(self, x: eb.Expression) -> eb.Expression:
        """Of one expression."""
        return eb.tanh(self.W @ x)

    @eb.cell
    def three(self, x: eb.Expression, h: eb.Expression, c: eb.Expression) -> tuple[eb.Expression, eb.Expression]:
        """A step: two results."""
        c = eb.tanh(self.W @ x) * h + c
        return eb.tanh(c), c

    @eb.cell
    def compose(
        self, h1: eb.Expression, c1: eb.Expression, h2: eb.Expression, c2: eb.Expression
    ) -> tuple[eb.Expression, eb.Expression]:
        """Of two children: two results."""
        c = eb.tanh(self.W @ (h1 + h2)) * c1 + c2
        return eb.tanh(c), c

    @eb.cell
    def word(self, number: int) -> eb.Expression:
        """Of an integer."""
        return eb.tanh(eb.lookup(self.table, number))


def forms(x: eb.Expression) -> dict[str, Callable[[], Any]]:
    """By what is called, one call; all in functions alike."""
    layer = Layer()
    return {
        "nothing": lambda: x,
        "function, 1 expression": lambda: one(x),
        "function, 3 expressions": lambda: three(x, x, x),
        "function, 6 expressions": lambda: six(x, x, x, x, x, x),
        "function, 1 integer": lambda: word(3),
        "function, 1 expression, 1 integer": lambda: labelled(x, 3),
        "function, 2 expressions, 2 results": lambda: pair(x, x),
        "function, 1 expression by its name": lambda: one(x=x),
        "function, 1 expression, 1 keyword": lambda: chosen(x, how="tanh"),
        "method, 1 expression": lambda: layer.one(x),
        "method, 3 expressions, 2 results": lambda: layer.three(x, x, x),
        "method, 4 expressions, 2 results": lambda: layer.compose(x, x, x, x),
        "method, 1 integer": lambda: layer.word(3),
    }


def nanoseconds(rounds: int, calls: int) -> dict[str, float]:
    """Of a call, by form."""

    def timed(name: str) -> Callable[[], None]:
        def run() -> None:
            form = forms_of[name]
            for _ in repeat(None, calls):
                form()

        return run

    with eb.Graph(policy="sufficient"):
        forms_of = forms(eb.input(np.ones(DIM, np.float32)))
        found = interleaved({name: timed(name) for name in forms_of}, rounds)
    fastest = {name: min(runs.cpu) * 1e9 / calls for name, runs in found.items()}
    nothing = fastest.pop("nothing")
    return {name: ns - nothing for name, ns in fastest.items()}


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    found = nanoseconds(given.rounds, given.calls)
    return {"Recording a call of a cell": [{"": name, "ns": ns, "asked, ns": ASKED} for name, ns in found.items()]}


main = command(
    __doc__, tables, rounds=25, calls={"type": int, "default": 2000, "help": "in a round of each form (default: 2000)"}
)

if __name__ == "__main__":
    main()
