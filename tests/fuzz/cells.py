"""Cells from seeds."""

import re

from tests.fuzz import oracle
from tests.fuzz.calls import CALLS
from tests.fuzz.program import CELL, Statement

# Values that are finite, with derivatives that are not, however numbers before them are rounded.
POLES = ("eb.sqrt({} * 0.0)", "eb.norm({} * 0.0)", "eb.power({} * 0.0, 0.5)", "eb.sqrt(eb.relu(-eb.exp({})))")
WRAPPED = {"p": "parameter", "s": "scalar"}


class Cell:
    """A cell that is made: what it takes, what it computes, how it is called.

    Args:
        random: what chooses.
        maker: of the program.
        name: its own.
    """

    letter, wraps = "f", True  # what is given becomes expressions
    is_of_many = False

    def __init__(self, random, maker, name):
        self.random, self.name, self.results = random, name, 0
        self.choose(maker)
        body = maker.scope("", "u", random)
        names = body.names = maker.names | {"count": 0}
        with oracle.Graph() as graph:
            for letter, shapes in (("a", self.arguments), ("b", self.rows)):
                for at, shape in enumerate(shapes):
                    names[f"{letter}{at}"] = oracle.input(eval(maker.scope("", "v", random).array(shape), names))
                    body.values.append(f"{letter}{at}")
            body.integers = [f"k{at}" for at in range(self.integers)]
            body.numbers = [f"s{at}" for at in range(self.keywords)]
            names |= dict.fromkeys(body.integers, 0) | dict.fromkeys(body.numbers, 0.5)
            body.inlines, body.is_of_many = True, self.is_of_many
            self.fill(body, maker)
            found = self.framed(body, maker) if body.statements else None
            graph.run()
        self.statement = None
        if found is not None:
            head, returns, frame = found
            method = random.random() < 0.3
            self.statement = Statement(f"{name}({head})", "", tuple(body.statements), ", ".join(returns), frame, method)
            exec(self.statement.source(), maker.names)

    def choose(self, maker):
        """What it takes."""
        random = self.random
        shapes = [(maker.dim,), (maker.dim,), (maker.dim,), (), (2, maker.dim)]
        self.arguments = [random.choice(shapes) for _ in range(random.choice([1, 1, 2, 2, 3]))]
        self.rows, self.integers, self.keywords = [], random.choice([0, 0, 0, 1, 1, 2]), random.choice([0, 0, 0, 1])

    def framed(self, body, maker):
        """Its arguments, what it returns, and what stands around its body."""
        self.pole = self.add_pole(body) if self.random.random() < 0.2 else None
        outs = self.returned(body) + [self.pole] * (self.pole is not None)
        self.results = len(outs)
        head = [*(f"a{at}" for at in range(len(self.arguments))), *(f"{k}: int" for k in body.integers)]
        return ", ".join([*head, *(["*", *body.numbers] if body.numbers else [])]), outs, CELL

    def fill(self, body, maker):
        ops = list(CALLS)
        for _ in body.integers:
            body.add(self.random.choice(["lookup", "lookup", "pick", "cross_entropy", "hinge", "dropout"]))
        for _ in range(self.random.choice([2, 4, 8, 14])):
            if maker.cells and self.random.random() < 0.1:
                inner = self.random.choice(maker.cells)
                text = inner.call(body)
                if text:
                    inner.state(body, text)
            elif self.random.random() < 0.25:
                body.add(self.random.choice(["operator", "operator", "matmul", "affine", "tanh", "sigmoid", "index"]))
            else:
                body.add(self.random.choice(ops))

    def add_pole(self, body):
        """A result with an infinite derivative, which nothing else in the cell reads."""
        new = body.state(self.random.choice(POLES).replace("{}", self.random.choice(body.values)))
        return new and body.values.pop()

    def state(self, scope, text):
        """Bind new names to the results of a call, and return them; mostly nobody reads one with a pole."""
        new = scope.state(text, self.results)
        if new and self.pole is not None and scope.random.random() < 0.95:
            scope.values.remove(new.pop())
        return new

    def returned(self, body):
        """Mostly what was computed last; sometimes what other results contain, or an argument."""
        outs = [body.values[-1]]
        outs += [self.random.choice(body.values[-6:]) for _ in range(self.random.choice([0, 0, 1, 2]))]
        self.random.shuffle(outs)
        return outs

    def operands(self, scope, first=None):
        """Arguments that are expressions, or become some.

        Raises:
            LookupError: there are none of some shape.
        """
        given = [scope.operand(shape=shape) for shape in self.arguments]
        if scope.inlines or not self.wraps:  # there the body would see the number itself, as without the decorator
            given = [f"eb.{WRAPPED[x[0]]}({x})" if x[0] in WRAPPED else x for x in given]
            given = [x if re.fullmatch(r"[a-z]\d+|eb\..*", x) else f"eb.input({x})" for x in given]
        given = [f"{x}.0" if re.fullmatch(r"-?\d+", x) else x for x in given]  # an integer would be an index
        return given if first is None else [first, *given[1:]]

    def call(self, scope, first=None):
        """The text of a call, if there are arguments for it."""
        try:
            given = self.operands(scope, first)
        except LookupError:
            return None
        random = scope.random
        given += [scope.integer(limit=scope.dim) for _ in range(self.integers)]
        given += [f"s{at}={random.choice([0.5, 2.0, 2, 1, 1.0, -1])}" for at in range(self.keywords)]
        return f"{self.name}({', '.join(given)})"
