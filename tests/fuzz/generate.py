"""Programs from seeds."""

from __future__ import annotations

from dataclasses import fields
from random import Random

import numpy as np

from edbatch.graph.options import Options
from edbatch.policy.heuristics import RULES
from tests.fuzz import oracle
from tests.fuzz.calls import CALLS
from tests.fuzz.cells import Cell
from tests.fuzz.program import Program, Statement
from tests.fuzz.scope import Scope

POLICIES = [*RULES, "beam:2", None]
SWITCHES = [field.name for field in fields(Options) if isinstance(field.default, bool)]


def generate(seed, cells=40):
    """The program of a seed; its cells are chosen among this many."""
    with np.errstate(all="ignore"):  # what is not finite is not taken
        return Maker(seed, cells).program()


class Maker:
    """A program while it grows: models, cells, and graphs that are open."""

    def __init__(self, seed, cells):
        self.random = Random(seed)
        self.seed = seed
        self.dtype = "float64" if self.random.random() < 0.12 else "float32"
        self.dim = self.random.choice([4, 4, 4, 4, 3, 2, 1])
        self.pool = cells
        self.names = {"eb": oracle, "np": np, "show": lambda *_: None}
        self.statements, self.graphs, self.counts = [], [], {}

    def program(self):
        for _ in range(self.random.choice([1, 1, 2])):
            self.add_model()
        self.cells = []
        for _ in range(self.random.choice([0, 1, 2, 3])):
            self.add_cell()
        for _ in range(self.random.choice([1, 1, 2, 3])):
            self.add_graph()
        for name in [list(CALLS)[(self.seed + at) % len(CALLS)] for at in (0, len(CALLS) // 2)]:
            self.made(self.graphs[0], self.graphs[0].add(name))  # by chance some would hardly ever be called
        for _ in range(self.random.choice([5, 10, 20, 40])):
            self.event()
        for graph in self.graphs:
            self.read(graph, everything=True)
            if not graph.stale:
                self.backward(graph)
        return Program(self.seed, self.dtype, tuple(self.statements))

    def say(self, text, before=""):
        statement = Statement(text, before)
        if not text.startswith("show("):
            exec(statement.source(), self.names)
        self.statements.append(statement)

    def fresh(self, letter):
        number = self.counts[letter] = self.counts.get(letter, -1) + 1
        return f"{letter}{number}"

    # What a program consists of.

    def add_model(self):
        """A collection with parameters of the usual shapes, and two tables."""
        model, d = self.fresh("m"), self.dim
        self.say(f"{model} = eb.ParameterCollection(seed=0, dtype={self.dtype!r})")
        scope = self.scope("", "v")
        for shape in [(d, d), (d, d), (d,), (2 * d, d), (d,), ()]:
            p = self.fresh("p")
            self.say(f"{p} = {model}.add_parameters({shape}, name={p!r}, init={scope.array(shape)})")
        for rows in (7, 5):
            e = self.fresh("e")
            self.say(f"{e} = {model}.add_lookup_parameters(({rows}, {d}), name={e!r}, init={scope.array((rows, d))})")
        if self.random.random() < 0.7:
            self.say(f"{self.fresh('t')} = eb.SGD({model}, lr=0.125)")

    def scope(self, before, letter, random=None):
        return Scope(random or self.random, self.names, self.dim, before, letter, self.named("p"), self.named("e"))

    def named(self, letter):
        return [name for name in self.names if name[0] == letter and name[1:].isdigit()]

    def add_cell(self):
        """One of the pool: equal numbers give equal bodies."""
        cell = Cell(Random(self.random.randrange(self.pool)), self, self.fresh("f"))
        if cell.statement is not None:
            self.statements.append(cell.statement)
            self.cells.append(cell)

    def add_graph(self):
        options = {name: not default for name in SWITCHES for default in [getattr(Options(), name)]}
        chosen = [name for name in options if self.random.random() < 0.12]
        switched = ", ".join(f"{name}={options[name]}" for name in chosen)
        before = f"with eb.options({switched}): " if switched else ""
        name = self.fresh("g")
        policy = self.random.choice(POLICIES)
        self.say(f"{name} = eb.Graph(policy={policy!r}, dtype={self.dtype!r})", before)
        inside = f"with eb.options({switched}), {name}: " if switched else f"with {name}: "
        graph = self.scope(inside, "v")
        graph.name, graph.options, graph.stale, graph.went_back, graph.silent = name, before, False, False, set()
        graph.statements, graph.inlines = self.statements, "cells" in chosen
        self.graphs.append(graph)
        for shape in [(self.dim,), (self.dim,), (), (2, self.dim)]:
            graph.state(f"eb.input({graph.array(shape)})")

    # What happens.

    def event(self):
        graph = self.random.choice(self.graphs)
        what = self.random.random()
        if what < 0.25 and self.cells:
            self.call(graph)
        elif what < 0.29 and self.cells:
            self.recurrence(graph)
        elif what < 0.33:
            self.again(graph)
        elif what < 0.82:
            self.op(graph)
        elif what < 0.88:
            self.read(graph)
        elif what < 0.94 and not graph.stale:
            self.backward(graph)
        elif what < 0.97:
            self.change()
        elif len(self.graphs) > 1:
            self.graphs.remove(graph)
            self.say(f"{graph.name}.run()", graph.options)
            self.say(f"del {', '.join([graph.name, *graph.values])}")

    def op(self, graph):
        often = ["operator", "matmul", "index", "shaped", "stop_gradient"]
        self.made(graph, graph.add(self.random.choice(often if self.random.random() < 0.2 else list(CALLS))))

    def made(self, graph, new):
        """Remember which values have no gradient of their own: they show a constant, a parameter or what stops."""
        constants = graph.names[graph.name].constants.values()
        for name in new or ():
            x = graph.names[name]
            known = [*(graph.names[silent] for silent in graph.silent), *constants]
            if any(x.root is other.root for other in known) or "stop_gradient" in self.statements[-1].text:
                graph.silent.add(name)
        return new

    def call(self, graph):
        cell = self.random.choice(self.cells)
        text = cell.call(graph)
        self.made(graph, text and cell.state(graph, text))

    def again(self, graph):
        """What was computed before, of the same values: by `share`, once."""
        for text, many in self.random.sample(graph.said, min(len(graph.said), 3)):
            self.made(graph, graph.state(text, many))

    def recurrence(self, graph):
        """A cell's first result is its next first argument."""
        cell = self.random.choice(self.cells)
        first = None
        for _ in range(self.random.choice([2, 3, 8])):
            text = cell.call(graph, first)
            new = self.made(graph, text and cell.state(graph, text))
            if not new or not cell.arguments or graph.shape_of(new[0]) != cell.arguments[0]:
                return
            first = new[0]

    def read(self, graph, everything=False):
        some = graph.values if everything else self.random.sample(graph.values, min(3, len(graph.values)))
        for name in some:
            self.say(f"show({name!r}, {name}.value())", graph.options)

    def backward(self, graph):
        """From a value with a gradient of its own, or from a sum of several."""
        some = self.random.sample(graph.values, min(self.random.choice([1, 6, 12]), len(graph.values)))
        if len(some) == 1 or not (new := graph.state(f"eb.sum([{', '.join(map(self.scalar(graph), some))}])")):
            seed = graph.array(graph.shape_of(some[0]))
            self.say(f"{some[0]}.backward({seed})", graph.options)
        else:
            self.say(f"{new[0]}.backward()", graph.options)
        asked = [name for name in graph.values if name not in graph.silent]
        for name in self.random.sample(asked, min(8, len(asked))):
            self.say(f'show("{name}\'", {name}.gradient())', graph.options)
        for name in self.named("p") + self.named("e"):
            self.say(f'show("{name}\'", {name}.grad())')
        if self.random.random() < 0.3:
            self.say("m0.zero_grad()")

    def scalar(self, graph):
        def text(name):
            shape = graph.shape_of(name)
            choices = [f"eb.sum({name} * {graph.array(shape)})", f"eb.sum(eb.square({name}))"]
            return self.random.choice(choices + ([name] if not shape else []))

        return text

    def change(self):
        """Another value for parameters; what was recorded runs before, and cannot go back after."""
        trainers, fresh = self.named("t"), [graph for graph in self.graphs if not graph.stale]
        if trainers and fresh and self.random.random() < 0.5:
            self.backward(self.random.choice(fresh))
        for graph in self.graphs:
            self.say(f"{graph.name}.run()", graph.options)
            graph.stale = True
        gradients = [p.gradient for p in self.names[trainers[0]].model if p.has_grad] if trainers else []
        if gradients and all(np.isfinite(gradient).all() for gradient in gradients):  # others are refused
            self.say(f"{trainers[0]}.update()")
        else:
            p = self.random.choice(self.named("p"))
            self.say(f"{p}.set_value({self.graphs[0].array(np.shape(self.names[p].data))})")
