"""What vertex functions and programs over values mean: each vertex, and each program, by itself."""

from contextlib import ExitStack

import numpy as np

from tests.fuzz.rounding import is_exact
from tests.fuzz.tape import Expression, Graph, Rows, is_open

MARGIN = 0.02  # closer to a number than this, a value may be on its other side where it is rounded otherwise


def array(parts):
    """Rows of an array are inputs."""
    return Rows(Expression(x) if isinstance(x, np.ndarray) else x for x in parts)


class InputGraph:
    """Per vertex its children, and its kind."""

    def __init__(self, children, kinds):
        self.children, self.kinds = children, kinds

    @classmethod
    def of_lists(cls, samples, kinds):
        children = []
        for sample in samples:
            begin = len(children)
            children += [[begin + child for child in one] for one in sample]
        return cls(children, kinds)


class Vertex:
    """A vertex: those below it, and what it is given."""

    def __init__(self, below, pulled):
        self.below, self.pulled, self.n_children = below, pulled, len(below)
        self.scattered = self.pushed = None

    def gather(self, child=None):
        return [one.scattered for one in self.below] if child is None else self.below[child].scattered

    def pull(self):
        return self.pulled

    def scatter(self, *results):
        self.scattered = results if len(results) > 1 else results[0]

    def push(self, result):
        self.pushed = result


class Vertices:
    """All results of all vertices."""

    def __init__(self, vertices, kinds):
        self.vertices, self.kinds = vertices, kinds

    def of(self, kind):
        return Vertices([x for x, of in zip(self.vertices, self.kinds, strict=True) if of == kind], [])

    @property
    def scattered(self):
        given = [x.scattered for x in self.vertices]
        return tuple(map(Rows, zip(*given, strict=True))) if isinstance(given[0], tuple) else Rows(given)

    @property
    def pushed(self):
        return Rows(x.pushed for x in self.vertices if x.pushed is not None)


def vertex(*functions):
    """By recursion, vertex by vertex."""

    def call(graph, *inputs):
        found = {}

        def go(at):
            if at not in found:
                kind = graph.kinds[at]
                given = inputs[kind] if kind < len(inputs) else None
                below = [go(child) for child in graph.children[at]]
                found[at] = Vertex(below, entry(given, graph.kinds[:at].count(kind)))
                functions[kind](found[at])
            return found[at]

        return Vertices([go(at) for at in range(len(graph.children))], graph.kinds)

    functions = tuple(inner for one in functions for inner in getattr(one, "functions", (one,)))
    call.functions = functions
    return call


def entry(given, at):
    """What a vertex gets of the inputs of its kind."""
    if isinstance(given, tuple):
        return tuple(entry(one, at) for one in given)
    if not isinstance(given, list | np.ndarray):
        return given  # the same for all
    found = given[at]
    if isinstance(found, Expression):
        return found
    return int(found) if np.issubdtype(np.asarray(found).dtype, np.integer) else Expression(found)


class TooClose(ValueError):
    """Rounding decides what a program does: there is nothing to compare."""


class Awaited(float):
    """A number that a program decides by."""

    def __gt__(self, other):
        if is_exact() and abs(self - other) < MARGIN:
            raise TooClose
        return float(self) > other


class Request:
    """What a program waits for."""

    def __init__(self, answer):
        self.answer = answer

    def __await__(self):
        return (yield self)


def values(expressions):
    return Request(lambda: [answered(x) for x in expressions])


def all(*parts):
    return Request(lambda: [answered(part) for part in parts])


def answered(request):
    if isinstance(request, Request):
        return request.answer()
    if isinstance(request, list):
        return [answered(x) for x in request]
    if isinstance(request, Expression):
        return Awaited(request.value())
    return driven(request)


def driven(program):
    """What a program returns."""
    given = None
    while True:
        try:
            given = answered(program.send(given))
        except StopIteration as end:
            return end.value


def run(programs, **_):
    """One after the other."""
    with ExitStack() as opened:
        if not is_open():
            opened.callback(opened.enter_context(Graph()).run)  # nobody can run it later, whatever is raised here
        for program in programs:
            opened.callback(program.close)
        return [driven(program) for program in programs]
