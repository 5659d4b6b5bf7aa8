"""What is wrong with a call of a vertex function is one clear error, with the vertex."""

import numpy as np
import pytest

import edbatch as eb

CHAIN = eb.InputGraph.of_chains([3])
TREE = eb.InputGraph.of_lists([[(), (), (0, 1)]], [0, 0, 1])
X = np.ones((3, 2))


def refused(message, graph, *inputs, functions):
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=message) as error:
        eb.vertex(*functions)(graph, *inputs)
    return str(error.value)


def leaf(v):
    v.scatter(v.pull())


def of_two(v):
    v.scatter(v.gather(0) + v.gather(1))


def test_functions():
    for wrong in (3, None, int):
        with pytest.raises(eb.EdBatchError, match="vertex: expected functions of a vertex, got"):
            eb.vertex(wrong)
    with pytest.raises(eb.EdBatchError, match="expected at least one function"):
        eb.vertex()
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=r"vertex function leaf: expected an eb\.InputGraph, got"):
        eb.vertex(leaf)([[0, 1]])
    with pytest.raises(eb.EdBatchError, match="no graph"):
        eb.vertex(leaf)(CHAIN, X)


def test_kinds():
    refused(
        r"vertex 2 is of kind 1: expected one below 1, the number of vertex functions", TREE, X[:2], functions=[leaf]
    )
    refused(r"expected the input of each kind, 2 at most, got 3", TREE, X, X, X, functions=[leaf, of_two])


def test_numbers_of_children():
    refused(r"of_two, vertex 0: gather\(0\): the vertex has no children", CHAIN, functions=[of_two])
    message = r"of_two, vertex 2 of kind 1: gather\(1\): the vertex has one child"
    refused(message, eb.InputGraph.of_lists([[(), (), (0,)]], [0, 0, 1]), X[:2], functions=[leaf, of_two])
    message = (
        r"of_two, vertex 2 of kind 1: the vertex has 3 children, and child 2 is not gathered; gather\(\) is of all"
    )
    refused(message, eb.InputGraph.of_lists([[(), (), (0, 1, 1)]], [0, 0, 1]), X[:2], functions=[leaf, of_two])
    refused(r"leaf, vertex 1: the vertex has one child, and child 0 is not gathered", CHAIN, X, functions=[leaf])
    for wrong in (1.0, "a", True, None):
        if wrong is not None:
            refused(r"vertex 0: gather\(", CHAIN, X, functions=[lambda v, wrong=wrong: v.gather(wrong)])


def test_what_is_gathered():
    def pushes(v):
        v.gather()
        v.push(v.pull())

    refused(r"pushes, vertex 1: gather\(0\): that vertex scatters nothing", CHAIN, X, functions=[pushes])


def test_inputs():
    refused(r"leaf, inputs: expected an entry for each of 3 vertices, got 2", CHAIN, X[:2], functions=[leaf])
    message = r"leaf, inputs of kind 0, part 1, 'b': expected an entry for each of 2 vertices, got 3"
    refused(message, TREE, (X[:2], {"a": X[:2], "b": X}), functions=[leaf, of_two])
    refused(r"leaf, vertex 0: pull\(\): there is no input of such vertices", CHAIN, functions=[leaf])
    for wrong in ("abc", 3, {1, 2}, np.float32(3), object()):
        refused(r"leaf, inputs: expected an array with an entry for each vertex", CHAIN, wrong, functions=[leaf])
    refused(r"leaf, inputs: ", CHAIN, [X, "a", 3], functions=[leaf])
    refused(r"an array of <U1", CHAIN, np.array(["a", "b", "c"]), functions=[leaf])
    refused(r"masked", CHAIN, np.ma.masked_array(X, X > 0), functions=[leaf])
    with eb.Graph():
        others = eb.array(X)
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=r"part 1: expressions of another graph"):
        eb.vertex(leaf)(CHAIN, (eb.array(X), others))


TABLE = eb.ParameterCollection(seed=0).add_lookup_parameters((5, 2))


def test_integers_out_of_range():
    graph = eb.InputGraph.of_chains([1, 1, 1])

    def look(v):
        v.scatter(eb.lookup(TABLE, v.pull()))

    def label(v):
        v.push(eb.cross_entropy(eb.zeros(5) * 1, v.pull()))

    def count(v):
        v.push(v.pull() + 1)

    @eb.cell
    def cell(k: int):
        return eb.lookup(TABLE, k)

    def calls(v):
        v.scatter(cell(v.pull()))

    refused(r"look, vertex 1: lookup.*: 5 is out of range for 5 entries", graph, [0, 5, 4], functions=[look])
    refused(r"look, vertex 2: lookup.*: -6 is out of range for 5 entries", graph, [0, -5, -6], functions=[look])
    refused(r"label, vertex 1: .*: -1 is no label, expected one in \[0, 5\)", graph, [0, -1, 4], functions=[label])
    refused(r"calls, vertex 1: cell .*argument k: 9 is out of range", graph, [0, 9, 4], functions=[calls])
    refused(r"count, vertex 0: vertex function .*count: an integer that is pulled", graph, [0, 1, 4], functions=[count])
    with eb.Graph():
        for function in (look, calls):
            found = eb.vertex(function)(graph, [0, -1, -5]).scattered.value()
            np.testing.assert_array_equal(found, TABLE.value()[[0, -1, -5]])


def test_what_is_returned_and_given():
    refused(r"vertex 0: it returns Expression: expected v\.scatter", CHAIN, X, functions=[lambda v: v.pull()])
    refused(r"scatter: called twice", CHAIN, X, functions=[lambda v: (v.scatter(v.pull()), v.scatter(v.pull()))])
    refused(r"push: expected at least one expression", CHAIN, X, functions=[lambda v: v.push()])
    refused(r"push: expected an expression.*got str", CHAIN, X, functions=[lambda v: v.push("a")])
    with eb.Graph():
        outer = eb.array(X)
        for function in (lambda v: v.push(outer), lambda v: v.push(v.pull() + outer)):
            with pytest.raises(eb.EdBatchError, match=r"vertex 0: .*(another graph|array)"):
                eb.vertex(function)(CHAIN, X)


def test_values_are_of_no_single_vertex():
    for read in (lambda x: x.value(), float, lambda x: x.backward(), lambda x: eb.forward([x]), lambda x: x.gradient()):
        message = r"vertex 0: vertex function .* an expression of one vertex has no value of its own"
        refused(message, CHAIN, X, functions=[lambda v, read=read: read(eb.sum(v.pull()))])


def test_shapes():
    refused(r"of_two, vertex 2 of kind 1: add\(\[2\], \[3\]\): shapes do not broadcast",
            eb.InputGraph.of_lists([[(), (), (0, 1)]], [0, 2, 1]), [[1, 2]], None, [[1, 2, 3]],
            functions=[leaf, of_two, leaf])  # fmt: skip


def test_an_error_of_the_function_itself():
    def broken(v):
        raise ValueError("mine")

    with eb.Graph() as graph, pytest.raises(ValueError, match="mine"):
        eb.vertex(broken)(CHAIN, X)
    assert graph.n == len(X)  # the inputs


def test_where_it_is_called():
    inner = eb.vertex(leaf)
    refused(r"vertex function leaf is called in a vertex function", CHAIN, X, functions=[lambda v: inner(CHAIN)])

    @eb.cell
    def cell(x):
        return inner(CHAIN, x)

    with eb.Graph(), pytest.raises(eb.EdBatchError, match="vertex function leaf is called in a cell"):
        cell(eb.ones(2))


def leaked():
    kept = []

    def keeps(v):
        kept.append(eb.sum(v.pull()))
        kept.append(eb.array([v.pull(), v.pull()]))
        v.gather()
        v.scatter(v.pull())

    eb.vertex(keeps)(CHAIN, X)
    return kept


def test_what_leaves_a_function():
    with eb.Graph() as graph:
        one, several, *_ = leaked()
        other = eb.scalar(1.0)
        n = graph.n
        for use in (
            lambda: eb.exp(one), lambda: one + 1, lambda: one + other, lambda: other * one,
            lambda: eb.sum([other, one]), lambda: one + TABLE[0],
            lambda: eb.concatenate([eb.unsqueeze(one, 0), eb.ones(1)]), lambda: eb.dropout(one, 0.5),
            lambda: eb.sum(several), lambda: several * 2,
        ):  # fmt: skip
            with pytest.raises(eb.EdBatchError, match="used after the function has returned"):
                use().graph.flush()  # arrays are recorded then
        for use in (one.value, lambda: eb.forward([one]), several.value, lambda: eb.forward([several]), one.gradient):
            with pytest.raises(eb.EdBatchError, match=r"has no value of its own|after the function has returned"):
                use()
        for use in (lambda: eb.forward([other, one]), lambda: graph.values([one]), lambda: graph.backward(one)):
            with pytest.raises(eb.EdBatchError, match="an expression of another graph, that of one vertex"):
                use()
        with pytest.raises(eb.EdBatchError, match="another graph"):
            eb.array([other, one])
        assert graph.n <= n + 4  # constants
        assert other.value() == 1


def test_arrays_that_cannot_be_read():
    class Unreadable:
        def __array__(self, *_, **__):
            raise RuntimeError("not now")

    for given in ((Unreadable(), [0]), ([0, 1], Unreadable())):
        with pytest.raises(eb.EdBatchError, match=r"InputGraph: .*: expected a list or an array of integers"):
            eb.InputGraph(*given)
