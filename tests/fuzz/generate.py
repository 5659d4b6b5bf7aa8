"""Programs from seeds."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from inspect import signature
from random import Random

import numpy as np

import edbatch as eb
from tests.fuzz import oracle
from tests.fuzz.calls import CALLS
from tests.fuzz.cells import Cell
from tests.fuzz.loops import Coroutine, Forest, Loop
from tests.fuzz.program import NAME, Program, Statement
from tests.fuzz.scope import UNFIT, Scope

POLICIES = [
    "depth", "agenda", "critical-path", "sufficient", "improved-sort", "none", None,
]  # fmt: skip
OTHERS = {"threads": [1, 2, 3], "precision": ["tf32", "bf16"], "compile": ["plain"]}
#: Per option what it may be but its default.
SWITCHES = {name: OTHERS.get(name, [not option.default]) for name, option in signature(eb.options).parameters.items()}
#: What happens, and how often.
EVENTS = {
    "op": 44, "call": 20, "recurrence": 4, "vertices": 6, "replayed": 6, "programs": 5, "recorded_anew": 4,
    "read": 6, "backward": 6, "gradients": 2, "asked": 2, "change": 3, "leave": 3,
}  # fmt: skip
# Where integers stand that are no part of a node's type: words, labels, masks, arguments of functions.
INTEGER = re.compile(
    r"((?:eb\.(?:lookup|pick|cross_entropy)\(\w+|eb\.dropout\(\w+, [\d.]+|\bf\d+\([^()]*), "
    r"|\be\d+\[|\(\(|, \(|\[\()\d\b(?!\.)"
)
ARRAY, FLOAT = re.compile(r"np\.array\([^()]*\)"), re.compile(r"-?\d+\.\d+")


@lru_cache(2000)  # several tests look at the same programs, and making one takes as long as running it
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
        self.cells, self.loops, self.coroutines, self.forests = [], [], [], []
        for _ in range(self.random.choice([0, 1, 2, 3])):
            self.add_function(Cell, self.cells)
        if self.random.random() < 0.4:
            self.add_function(Loop, self.loops)
        if self.random.random() < 0.4:
            self.add_function(Coroutine, self.coroutines)
        if self.random.random() < 0.4:
            forest = Forest(self.chosen(), self)
            self.forests += [forest] * (forest.kinds[:1] != [] and forest.kinds[0].children == 0)
        for _ in range(self.random.choice([1, 1, 2, 3])):
            self.add_graph()
        for name in [list(CALLS)[(self.seed + at) % len(CALLS)] for at in (0, len(CALLS) // 2)]:
            self.made(self.graphs[0], self.graphs[0].add(name))  # by chance some would hardly ever be called
        for _ in range(self.random.choice([5, 10, 20, 40])):
            self.event()
        for graph in self.graphs:
            self.read(graph, everything=True)
            if not graph.stale:
                self.asked(graph)
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

    def chosen(self):
        """One of the pool: equal numbers give equal bodies."""
        return Random(self.random.randrange(self.pool))

    def add_function(self, kind, known):
        made = kind(self.chosen(), self, self.fresh(kind.letter))
        if made.statement is not None:
            self.statements.append(made.statement)
            known.append(made)

    def add_graph(self, like=None):
        """With inputs; or opened as another was, with nothing in it."""
        if like is None:
            chosen = [name for name in SWITCHES if self.random.random() < 0.12]
            switched = ", ".join(f"{name}={self.random.choice(SWITCHES[name])!r}" for name in chosen)
            more = ", check_nan=True" if self.random.random() < 0.1 else ""
            made = f"eb.Graph(policy={self.random.choice(POLICIES)!r}, dtype={self.dtype!r}{more})"
        else:
            switched, made = like.switched, like.made
        before = f"with eb.options({switched}): " if switched else ""
        name = self.fresh("g")
        self.say(f"{name} = {made}", before)
        inside = f"with eb.options({switched}), {name}: " if switched else f"with {name}: "
        graph = self.scope(inside, "v")
        graph.name, graph.options, graph.stale, graph.went_back, graph.silent = name, before, False, False, set()
        graph.switched, graph.made, graph.held = switched, made, []
        graph.statements, graph.inlines = self.statements, "cells=False" in switched
        self.graphs.append(graph)
        if like is None:
            for shape in [(self.dim,), (self.dim,), (), (2, self.dim)]:
                graph.state(f"eb.input({graph.array(shape)})")
        return graph

    # What happens.

    def event(self):
        (what,) = self.random.choices(list(EVENTS), EVENTS.values())
        getattr(self, what)(self.random.choice(self.graphs))

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

    def leave(self, graph):
        if len(self.graphs) > 1:
            self.graphs.remove(graph)
            self.say(f"{graph.name}.run()", graph.options)
            self.say(f"del {', '.join([graph.name, *graph.held, *graph.values])}")

    def call(self, graph):
        if not self.cells:
            return
        cell = self.random.choice(self.cells)
        text = cell.call(graph)
        self.made(graph, text and cell.state(graph, text))

    def recurrence(self, graph):
        """A cell's first result is its next first argument."""
        if not self.cells:
            return
        cell = self.random.choice(self.cells)
        first = None
        for _ in range(self.random.choice([2, 3, 8])):
            text = cell.call(graph, first)
            new = self.made(graph, text and cell.state(graph, text))
            if not new or not cell.arguments or graph.shape_of(new[0]) != cell.arguments[0]:
                return
            first = new[0]

    def vertices(self, graph):
        """Vertex functions over structures, and some of their results."""
        if not self.forests:
            return
        forest, name = self.random.choice(self.forests), graph.fresh("o")
        try:
            text = forest.call(graph)
        except LookupError:
            return
        if graph.bind(text, [name]):
            graph.held.append(name)
            for found in forest.results(self.random, name):
                new = graph.state(found)
                if new and "pushed" in found:  # of what is no vertex's own, perhaps
                    graph.silent.add(new[0])

    def replayed(self, graph):
        """A function of the same sample, and of others."""
        if not self.loops:
            return
        loop = self.random.choice(self.loops)
        text = loop.call(graph)
        for _ in range(self.random.choice([1, 2, 3])):
            self.made(graph, text and loop.state(graph, text))
            if self.random.random() < 0.5:
                text = self.other(graph, text) if text and self.random.random() < 0.5 else loop.call(graph)

    def programs(self, graph):
        """Programs over values, in a graph or in none."""
        if not self.coroutines:
            return
        program = self.random.choice(self.coroutines)
        if self.random.random() < 0.7:
            text, many = program.run(graph)
            self.made(graph, text and graph.state(f"[x for one in {text} for x in one]", many))
            return
        text, _ = program.run(self.scope("", "v"), is_open=False)
        if text:
            policy = self.random.choice([None, "depth", "sufficient"])
            shown = f"[one[0].value() for one in {text[:-1]}, policy={policy!r}, dtype={self.dtype!r})]"
            try:
                numbers = eval(shown, self.names)
            except UNFIT:
                return
            if np.isfinite(numbers).all():
                self.say(f"show('run', np.array({shown}))", graph.options)

    def recorded_anew(self, graph):
        """What a graph has recorded once more in others: of the same sample, or of one that differs."""
        if len(graph.said) > 60 or len(self.graphs) > 3:
            return
        said = list(graph.said)
        for _ in range(self.random.choice([1, 2])):
            how = self.random.choice(["same", "other", "other", "structure"])
            new, known = self.add_graph(graph), {}
            for text, names in said:
                text = NAME.sub(lambda found, known=known: known.get(found[0], found[0]), text)
                if any(name[0] in "vo" and name not in known.values() for name in NAME.findall(text)):
                    continue
                if how == "structure" and self.random.random() < 0.15:
                    continue
                fresh = [new.fresh(name[0]) for name in names]
                if how == "same" or not (made := new.bind(self.other(new, text), fresh)):
                    made = new.bind(text, fresh)
                if made:
                    known |= zip(names, made, strict=True)
                    new.held += [name for name in made if name[0] == "o"]
                    new.silent |= {known[name] for name in names if name in graph.silent}
            self.read(new, everything=True)
            self.backward(new)

    def other(self, graph, text):
        """The same call with other integers and numbers."""
        text = INTEGER.sub(lambda found: found[1] + str(self.random.randrange(graph.dim)), text)
        return ARRAY.sub(lambda array: FLOAT.sub(lambda _: str(self.random.randrange(-64, 65) / 32), array[0]), text)

    def read(self, graph, everything=False):
        some = graph.values if everything else self.random.sample(graph.values, min(3, len(graph.values)))
        for name in some:
            self.say(f"show({name!r}, {name}.value())", graph.options)

    def backward(self, graph):
        """From a value or several with gradients of their own, or from a sum of several; sometimes once more."""
        if graph.stale or not graph.values:
            return
        some = self.random.sample(graph.values, min(self.random.choice([1, 6, 12]), len(graph.values)))
        if len(some) > 1 and self.random.random() < 0.4:
            text = f"eb.backward({', '.join(self.outputs(graph, some))})"
        elif len(some) == 1 or not (new := graph.state(f"eb.sum([{', '.join(map(self.scalar(graph), some))}])")):
            text = f"{some[0]}.backward({graph.array(graph.shape_of(some[0]))})"
        else:
            text = f"{new[0]}.backward()"
        for _ in range(self.random.choice([1, 1, 1, 2])):
            try:
                self.say(text, graph.options)
            except UNFIT:
                return
        graph.went_back = True
        self.gradients(graph)
        for name in self.named("p") + self.named("e"):
            self.say(f'show("{name}\'", {name}.grad())')
        if self.random.random() < 0.3:
            self.say("m0.zero_grad()")

    def gradients(self, graph):
        """Of what was there when the graph went back, or has been recorded since."""
        if graph.went_back and not graph.stale:
            asked = [name for name in graph.values if name not in graph.silent]
            for name in self.random.sample(asked, min(8, len(asked))):
                self.say(f'show("{name}\'", {name}.gradient())', graph.options)

    def asked(self, graph):
        """Gradients that are returned."""
        if not graph.stale and graph.values:
            outputs, gradients = self.outputs(graph, self.random.sample(graph.values, min(3, len(graph.values))))
            known = [name for name in graph.values if name not in graph.silent] + self.named("p") + self.named("e")
            of = ", ".join(self.random.sample(known, min(6, len(known))))
            with suppress(UNFIT):
                self.say(f'[show("x\'", x) for x in eb.gradients({outputs}, [{of}], {gradients})]', graph.options)

    def outputs(self, graph, some):
        """Values, some of them twice or in an array, and a gradient for each, or none."""
        outputs, gradients = [], []
        for name in some + some[: self.random.choice([0, 0, 1])]:
            shape = graph.shape_of(name)
            if self.random.random() < 0.3:
                alike = [other for other in graph.values if graph.shape_of(other) == shape]
                array, shape = graph.fresh("o"), (3, *shape)
                self.say(f"{array} = eb.array([{name}, {', '.join(self.random.choices(alike, k=2))}])", graph.before)
                graph.held.append(array)
                name = array
            outputs.append(name)
            gradients.append("None" if self.random.random() < 0.1 else graph.array(shape))
        return f"[{', '.join(outputs)}]", f"[{', '.join(gradients)}]"

    def scalar(self, graph):
        def text(name):
            shape = graph.shape_of(name)
            choices = [f"eb.sum({name} * {graph.array(shape)})", f"eb.sum(eb.square({name}))"]
            return self.random.choice(choices + ([name] if not shape else []))

        return text

    def change(self, _):
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
