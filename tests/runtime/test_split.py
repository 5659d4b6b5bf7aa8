"""Cells split around recurrences give the numbers of the whole cells, and run in fewer, larger batches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edbatch as eb
from edbatch.models import (
    GRU,
    LSTM,
    Bidirectional,
    ChildSumTreeLSTM,
    CoupledLSTM,
    PeepholeLSTM,
    SimpleRNN,
    Stacked,
    TreeGRU,
    TreeLSTM,
)
from edbatch.policy import recorded
from tests.arrays import on_host

IN, DIM, OUT = 3, 4, 5
POLICIES = ["none", "depth", "agenda", "sufficient", "critical-path"]
LENGTHS = (6, 1, 3, 6, 2)


def inputs(seed=0, lengths=LENGTHS):
    random = np.random.default_rng(seed)
    return [[eb.input(random.normal(size=IN)) for _ in range(length)] for length in lengths]


def run(build, policy="sufficient", **options):
    """What `build()` returns, computed, and its graph."""
    with eb.options(**options), eb.Graph(policy=policy, dtype="float64") as graph:
        return eb.forward(build()), graph


def check(build, policy="sufficient"):
    """The split graph of `build()`, whose values are those of whole cells and of no cells."""
    got, graph = run(build, policy)
    for options in ({"split": False}, {"cells": False}, {"compile": "plain"}):
        for value, want in zip(got, run(build, **options)[0], strict=True):
            np.testing.assert_allclose(value, want, rtol=1e-10, atol=1e-12)
    typed = graph.typed_graph()
    users = np.repeat(np.arange(len(typed)), np.diff(typed.indptr))
    assert (typed.operands < users).all()
    return graph


def names(graph):
    return [name.split("([")[0].split("()->")[0] for name in graph.typed_graph().names]


class Cell:
    """Steps of several kinds."""

    def __init__(self, dtype="float64", seed=1):
        model = self.model = eb.ParameterCollection(seed=seed, dtype=dtype)
        self.W = model.add_parameters((DIM, IN), name="W")
        self.V = model.add_parameters((DIM, DIM), name="V")
        self.U = model.add_parameters((DIM, DIM), name="U")
        self.J = model.add_parameters((2 * DIM, IN + 2 * DIM), name="J")
        self.b = model.add_parameters((DIM,), name="b", init="uniform")
        self.out = model.add_parameters((OUT, DIM), name="out")
        self.b_out = model.add_parameters((OUT,), name="b_out", init="uniform")
        self.table = model.add_lookup_parameters((7, IN), name="table", init="glorot")

    @eb.cell
    def read_out(self, x, h):
        """A late part that needs the input, too."""
        h = eb.tanh(self.W @ x + self.U @ h + self.b)
        return h, eb.softmax(self.out @ h + self.b_out), x

    @eb.cell
    def embedding(self, h, word: int, label: int):
        """A look-up that is eager, used in a product and beside it; a label that is late."""
        x = eb.lookup(self.table, word)
        h = eb.tanh(self.W @ x + self.U @ h) + eb.sum(x) * x[0]
        return {"h": h, "loss": eb.cross_entropy(self.out @ h, label)}

    @eb.cell
    def spell(self, h, *words):
        """Any number of integers."""
        return eb.tanh(self.W @ eb.sum([eb.lookup(self.table, word) for word in words]) + self.U @ h)

    @eb.cell
    def attend(self, keys, x, h, *, scale=1.0):
        """An eager matrix, in a product and with the state; products of what is eager with one another."""
        near = eb.softmax(keys @ (self.U @ h))
        gate = eb.sigmoid(self.V @ eb.tanh(self.W @ x))
        return eb.tanh(near @ keys + (self.U @ (keys.T @ eb.ones(2))) * gate * h * scale + x[1])

    @eb.cell
    def swap(self, a, b):
        """Two states, of which one is returned as the other, and an output that is early."""
        return b, eb.tanh(self.U @ a + b), self.V @ b

    @eb.cell
    def joined(self, x, h, c):
        """One product with input and states."""
        i, u = eb.split(self.J @ eb.concatenate([c, x, h]), 2)
        return eb.sigmoid(i) * eb.tanh(u), c + u

    @eb.cell
    def feed(self, x, h):
        """The read-out is fed back: nothing is late."""
        h = eb.tanh(self.W @ x + h)
        return h, self.V @ h


@pytest.mark.parametrize("layer", [LSTM, CoupledLSTM, PeepholeLSTM, GRU, SimpleRNN])
@pytest.mark.parametrize("policy", POLICIES)
def test_layers(layer, policy):
    made = layer(eb.ParameterCollection(seed=2, dtype="float64"), IN, DIM)
    graph = check(lambda: [y for xs in inputs() for y in made.initial_state().transduce(xs)], policy)
    state = {1: "(h)", 2: "(h, c)"}[layer.states]
    assert names(graph) == [f"{layer.__name__}.step (eager x)", f"{layer.__name__}.step {state}"]
    report = graph.report()
    assert report.nodes == 2 * sum(LENGTHS)
    assert report.lower_bound == 1 + max(LENGTHS)
    if policy == "sufficient":
        assert report.batches == report.lower_bound
        assert report.gathered == 0


def test_layers_on_top_of_one_another_project_in_one_batch_each():
    model = eb.ParameterCollection(seed=2, dtype="float64")
    low = Bidirectional(LSTM(model, IN, DIM, name="a"), LSTM(model, IN, DIM, name="b"))
    high = Bidirectional(GRU(model, 2 * DIM, DIM, name="c"), LSTM(model, 2 * DIM, DIM, name="d"))
    graph = check(lambda: [y for xs in inputs() for y in high.transduce(low.transduce(xs))])
    # Per layer and direction a batch of projections, then the steps; per layer one of concatenations.
    assert graph.report().batches == graph.report().lower_bound == 4 * (1 + max(LENGTHS)) + 2
    stacked = Stacked([LSTM(model, IN, DIM, name="e"), GRU(model, DIM, DIM, name="f")])
    graph = check(lambda: [y for xs in inputs() for y in stacked.initial_state().transduce(xs)])
    assert graph.report().batches == 2 * (1 + max(LENGTHS))


def chain_of_read_outs(cell, lengths=LENGTHS):
    out = []
    for xs in inputs(lengths=lengths):
        h = eb.zeros(DIM)
        for x in xs:
            h, p, same = cell.read_out(x, h)
            out += [h[1:3], p[::2], same]
        out += [h + 1]
    return out


@pytest.mark.parametrize("policy", POLICIES)
def test_what_the_recurrence_does_not_need_is_late(policy):
    cell = Cell()
    graph = check(lambda: chain_of_read_outs(cell), policy)
    assert names(graph) == ["Cell.read_out (eager x)", "Cell.read_out (h)", "Cell.read_out (lazy x)", "add"]
    if policy == "sufficient":
        assert graph.report().batches == 1 + max(LENGTHS) + 1 + 1
        assert graph.report().batches == graph.report().lower_bound


def test_what_the_recurrence_needs_is_not_late():
    cell = Cell()

    def build():
        out = []
        for xs in inputs():
            h = eb.zeros(DIM)
            for x in xs:
                _, h = cell.feed(x, h)
                out.append(h)
        return out

    assert names(check(build)) == ["Cell.feed (eager x)", "Cell.feed (h)"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_integers_are_eager(dtype):
    cell = Cell(dtype)

    def build():
        out = []
        for length in LENGTHS:
            h = eb.ones(DIM)
            for word in range(length):
                made = cell.embedding(h, word, OUT - 1 - word % OUT)
                h = made["h"]
                out += list(made.values())
        return out

    if dtype == "float64":
        graph = check(build)
        assert names(graph) == [
            "Cell.embedding (eager word)",
            "Cell.embedding (h)",
            "Cell.embedding (lazy label)",
        ]
        assert graph.report().batches == 1 + max(LENGTHS) + 1
    else:
        values = []
        for options in ({}, {"split": False}):
            with eb.options(**options), eb.Graph(policy="sufficient"):
                values.append(eb.forward(build()))
        for got, want in zip(*values, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_eager_is_used_in_many_ways(policy):
    cell = Cell()
    random = np.random.default_rng(7)

    def build():
        out = []
        for xs in inputs():
            keys = eb.input(random.normal(size=(2, DIM)))
            h = eb.ones(DIM)
            for x in xs:
                h = cell.attend(keys, x, h, scale=0.5)
                out.append(h)
        return out

    def seeded():
        nonlocal random
        random = np.random.default_rng(7)
        return build()

    graph = check(seeded, policy)
    assert names(graph) == ["Cell.attend scale=0.5 (eager keys, x)", "Cell.attend scale=0.5 (keys, x, h)"]


def test_nothing_to_split():
    """Trees whose nodes compose states alone, chains whose inputs come from the chain, and no recurrence at all."""
    model = eb.ParameterCollection(seed=0, dtype="float64")
    tree = TreeLSTM(model, words=9, labels=OUT, dim=DIM)
    gru = TreeGRU(model, IN, DIM, name="gru")
    child_sum = ChildSumTreeLSTM(model, IN, DIM, name="child_sum")
    lstm = LSTM(model, DIM, DIM)
    cell = Cell()

    def build():
        hs = tree.hidden([1, 2, None, 3, None], [(), (), (0, 1), (), (2, 3)])
        a, b = (gru.leaf(eb.input(np.arange(IN) * k)) for k in (1.0, 2.0))
        h, c = child_sum.node(eb.ones(IN), [child_sum.node(eb.ones(IN), [])])
        state = lstm.initial_state()
        for _ in range(3):
            state = state.add_input(state.output() * 2)
        once = cell.read_out(eb.ones(IN), eb.ones(DIM))
        return [*hs, gru.compose(gru.compose(a, b), b), h, c, *state.vectors, *once, tree.probabilities(hs[-1])]

    graph = check(build)
    assert not [name for name in names(graph) if "eager" in name or "lazy" in name]


def test_a_layer_that_reads_its_own_outputs_waits_for_them():
    lstm = LSTM(eb.ParameterCollection(seed=0, dtype="float64"), DIM, DIM)

    def build():
        below = lstm.initial_state().transduce([eb.input(np.ones(DIM) * k) for k in range(3)])
        return lstm.initial_state().transduce(below)

    assert names(check(build)) == ["LSTM.step"]


def test_cells_that_call_one_another_in_turns():
    """The recurrence goes through another cell and through ops, and types of several models do not meet."""
    first, second = Cell(), Cell(seed=5)

    def build():
        out = []
        for xs in inputs():
            a = b = c = eb.ones(DIM)
            for x in xs:
                a, p, _ = first.read_out(x, eb.mean([a, b]))
                b, c, early = second.swap(c * 2, eb.tanh(a))
                out += [a, b, p, early]
        return out

    graph = check(build)
    assert [name for name in names(graph) if name.startswith("Cell.read_out")] == [
        "Cell.read_out (eager x)",
        "Cell.read_out (h)",
        "Cell.read_out (lazy x)",
    ]


@pytest.mark.parametrize("policy", ["none", "sufficient", None])
@pytest.mark.parametrize("every", [1, 2, 3, 7])
def test_graphs_grow_after_values_were_read(policy, every):
    cell, lstm = Cell(), LSTM(eb.ParameterCollection(seed=3, dtype="float64"), IN, DIM)

    def build(graph=None):
        out = []
        h, state = eb.zeros(DIM), lstm.initial_state()
        for number, x in enumerate(inputs(lengths=(12,))[0]):
            h, p, _ = cell.read_out(x, h)
            state = state.add_input(x)
            out += [h, p, *state.vectors]
            if graph is not None and number % every == 0:
                nodes = len(graph.typed_graph())  # looking changes nothing
                h.value()
                assert len(graph.typed_graph()) == nodes
        return out

    with eb.Graph(policy=policy, dtype="float64") as graph:
        got = eb.forward(build(graph))
    want, _ = run(build, cells=False)
    np.testing.assert_allclose(np.concatenate(got), np.concatenate(want), rtol=1e-10, atol=1e-12)
    if every == 1:  # one step at a time: there is nothing to gain from parts
        assert graph.report().nodes == 2 * 12
    got, split = run(build)
    assert split.report().nodes == (2 + 3) * 12
    assert len(split.typed_graph()) == split.report().nodes


# One step of a random program: a cell, its operands, and whether a value is read.
STEPS = st.lists(
    st.tuples(st.sampled_from(["read_out", "embedding", "attend", "swap", "feed", "joined", "gru",
                               "sum"]),
              st.lists(st.integers(0, 10**6), min_size=4, max_size=4), st.integers(0, 30)),
    min_size=1, max_size=40,
)  # fmt: skip


@pytest.mark.parametrize("policy", [*POLICIES, None])
@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_random_programs(policy, steps):
    cell = Cell()
    gru = GRU(cell.model, IN, DIM)

    def build(read=False):
        xs = [eb.input(np.linspace(-1, 1, IN) * k) for k in range(3)]
        hs = [eb.input(np.linspace(-1, 1, DIM) * k) for k in range(3)]
        keys = eb.input(np.linspace(-1, 1, 2 * DIM).reshape(2, DIM))
        out = []
        for name, (i, j, k, word), reads in steps:
            h, g, x = hs[i % len(hs)], hs[-1 - j % min(2, len(hs))], xs[k % len(xs)]
            if name == "read_out":
                h, p, x = cell.read_out(x, h)
                xs.append(p[1:4])
                out += [p, x]
            elif name == "embedding":
                h, loss = cell.embedding(h, word % 7, k % OUT).values()
                out.append(loss)
            elif name == "attend":
                h = cell.attend(eb.stack([h, g]) if k % 2 else keys, x, g)
            elif name == "swap":
                g, h, early = cell.swap(h, g)
                hs += [g, early]
            elif name == "feed":
                h, g = cell.feed(x, h)
                hs.append(g)
            elif name == "joined":
                h, g = cell.joined(x, h, g)
                hs.append(g)
            elif name == "gru":
                h = gru.step(x, g)
            else:
                h = eb.mean([h, g, hs[word % len(hs)]])
            hs.append(h)
            if read and reads == 0:
                h.value()
        return [eb.reshape(x, (x.spec.size,)) for x in out + hs + xs]

    with eb.Graph(policy=policy, dtype="float64") as graph:
        got = eb.forward(build(read=True))
    graph.report()
    want, _ = run(build, "none", cells=False)
    np.testing.assert_allclose(np.concatenate(got), np.concatenate(want), rtol=1e-9, atol=1e-11)


def test_any_number_of_integers():
    cell = Cell()

    def build():
        out = []
        for length in LENGTHS:
            h = eb.ones(DIM)
            for word in range(length):
                h = cell.spell(h, word, 3, 0)
                out.append(h)
        return out

    assert names(check(build)) == ["Cell.spell (eager words[0], words[1], words[2])", "Cell.spell (h)"]


def test_a_core_that_its_own_late_part_does_not_read():
    """Its users come before it in the order of ids."""
    cell = Cell()

    def build():
        a = b = eb.ones(DIM)
        out = []
        for x in inputs(lengths=(4,))[0]:
            a, b, early = cell.swap(b, a * 2)
            out += [cell.read_out(x, cell.read_out(x, a)[0])[0], early]
        return [*out, a, b]

    for policy in POLICIES:
        check(build, policy)


def test_more_types_than_one_pass_tells_apart():
    model = eb.ParameterCollection(seed=0, dtype="float64")
    rnns = [SimpleRNN(model, IN, DIM, name=f"rnn{k}") for k in range(70)]
    graph = check(lambda: [rnn.initial_state().transduce(inputs()[0])[-1] for rnn in rnns])
    assert graph.report().types == 140
    assert graph.report().batches == 70 * (1 + 6)


def test_two_float_types_in_one_process():
    values = []
    for dtype in ("float32", "float64", "float32"):
        cell = Cell(dtype)
        with eb.Graph(policy="sufficient", dtype=dtype):
            values.append(np.concatenate(eb.forward(chain_of_read_outs(cell))))
        assert values[-1].dtype == dtype
    np.testing.assert_array_equal(values[0], values[2])
    np.testing.assert_allclose(values[0], values[1], rtol=1e-5, atol=1e-6)


def test_saved_graphs_and_policies_know_the_parts(tmp_path):
    cell = Cell()
    with eb.Graph(policy="sufficient", dtype="float64") as graph:
        chain_of_read_outs(cell)
    graph.save(tmp_path / "graph.txt")
    loaded = recorded.read_graph(tmp_path / "graph.txt")
    assert loaded.names == graph.typed_graph().names
    assert "Cell.read_out (eager x)([3])" in loaded.names
    policy = eb.learn([loaded], progress=False)
    policy.save(tmp_path / "policy.json")
    _, ran = run(lambda: chain_of_read_outs(cell), eb.get_policy(tmp_path / "policy.json"))
    assert ran.report().fallbacks == 0
    assert ran.report().batches == ran.report().lower_bound == len(policy.schedule(loaded))


def test_the_types_of_expressions_after_they_ran():
    cell = Cell()
    with eb.Graph(policy="sufficient", dtype="float64"):
        x = inputs(lengths=(1,))[0][0]
        h, _, _ = cell.read_out(x, eb.zeros(DIM))
        h, p, _ = cell.read_out(x, h)
        assert repr(p) == "Expression(Cell.read_out([3], [4]), shape=(5,))"
        p.value()
        assert repr(p) == "Expression(Cell.read_out (lazy x)([4], [3]), shape=(5,))"


def test_parameters_that_change_are_seen():
    cell = Cell()
    before = run(lambda: chain_of_read_outs(cell))[0]
    cell.W.set_value(cell.W.value() + 1)
    after = run(lambda: chain_of_read_outs(cell))[0]
    assert abs(np.concatenate(before) - np.concatenate(after)).max() > 1e-3
    check(lambda: chain_of_read_outs(cell))


class Leaf:
    """A cell of words alone, with a product large enough to be shared."""

    def __init__(self, dtype="float32"):
        self.model = eb.ParameterCollection(seed=0, dtype=dtype)
        self.table = self.model.add_lookup_parameters((9, 256), name="table")
        self.W = self.model.add_parameters((256, 256), name="W")
        self.b = self.model.add_parameters((256,), name="b", init="uniform")

    @eb.cell
    def leaf(self, word: int):
        gate = eb.tanh(self.W @ self.table[word] + self.b)
        return gate, gate * eb.sigmoid(self.table[word])

    def run(self, words, **options):
        with eb.options(**options), eb.Graph(policy="sufficient", dtype=self.model.dtype) as graph:
            outs = [self.leaf(word) for word in words]
            loss = eb.sum([eb.sum(a * (at + 1) + b * b) for at, (a, b) in enumerate(outs)])
            loss.backward()
        gradients = [x.gradient() for pair in outs for x in pair]
        values = [x.value() for pair in outs for x in pair]
        found = [on_host(self.W.grad()).copy(), on_host(self.b.grad()).copy(), on_host(self.table.grad()).copy()]
        self.model.zero_grad()
        return values, gradients, found, graph.report()


@pytest.mark.parametrize("words", [[3, 3, 5, 3], [0, 8, 0, 8, 0, 8, 1], [2]])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_looked_up_again_is_computed_once(words, dtype):
    network = Leaf(dtype)
    *found, report = network.run(words)
    *whole, unsplit = network.run(words, split=False)
    *plain, _ = network.run(words, cells=False)
    distinct = len(set(words))
    shared = len(words) > 1
    assert report.nodes - unsplit.nodes == distinct * shared
    for those in (whole, plain):
        for a, b in zip(found, those, strict=True):
            for x, y in zip(a, b, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-4 if dtype == "float32" else 1e-11, atol=1e-5)
    # Nodes of one word have gradients of their own.
    first, second = [at for at in range(len(words)) if words[at] == words[0]][:2] if shared else (0, 0)
    assert shared == (not np.allclose(found[1][2 * first], found[1][2 * second]))


def test_words_that_hardly_repeat_are_not_split():
    network = Leaf()
    assert network.run([0, 1, 2, 3, 4, 4])[-1].nodes == network.run([0, 1, 2, 3, 4, 4], split=False)[-1].nodes


def test_a_graph_that_grows_shares_anew():
    network = Leaf()
    with eb.Graph(policy="sufficient") as graph:
        a = network.leaf(4)[0].value()
        b = [network.leaf(word)[0] for word in (4, 4, 2, 4, 2)]
        rounding = 0 if graph.report().device == "cpu" else 1e-8  # other devices add in another order
        np.testing.assert_allclose(b[0].value(), a, rtol=1e-6, atol=rounding)
        np.testing.assert_allclose(b[2].value(), network.leaf(2)[0].value(), rtol=1e-6, atol=rounding)
    assert graph.report().nodes == 1 + 5 + 2 + 1


@pytest.mark.parametrize("split", [True, False])
def test_the_gradient_of_a_result_that_depends_on_no_argument(split):
    """It is read by the next call, and a late part returns it, too."""
    model = eb.ParameterCollection(seed=0, dtype="float64")
    W, b = model.add_parameters((DIM, DIM)), model.add_parameters(DIM)
    cell = eb.cell(lambda h, A: (b * 2.0, eb.affine(W, eb.ones(DIM), A @ h)))
    A, seed = np.random.default_rng(0).normal(size=(DIM, DIM)), np.arange(1.0, DIM + 1)
    with eb.options(split=split), eb.Graph(policy="none", dtype="float64"):
        matrix = eb.input(A)
        first, _ = cell(eb.zeros(DIM), matrix)
        _, second = cell(first, matrix)
    second.backward(seed)
    np.testing.assert_allclose(on_host(first.gradient()), A.T @ seed, rtol=1e-12)
    np.testing.assert_allclose(on_host(b.grad()), 2 * A.T @ seed, rtol=1e-12)
