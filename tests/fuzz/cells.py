"""Cells from seeds."""

import re

from tests.fuzz import oracle
from tests.fuzz.calls import CALLS
from tests.fuzz.program import Statement

# Values that are finite, with derivatives that are not, however numbers before them are rounded.
POLES = ("eb.sqrt({} * 0.0)", "eb.norm({} * 0.0)", "eb.power({} * 0.0, 0.5)", "eb.sqrt(eb.relu(-eb.exp({})))")
WRAPPED = {"p": "parameter", "s": "scalar"}


class Cell:
    """A cell that is made: what it takes, what it computes, how it is called."""

    def __init__(self, random, maker, name):
        self.random, self.name = random, name
        shapes = [(maker.dim,), (maker.dim,), (maker.dim,), (), (2, maker.dim)]
        self.arguments = [random.choice(shapes) for _ in range(random.choice([1, 1, 2, 2, 3]))]
        self.integers = random.choice([0, 0, 0, 1, 1, 2])
        self.keywords = random.choice([0, 0, 0, 1])
        body = maker.scope("", "u", random)
        names = body.names = maker.names | {"count": 0}
        with oracle.Graph() as graph:
            arguments = [f"a{at}" for at in range(len(self.arguments))]
            for argument, shape in zip(arguments, self.arguments, strict=True):
                names[argument] = oracle.input(eval(body.array(shape), names))
            body.integers = [f"k{at}" for at in range(self.integers)]
            body.numbers = [f"s{at}" for at in range(self.keywords)]
            names |= dict.fromkeys(body.integers, 0) | dict.fromkeys(body.numbers, 0.5)
            body.values, body.inlines = list(arguments), True
            self.fill(body, maker)
            self.pole = self.add_pole(body) if random.random() < 0.2 else None
            graph.run()
        self.statement = None
        if not body.statements:
            return
        outs = self.returned(body) + [self.pole] * (self.pole is not None)
        self.results = len(outs)
        head = [*arguments, *(f"{k}: int" for k in body.integers), *(["*", *body.numbers] if body.numbers else [])]
        statement = Statement(
            f"{name}({', '.join(head)})", "", tuple(body.statements), ", ".join(outs), random.random() < 0.3
        )
        exec(statement.source(), maker.names)
        self.statement = statement

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

    def call(self, scope, first=None):
        """The text of a call, if there are arguments for it."""
        try:
            given = [scope.operand(shape=shape) for shape in self.arguments]
        except LookupError:
            return None
        if scope.inlines:  # there the body would see the number itself, as without the decorator
            given = [f"eb.{WRAPPED[x[0]]}({x})" if x[0] in WRAPPED else x for x in given]
            given = [x if re.fullmatch(r"[a-z]\d+|eb\..*", x) else f"eb.input({x})" for x in given]
        given = [f"{x}.0" if re.fullmatch(r"-?\d+", x) else x for x in given]  # an integer would be an index
        if first is not None:
            given[0] = first
        random = scope.random
        given += [scope.integer(limit=scope.dim) for _ in range(self.integers)]
        given += [f"s{at}={random.choice([0.5, 2.0, 2, 1, 1.0, -1])}" for at in range(self.keywords)]
        return f"{self.name}({', '.join(given)})"
