"""What vertex functions and input graphs refuse: one clear error, with the vertex."""

import numpy as np
import pytest

import edbatch as eb
from tests.refused import Error, check, rows_of

X = np.ones((3, 2))
NO_INTEGERS = "expected a list or an array of integers"

# fmt: off
GRAPHS = [
    ("G([0, 1], [0])", Error, "InputGraph: …vertex 0 gathers 0: expected no cycle"),
    ("G([0, 1, 2, 3], [1, 2, 0])", Error, "vertex 0 gathers 1 gathers 2 gathers 0: expected no cycle"),
    ("G([0, 0, 1, 2], [2, 1])", Error, "vertex 1 gathers 2 gathers 1: expected no cycle"),
    ("G(np.arange(51), (np.arange(50) + 1) % 50)", Error, "gathers 1 … gathers 7 gathers ...: expected no cycle"),
    ("G([0, 0, 2], [0, 2])", Error, "child 1 of vertex 1 is 2, out of range for 2 vertices"),
    ("G([0, 0, 1], [-1])", Error, "child 0 of vertex 1 is -1, out of range for 2 vertices"),
    ("G([0, 2, 1], [0])", Error, "vertex 0 has children from 0 to 2 of 1"),
    ("G([0, 2, 1, 3], [0, 0, 0])", Error, "vertex 1 has children from 2 to 1 of 3"),
    ("G([0, -1, 1], [0])", Error, "vertex 0 has children from 0 to -1 of 1"),
    ("G([0, 1, 3], [0])", Error, "expected offsets from 0 to the number of children, 1, got [0, 1, 3]"),
    ("G([1, 1], [0])", Error, "expected offsets from 0 to the number of children"),
    ("G([], [])", Error, "expected offsets from 0 to the number of children"),
    ("G([0.0, 1.0], [0])", Error, f"offsets: {NO_INTEGERS}"), ("G([0, 1], [[0]])", Error, f"children: {NO_INTEGERS}"),
    ("G([0, 1], 'a')", Error, f"children: {NO_INTEGERS}"), ("G([0, 1], [2**70])", Error, f"children: {NO_INTEGERS}"),
    ("G([[0], [1, 2]], [0])", Error, f"offsets: {NO_INTEGERS}"),
    ("G(Unreadable(), [0])", Error, f"InputGraph: …: {NO_INTEGERS}"), ("G([0, 1], Unreadable())", Error, NO_INTEGERS),
    ("G([0, 0, 0], [], [0])", Error, "kind"), ("G([0, 0, 0], [], [0, -1])", Error, "kind"),
    ("G([0, 0, 0], [], [0.0, 1.0])", Error, "kind"), ("G([0, 0, 0], [], [[0, 1]])", Error, "kind"),
    ("G.of_lists([[()], [(), (5,)]])", Error, "vertex 1 of sample 1 has children …expected integers in [0, 2)"),
    ("G.of_lists([[()], [(), (-1,)]])", Error, "vertex 1 of sample 1 has children …expected integers in [0, 2)"),
    ("G.of_lists(None)", Error, "of_lists: expected samples, … got None"),
    ("G.of_lists([[None]])", Error, "of_lists: expected samples"),
    ("G.of_lists(['ab'])", Error, "vertex 0 of sample 0 has children …: expected integers"),
    ("G.of_lists([[(), (0.0,)]])", Error, "vertex 1 of sample 0 has children …: expected integers"),
    ("G.of_chains([2, 0])", Error, "expected lengths of at least 1"),
    ("G.of_chains([10**15])", Error, "of_chains: expected what fits into memory"),
    ("G.of_tuples([1, (3, ())])", Error, "of_tuples: an empty tuple in (3, ())"),
    ("G.of_tuples(3)", Error, "of_tuples: expected a list of trees, got 3"),
    ("G.join(None)", Error, "join: expected a list of graphs, got None"),
    ("G.join([3])", Error, "join: expected graphs, got 3"),
]

FUNCTIONS = [
    *((f"eb.vertex({wrong})", Error, "vertex: expected functions of a vertex, got") for wrong in ("3", "None", "int")),
    ("eb.vertex()", Error, "expected at least one function"),
    ("run([[0, 1]], leaf)", Error, "vertex function leaf: expected an eb.InputGraph, got"),
    # kinds and children
    ("run(TREE, leaf, X[:2])", Error, "vertex 2 is of kind 1: expected one below 1, the number of vertex functions"),
    ("run(TREE, [leaf, of_two], X, X, X)", Error, "expected the input of each kind, 2 at most, got 3"),
    ("run(CHAIN, of_two)", Error, "of_two, vertex 0: gather(0): the vertex has no children"),
    ("run(G.of_lists([[(), (), (0,)]], [0, 0, 1]), [leaf, of_two], X[:2])", Error,
     "of_two, vertex 2 of kind 1: gather(1): the vertex has one child"),
    ("run(G.of_lists([[(), (), (0, 1, 1)]], [0, 0, 1]), [leaf, of_two], X[:2])", Error,
     "of_two, vertex 2 of kind 1: the vertex has 3 children, and child 2 is not gathered; gather() is of all"),
    ("run(CHAIN, leaf, X)", Error, "leaf, vertex 1: the vertex has one child, and child 0 is not gathered"),
    *((f"run(CHAIN, lambda v: v.gather({wrong}), X)", Error, "vertex 0: gather(") for wrong in ("1.0", "'a'", "True")),
    ("run(CHAIN, pushes, X)", Error, "pushes, vertex 1: gather(0): that vertex scatters nothing"),
    # inputs
    ("run(CHAIN, leaf, X[:2])", Error, "leaf, inputs: expected an entry for each of 3 vertices, got 2"),
    ("run(TREE, [leaf, of_two], (X[:2], {'a': X[:2], 'b': X}))", Error,
     "leaf, inputs of kind 0, part 1, 'b': expected an entry for each of 2 vertices, got 3"),
    ("run(CHAIN, leaf)", Error, "leaf, vertex 0: pull(): these vertices have no input"),
    *((f"run(CHAIN, leaf, {wrong})", Error, "leaf, inputs: expected an array with an entry for each vertex")
      for wrong in ("'abc'", "3", "{1, 2}", "np.float32(3)", "object()")),
    ("run(CHAIN, leaf, [X, 'a', 3])", Error, "leaf, inputs: "),
    ("run(CHAIN, leaf, np.array(['a', 'b', 'c']))", Error, "an array of <U1"),
    ("run(CHAIN, leaf, np.ma.masked_array(X, X > 0))", Error, "masked"),
    ("run(CHAIN, leaf, (eb.array(X), far))", Error, "part 1: expressions of another graph"),
    # integers
    ("run(ONES, look, [0, 5, 4])", Error, "look, vertex 1: lookup…: 5 is out of range for 5 entries"),
    ("run(ONES, look, [0, -5, -6])", Error, "look, vertex 2: lookup…: -6 is out of range for 5 entries"),
    ("run(ONES, lambda v: v.push(eb.cross_entropy(eb.zeros(5) * 1, v.pull())), [0, -1, 4])", Error,
     "vertex 1: …: -1 is no label, expected one in [0, 5)"),
    ("run(ONES, lambda v: v.scatter(cell(v.pull())), [0, 9, 4])", Error, "vertex 1: cell …k: 9 is out of range"),
    ("run(ONES, lambda v: v.push(v.pull() + 1), [0, 1, 4])", Error, "vertex 0: …an integer that is pulled"),
    # results
    ("run(CHAIN, lambda v: v.pull(), X)", Error, "vertex 0: it returns Expression: expected v.scatter"),
    ("run(CHAIN, lambda v: (v.scatter(v.pull()), v.scatter(v.pull())), X)", Error, "scatter: called twice"),
    ("run(CHAIN, lambda v: v.push(), X)", Error, "push: expected at least one expression"),
    ("run(CHAIN, lambda v: v.push('a'), X)", Error, "push: expected an expression…got str"),
    ("run(CHAIN, lambda v: v.push(own), X)", Error, "vertex 0: …another graph"),
    ("run(CHAIN, lambda v: v.push(v.pull() + own), X)", Error, "vertex 0: …array"),
    *((f"run(CHAIN, lambda v: {read}, X)", Error, "an expression of one vertex has no value of its own") for read in (
        "v.pull().value()", "float(v.pull()[0])", "v.pull().backward()", "eb.forward([v.pull()])",
        "v.pull().gradient()")),
    ("run(G.of_lists([[(), (), (0, 1)]], [0, 2, 1]), [leaf, of_two, leaf], [[1, 2]], None, [[1, 2, 3]])", Error,
     "of_two, vertex 2 of kind 1: add([2], [3]): shapes do not broadcast"),
    ("run(CHAIN, lambda v: 1 / 0, X)", ZeroDivisionError, ""),
    ("run(CHAIN, lambda v: eb.vertex(leaf)(CHAIN), X)", Error, "vertex function leaf is called in a vertex function"),
    ("eb.cell(lambda x: eb.vertex(leaf)(CHAIN, x))(eb.ones(2))", Error, "vertex function leaf is called in a cell"),
    # what leaves a function
    *((use, Error, "used after the function has returned") for use in (
        "eb.exp(leaked)", "leaked + 1", "other * leaked", "eb.sum([other, leaked])", "leaked + TABLE[0]",
        "eb.dropout(leaked, 0.5)")),
    ("eb.sum(several).graph.flush()", Error, "used after the function has returned"),
    ("eb.sum(several * 2).graph.flush()", Error, "used after the function has returned"),
    *((use, Error, "") for use in (
        "leaked.value()", "eb.forward([leaked])", "several.value()", "eb.forward([several])", "leaked.gradient()")),
    ("eb.forward([other, leaked])", Error, "an expression of another graph, that of one vertex"),
    ("eb.array([other, leaked])", Error, "another graph"),
]
# fmt: on


class Unreadable:
    def __array__(self, *_, **__):
        raise RuntimeError("not now")


def leaf(v):
    v.scatter(v.pull())


def of_two(v):
    v.scatter(v.gather(0) + v.gather(1))


def pushes(v):
    v.gather()
    v.push(v.pull())


def run(graph, functions, *inputs):
    return eb.vertex(*(functions if isinstance(functions, list) else [functions]))(graph, *inputs)


@pytest.mark.parametrize(("code", "error", "message"), rows_of(GRAPHS + FUNCTIONS))
def test_what_does_not_fit_is_refused(code, error, message):
    table = eb.ParameterCollection(seed=0).add_lookup_parameters((5, 2))
    chain, kept = eb.InputGraph.of_chains([3]), []

    def keeps(v):
        kept.extend([eb.sum(v.pull()), eb.array([v.pull(), v.pull()])])
        v.gather()
        v.scatter(v.pull())

    def look(v):
        v.scatter(eb.lookup(table, v.pull()))

    @eb.cell
    def cell(k: int):
        return eb.lookup(table, k)

    with eb.Graph():
        far = eb.array(X)
    with eb.Graph():
        run(chain, keeps, X)
        other = eb.scalar(1.0)
        names = {
            "G": eb.InputGraph, "CHAIN": chain, "TREE": eb.InputGraph.of_lists([[(), (), (0, 1)]], [0, 0, 1]), "X": X,
            "ONES": eb.InputGraph.of_chains([1, 1, 1]), "TABLE": table, "Unreadable": Unreadable, "leaf": leaf,
            "of_two": of_two, "pushes": pushes, "run": run, "look": look, "cell": cell, "far": far,
            "own": eb.array(X), "other": other, "leaked": kept[0], "several": kept[1],
        }  # fmt: skip
        for _ in range(2):
            check(code, error, message, **names)
        assert (other + 1).value() == 2
        for function in (look, lambda v: v.scatter(cell(v.pull()))):
            found = run(names["ONES"], function, [0, -1, -5]).scattered.value()
            np.testing.assert_array_equal(found, table.value()[[0, -1, -5]])


def test_no_graph():
    with pytest.raises(eb.EdBatchError, match="no graph"):
        run(eb.InputGraph.of_chains([3]), leaf, X)
