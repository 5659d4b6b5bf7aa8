"""Functions of samples, from seeds: replayed ones, programs over values, and vertex functions."""

from tests.fuzz.cells import Cell

REPLAYED = """\
@eb.replay
def {head}:
    for {row} in d0:
        {begin}
        {body}
        a0 = {carry}
    return {returns}"""
DECIDING = """\
async def {head}:
    for {row} in d0:
        {begin}
        {body}
        a0 = {carry}
        if await eb.sum(a0) > {limit}:
            {then}
    return {returns}"""
SEVERAL = """\
async def {head}:
    for {row} in d0:
        {begin}
        {body}
        a0 = {carry}
        y, z = await eb.values([eb.sum(a0), {scalar}])
        if y > {limit} and z > -{limit}:
            {then}
    return {returns}"""
YIELDING = """\
def {head}:
    for {row} in d0:
        {begin}
        {body}
        a0 = {carry}
        y, = yield [eb.sum(a0)]
        if y > {limit} and (yield {scalar}) > -{limit}:
            {then}
    return {returns}"""
BRANCHING = """\
async def {head}:
    {row}, *d0 = d0
    if True:
        {begin}
        {body}
        a0 = {carry}
    if d0 and await eb.sum(a0) > {limit}:
        (x, *_), (y, *_) = await eb.all({name}(d0[:1], {arguments}), {name}(d0[-1:], {arguments}))
        a0 = x - y
    return {returns}"""


class Loop(Cell):
    """A function over a sample: rows of integers and numbers, each of which changes its first argument."""

    frames = (REPLAYED,)
    letter, wraps = "r", False

    def choose(self, maker):
        random, d = self.random, maker.dim
        self.arguments = [random.choice([(d,), (d,), ()]) for _ in range(random.choice([1, 1, 2]))]
        self.rows, self.integers, self.keywords = [random.choice([(d,), (2, d), ()])], random.choice([0, 1, 2]), 0

    def framed(self, body, maker):
        random, carry = self.random, like(body, self.arguments[0])
        names = ", ".join(f"a{at}" for at in range(len(self.arguments)))
        outs = ["a0", *self.returned(body)]
        self.results = len(outs)
        frame = random.choice(self.frames)
        values = {
            "row": f"({', '.join([*body.integers, 'b0'])},)",
            "begin": "b0 = eb.input(b0)",
            "carry": carry,
            "limit": random.choice(["0.0", "0.25", "1.0"]),
            "scalar": f"eb.sum({random.choice(body.values)})",
            "then": random.choice(["break", "a0 = eb.tanh(a0 * 0.5 - 1.0)", f"a0 = eb.minimum(a0, {carry} * -0.5)"]),
            "name": self.name,
            "arguments": names,
        }
        for name, text in values.items():
            frame = frame.replace(f"{{{name}}}", text)
        return f"d0, {names}", outs, frame

    def sample(self, scope):
        """Rows, as text."""

        def row():
            shape = self.rows[0]
            floats = scope.array(shape) if shape else str(scope.random.choice([0.5, -1.0, 0.25]))
            return ", ".join([*(scope.integer(limit=scope.dim) for _ in range(self.integers)), floats])

        rows = [f"({row()},)" for _ in range(scope.random.choice([1, 1, 2, 3, 5]))]
        return scope.random.choice(["({},)", "({},)", "[{}]"]).format(", ".join(rows))

    def call(self, scope, first=None):
        try:
            return f"{self.name}({self.sample(scope)}, {', '.join(self.operands(scope, first))})"
        except LookupError:
            return None

    def state(self, scope, text):
        return scope.state(text, self.results)


class Coroutine(Loop):
    """A program over values."""

    frames = (DECIDING, DECIDING, SEVERAL, YIELDING, BRANCHING)
    letter = "c"

    def run(self, scope, is_open=True):
        """The text of a run of several programs, and how many values they return; where no graph is open, their
        arguments are parameters."""
        random, calls = scope.random, []
        for _ in range(random.choice([1, 2, 3, 6])):
            try:
                given = self.operands(scope) if is_open else [scope.parameter(shape) for shape in self.arguments]
            except LookupError:
                return None, 0
            calls.append(f"{self.name}({self.sample(scope)}, {', '.join(given)})")
        more = random.choice(["", "", ", limit=1", ", limit=2"])
        return f"eb.run([{', '.join(calls)}]{more})", len(calls) * self.results


VERTEX = """\
@eb.vertex
def {{head}}:
    {begin}
    {{body}}
    x.scatter({{returns}})"""


class Kind(Cell):
    """A vertex function of one kind, of several with the same results.

    Args:
        kind: 0: it gathers nothing.
        states: shapes of what all scatter.

    Attributes:
        children: how many there must be; None: any number but none.
    """

    letter, is_of_many = "w", True

    def __init__(self, random, maker, kind, states):
        self.kind, self.states = kind, states
        super().__init__(random, maker, maker.fresh(self.letter))

    def choose(self, maker):
        random, d, states = self.random, maker.dim, self.states
        self.children = 0 if self.kind == 0 else random.choice([1, 2, 2, 3, None])
        self.integers = random.choice([0, 1]) if self.kind else random.choice([0, 1, 1])
        self.pulls_numbers = random.random() < 0.4 or not (self.kind or self.integers)
        self.is_shared = self.kind and random.random() < 0.3  # one for all vertices
        self.rows, self.keywords = [random.choice([(d,), (), (2, d)])] * self.pulls_numbers, 0
        n = len(states) * (self.children or 1) if self.kind else self.integers
        self.arguments = [states[at % len(states)] for at in range(n)] if self.kind else [(d,)] * n

    def framed(self, body, maker):
        outs = [like(body, shape) for shape in self.states]
        pulled = [*body.integers, *["b0"] * self.pulls_numbers]
        begin = [f"{', '.join(pulled)} = x.pull()"] * bool(pulled)
        if self.kind == 0:
            begin += [
                f"a{at} = eb.lookup({self.random.choice(body.tables)}, {k})" for at, k in enumerate(body.integers)
            ]
        elif self.children is None:
            begin += self.any_number()
        else:
            begin += self.each()
        frame = VERTEX.format(begin="\n    ".join(begin))
        self.pushes = self.random.random() < 0.6
        if self.pushes:
            frame += f"\n    x.push(eb.sum({self.random.choice(body.values)}))"
        return "x", outs, frame

    def each(self):
        """So many children, one by one."""
        n = len(self.states)
        if self.random.random() < 0.5:
            one = [", ".join(f"a{child * n + at}" for at in range(n)) for child in range(self.children)]
            return [f"{', '.join(f'({names})' for names in one)}, = x.gather()"]
        return [f"{', '.join(f'a{c * n + at}' for at in range(n))} = x.gather({c})" for c in range(self.children)]

    def any_number(self):
        """As many as there are."""
        call = self.random.choice(["eb.sum", "eb.max", "eb.mean"])
        if len(self.states) == 1:
            return [f"a0 = {call}(x.gather())"]
        return [f"a{at} = {call}([one[{at}] for one in x.gather()])" for at in range(len(self.states))]

    def pulled(self, scope, count):
        """What so many vertices pull, as text."""
        random, parts = scope.random, []
        if self.integers:
            numbers = str([random.randrange(scope.dim) for _ in range(count)])
            parts.append(random.choice([numbers, f"np.array({numbers})"]))
        if self.pulls_numbers:
            shape = self.rows[0]
            ways = [f"np.array([{', '.join(scope.array(shape) for _ in range(count))}])"]
            if self.is_shared:
                ways = [scope.value(shape=shape)]
            elif any(scope.shape_of(name) == shape for name in scope.values):
                ways.append(f"eb.array([{', '.join(scope.value(shape=shape) for _ in range(count))}])")
            parts.append(random.choice(ways))
        return f"({', '.join(parts)})" if parts and count else "None"


class Forest:
    """Vertex functions of several kinds, and structures for them."""

    def __init__(self, random, maker):
        d = maker.dim
        states = random.choice([[(d,)], [(d,)], [(d,), (d,)], [(d,), (2, d)], [(d,), ()]])
        self.kinds = []
        for number in range(random.choice([2, 2, 3])):
            kind = Kind(random, maker, number, states)
            if kind.statement is not None:
                maker.statements.append(kind.statement)
                self.kinds.append(kind)
        self.parts = [f"[{at}]" for at in range(len(states))] if len(states) > 1 else [""]

    def sample(self, random):
        """The children and the kinds of a sample's vertices: a chain, a tree, or any DAG."""
        children, kinds, roots = [], [], []
        for at in range(random.choice([1, 2, 3, 5, 7, 12])):
            kind = random.randrange(len(self.kinds)) if at else 0
            count = self.kinds[kind].children
            count = random.randrange(1, 4) if count is None else count
            if random.random() < 0.7 and len(roots) >= count:
                below = roots[len(roots) - count :]
            else:
                below = [random.randrange(at) for _ in range(count)]
            roots = [x for x in roots if x not in below] + [at]
            children.append(below)
            kinds.append(kind)
        order = list(range(len(children)))
        if random.random() < 0.3:  # numbered in any order
            random.shuffle(order)
        place = {at: number for number, at in enumerate(order)}
        return [[place[x] for x in children[at]] for at in order], [kinds[at] for at in order]

    def call(self, scope):
        """The text of a call."""
        samples, kinds = zip(
            *(self.sample(scope.random) for _ in range(scope.random.choice([1, 2, 2, 4]))), strict=True
        )
        self.found = [kind for sample in kinds for kind in sample]
        inputs = [kind.pulled(scope, self.found.count(at)) for at, kind in enumerate(self.kinds)]
        functions = ", ".join(kind.name for kind in self.kinds)
        text = f"eb.vertex({functions})(eb.InputGraph.of_lists({list(samples)}, {self.found}), {', '.join(inputs)})"
        return f"[{text} for _ in range(3)][-1]" if scope.random.random() < 0.5 else text  # what comes twice is kept

    def results(self, random, name):
        """Texts of what may be read of a call's results."""
        n, part = len(self.found), random.choice(self.parts)
        some = sorted(random.sample(range(n), random.randrange(1, n + 1)))
        texts = [f"{name}.scattered{part}[{random.randrange(n)}]" for _ in range(3)]
        texts += [f"eb.sum({name}.scattered{part})", f"eb.max({name}.scattered{part}[{some}])"]
        texts += [f"eb.tanh({name}.scattered{part})[{random.randrange(n)}]"]
        texts += [f"{name}.of({self.found[0]}).scattered{part}[-1]"]
        if any(self.kinds[kind].pushes for kind in self.found):
            texts += [f"eb.sum({name}.pushed)", f"{name}.pushed[0]"]
        return random.sample(texts, min(len(texts), 4))


def like(body, shape):
    """A value of this shape that is made of the first argument: bounded, and nothing else's view."""
    fit = [x for x in body.values if body.shape_of(x) == shape and x[0] == "u"][-4:]
    x = body.random.choice(fit) if fit else body.array(shape) if shape else "0.5"
    first = next(y for y in body.values if y[0] in "ab")
    other = first if body.shape_of(first) == shape else f"eb.mean({first})"
    return body.state(f"eb.tanh({x} + {other})")[0]
