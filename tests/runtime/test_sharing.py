"""Equal nodes are computed once, and everything means what it does without that."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.errors import EdBatchError
from edbatch.runtime import sharing_loops

DIM = 3


class Net:
    def __init__(self, dim=DIM):
        self.model = eb.ParameterCollection(seed=0, dtype="float64")
        self.W = self.model.add_parameters((dim, 2 * dim), name="W")
        self.b = self.model.add_parameters((dim,), name="b")
        self.E = self.model.add_lookup_parameters((9, dim), name="E")

    @eb.cell
    def leaf(self, word: int):
        return eb.tanh(eb.lookup(self.E, word)), eb.lookup(self.E, word)

    @eb.cell
    def compose(self, left, right):
        h = eb.tanh(self.W @ eb.concatenate([left, right]) + self.b)
        return h, left * right

    def encode(self, tree):
        """Of every subtree, in the order in which recursion ends."""
        if isinstance(tree, int):
            return [self.leaf(tree)]
        left, right = map(self.encode, tree)
        (h, c), (h2, c2) = left[-1], right[-1]
        return [*left, *right, self.compose(h + c2, h2 + c)]


TREES = [((1, 2), (3, (1, 2))), (3, (1, 2)), (1, 2), 4, ((1, 2), (3, (1, 2))), ((2, 1), 5)]


def both(function, net=None, policy="sufficient", **options):
    """What a function of a graph returns without, and with, sharing; and the second graph."""
    found = []
    for share in (False, True):
        if net is not None:
            net.model.zero_grad()
        with eb.options(share=share, **options):
            graph = eb.Graph(policy, "float64", seed=3)
            found.append([np.array(x) for x in function(graph)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-14)
    return graph


def shared(graph):
    return sum(graph.report().shared.values())


POLICIES = ["none", "depth", "agenda", "sufficient", "beam:2"]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("off", [{}, {"cells": False}, {"merge": False}, {"split": False}, {"recompute": True}])
def test_trees_with_common_parts(policy, off):
    net = Net()

    def run(graph):
        with graph:
            parts = [x for tree in TREES for pair in net.encode(tree) for x in pair]
            factors = [eb.input(np.linspace(at, 1, DIM)) for at in range(len(parts))]
            loss = eb.sum([eb.dot(x, factor) for x, factor in zip(parts, factors, strict=True)])
        loss.backward()
        values = [loss.value(), *eb.forward(parts), net.W.grad(), net.b.grad(), net.E.grad()]
        return values + [
            x.gradient() for x in (*parts, *factors, loss)
        ]  # parts that are equal have gradients that are not

    assert shared(both(run, net, policy, **off)) > 20


def test_what_is_computed():
    """Of each type, what differs; equal subgraphs are one from their leaves up."""
    net = Net()
    with eb.options(share=True, split=False), eb.Graph("sufficient", "float64") as graph:
        for tree in TREES:
            net.encode(tree)
    graph.run()
    report = graph.report()
    counts = {name.partition("(")[0]: use.nodes for name, use in report.uses.items()}
    assert counts["Net.leaf"] == 5
    assert counts["Net.compose"] == 5  # of (1, 2), (3, _), both, (2, 1), and the last
    gone = {name.partition("(")[0]: n for name, n in report.shared.items()}
    assert gone == {"Net.leaf": 14, "Net.compose": 8, "add": 18}  # of (2, 1), both sums are those of (1, 2)
    assert "shared with equal ones" in str(report)
    assert "shared" in str(report.by_type())
    assert "shared" in report._repr_html_()


def test_the_gradient_of_one_of_two_that_are_equal():
    """As without: each has what flows to it, a value that nobody reads zero; of a root, what was given."""

    def run(graph):
        with graph:
            x = eb.input(np.array([0.3, -0.2]))
            first, second, third = eb.tanh(x), eb.tanh(x), eb.tanh(x)
            loss = eb.sum(first * 2.0) + eb.sum(second * 5.0)
            same = eb.sum(first * 2.0) + eb.sum(second * 5.0)
        loss.backward()
        return [v.gradient() for v in (first, second, third, x, loss, same)]

    assert shared(both(run)) == 7


def test_gradients_of_views_of_equal_nodes_and_of_what_cells_give_back():
    net = Net()

    @eb.cell
    def given(x, y):
        return x, x * y

    def run(graph):
        with graph:
            a, b = eb.concatenate([net.E[1], net.E[2]]), eb.concatenate([net.E[1], net.E[2]])
            (x, xy), (y, yx) = given(a[:3], b[3:]), given(b[:3], a[3:])
            loss = eb.dot(x, eb.input([1.0, 2.0, 3.0])) + eb.sum(xy) + 3 * eb.sum(y * yx)
        loss.backward()
        return [loss.value()] + [v.gradient() for v in (a, b, a[:3], b[:3], x, y, xy, yx, a[3:])]

    assert shared(both(run, net)) >= 2


@pytest.mark.parametrize("recompute", [False, True])
def test_gradients_of_what_a_part_of_equal_calls_computes(recompute):
    net = Net()
    p = net.model.add_parameters((DIM, DIM), name="p")

    @eb.cell
    def two(unused, x, y):
        return eb.dropout(y, 0.25, 183), eb.affine(p, x, x)

    def gradients(**options):
        with eb.options(recompute=recompute, **options), eb.Graph(policy="none", dtype="float64"):
            x, y, zero = eb.input(np.arange(1.0, 1 + DIM)), eb.input(np.ones(DIM)), eb.zeros(())
            one = eb.scalar(1)
            first = two(one, net.b, zero)
            calls = [first, two(first[0], x, zero)]
            calls += [two(one, x, first[0]) for _ in range(2)]
            calls.append(two(one, y, calls[1][0]))
            found = []
            for part in (part for call in calls for part in call):  # what is asked first decides how others are found
                calls[2][0].backward()
                found.append(part.gradient())
            return found

    shared, alone = gradients(share=True), gradients()
    for found, expected in zip(shared, alone, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_gradients_after_another_way_back():
    def run(graph):
        with graph:
            x = eb.input(np.array([0.3, -0.2]))
            first, second = eb.exp(x), eb.exp(x)
            one, other = eb.sum(first * second), eb.sum(first) + eb.sum(second * 3.0)
        found = []
        for loss in (one, other, one):
            loss.backward()
            found += [first.gradient(), second.gradient(), x.gradient()]
        with graph:
            late = eb.exp(x)
        return [*found, late.gradient(), late.value(), late.gradient(), first.gradient()]

    both(run)


def test_stopped_and_scaled_operands_are_others():
    def run(graph):
        with graph:
            x = eb.input(np.array([0.3, -0.2]))
            y = eb.exp(x)
            seen = [y, eb.stop_gradient(y), eb.scale_gradient(y, 0.5), eb.scale_gradient(y, 0.25)]
            loss = eb.sum([eb.dot(eb.tanh(v), eb.tanh(v)) for v in seen])
        loss.backward()
        return [loss.value(), x.gradient(), y.gradient()]

    assert shared(both(run)) == 4  # the second hyperbolic tangent of each


def test_masks_and_draws_are_others():
    def run(graph):
        with graph:
            x = eb.ones(50)
            masked = [eb.dropout(x, 0.5) for _ in range(3)]
        return eb.forward(masked)

    graph = both(run)
    assert shared(graph) == 0
    assert len({x.tobytes() for x in run(eb.Graph("sufficient", "float64", seed=3))}) == 3


def test_integers_types_and_inputs_tell_nodes_apart():
    net = Net()

    def run(graph):
        with graph:
            x, y = eb.input([1.0, 2.0, 3.0]), eb.input([1.0, 2.0, 3.0])
            found = [eb.lookup(net.E, 1), eb.lookup(net.E, 2), x * 2.0, x * 3.0, y * 2.0]
            found += [eb.leaky_relu(-x, 0.1), eb.leaky_relu(-x, 0.2)]  # -x is one
            found += [eb.sum([x, y]), eb.sum([x, y, x]), eb.sum([y, x]), eb.dot(x, y), eb.dot(y, x)]
            found += [eb.pick(x, 1), eb.pick(x, 2), x[1], x[2]]
        return [np.broadcast_to(v, (DIM,)) for v in eb.forward(found)]

    assert shared(both(run)) == 1


def test_what_has_run_is_not_computed_again():
    net = Net()

    def run(graph):
        found, losses = [], []
        for tree in TREES:
            with graph:
                losses.append(eb.sum(net.encode(tree)[-1][0]))
            found.append(losses[-1].value())
            before = graph.batches
            with graph:
                again = eb.sum(net.encode(tree)[-1][0])
            found.append(again.value())
            assert not graph.options.share or graph.batches == before
        with graph:
            loss = eb.sum(losses) + again
        loss.backward()
        return [*found, net.W.grad(), net.E.grad(), again.gradient(), losses[-1].gradient(), losses[0].gradient()]

    assert shared(both(run, net)) > 40


def test_parts_that_were_split_off_in_between():
    """Ids of nodes have gaps then; tables grow."""
    net = Net()

    @eb.cell
    def step(h, word: int):
        return eb.tanh(net.W[:, :DIM] @ h + net.W @ eb.concatenate([eb.lookup(net.E, word), eb.lookup(net.E, word)]))

    def run(graph):
        found, last = [], []
        for at in range(4):
            with graph:
                for start in (0, 0, 1):
                    h = eb.ones(DIM)
                    for word in range(100):
                        h = step(h, (start + word * at) % 9)
                    last.append(h)
            found += eb.forward(last)
        loss = None
        with graph:
            loss = eb.sum([eb.sum(h) * (k + 1.0) for k, h in enumerate(last)])
        loss.backward()
        return [*found, net.W.grad(), net.E.grad()] + [h.gradient() for h in last]

    graph = both(run, net)
    assert shared(graph) > 400
    assert graph.n > 600


def test_parameters_that_are_written_to_between_runs():
    net = Net()

    def run(graph):
        start = net.W.value()
        with graph:
            first = net.encode((1, 2))[-1][0]
        found = [first.value()]
        net.W.set_value(2 * start)
        with graph:
            second = net.encode((1, 2))[-1][0]
            third = net.encode((1, 2))[-1][0]
        found += [second.value(), third.value(), first.value()]
        net.W.set_value(start)
        with pytest.raises(EdBatchError, match="W changed after the graph had run"):
            (second + third).backward(np.ones(DIM))
        return found

    assert shared(both(run, net)) == 3 + 2


def test_gradients_of_equal_ones_after_parameters_were_written_to():
    net = Net()
    with eb.options(share=True), eb.Graph("sufficient", "float64"):
        first, second = net.encode((1, 2))[-1][0], net.encode((1, 2))[-1][0]
        loss = eb.dot(first, second)
    loss.backward()
    net.W.set_value(net.W.value())
    with pytest.raises(EdBatchError, match="W changed after the graph had run"):
        first.gradient()


def test_arrays_of_expressions():
    net = Net()
    ids = np.array([1, 2, 1, 1, 5, 2, 1])

    def run(graph):
        with graph:
            words = eb.lookup(net.E, ids)
            h, c = net.leaf(ids)
            losses = eb.dot(h * 2.0, words[::-1]) + eb.sum(c, axis=0)
            loss = eb.sum(losses)
        loss.backward()
        return [
            loss.value(),
            losses.value(),
            h.value(),
            net.E.grad(),
            *(h[k].gradient() for k in range(7)),
            words[2].gradient(),
        ]

    assert shared(both(run, net)) > 4 + 4


def test_vertex_functions():
    net = Net()

    @eb.vertex
    def leaf(v):
        v.scatter(net.leaf(v.pull())[0])

    @eb.vertex
    def inner(v):
        v.scatter(net.compose(v.gather(0), v.gather(1))[0])

    graph_of, words = eb.InputGraph.of_tuples([tree for tree in TREES if not isinstance(tree, int)])

    def run(graph):
        with graph:
            out = eb.vertex(leaf, inner)(graph_of, words)
            loss = eb.sum([eb.sum(x) for x in out.scattered])
        loss.backward()
        return [loss.value(), out.scattered.value(), net.W.grad(), out.scattered[0].gradient()]

    assert shared(both(run, net)) > 15


def test_replay_and_plans_that_are_remembered():
    net = Net()

    def plain(tree):
        return eb.sum(net.encode(tree)[-1][0])

    replayed = eb.replay(plain)

    def run_of(function):
        def run(graph):
            with graph:
                losses = [function(tree) for tree in TREES * 3]
                loss = eb.sum([loss * (k + 1.0) for k, loss in enumerate(losses)])
            loss.backward()
            found = [*eb.forward(losses), loss.value(), net.W.grad(), losses[0].gradient(), losses[4].gradient()]
            with graph:
                again = function(TREES[0]) * 2.0 + function((7, 8))
            found += [again.value(), losses[4].gradient()]
            again.backward()
            return [*found, losses[4].gradient(), net.E.grad()]

        return run

    graph = both(run_of(plain), net)
    counts = shared(graph), graph.report().nodes
    for _ in range(3):  # recorded, planned, remembered
        graph = both(run_of(replayed), net)
        assert (shared(graph), graph.report().nodes) == counts
        net.W.set_value(net.W.value() * 0.9)


def test_programs_over_values():
    net = Net()

    async def beam(word):
        h = net.encode((1, 2))[-1][0]
        for _ in range(4):
            scores = await eb.dot(h, net.leaf(word)[0])
            word = 3 + int(scores > 0)
            h = net.compose(h, net.leaf(word)[1])[0]
        return eb.sum(h)

    def run(graph):
        with graph:
            ends = eb.run([beam(word % 3) for word in range(9)])
            loss = eb.sum([end * (k + 1.0) for k, end in enumerate(ends)])
        loss.backward()
        return [loss.value(), net.W.grad(), net.E.grad(), *(end.gradient() for end in ends)]

    assert shared(both(run, net)) > 50
    with eb.options(share=True):
        found = eb.run([beam(word % 3) for word in range(9)])  # without a graph around it, which gives memory back
    np.testing.assert_allclose(*([float(end) for end in found[at : at + 3]] for at in (0, 3)), rtol=1e-6)


def test_what_is_scheduled_and_saved_is_what_will_run(tmp_path):
    net = Net()
    with eb.options(share=True, split=False), eb.Graph("sufficient", "float64") as graph:
        for tree in TREES:
            net.encode(tree)
    assert len(graph.typed_graph()) == 5 + 5 + 8
    whole = graph.typed_graph()
    graph.run()
    assert len(graph.typed_graph()) == len(whole) == graph.report().nodes
    with graph:
        net.encode((8, 8))
    graph.save(tmp_path / "graph.txt")
    assert len(graph.typed_graph()) == len(whole) + 1 + 1 + 1


def test_types_of_expressions_that_others_stand_for():
    with eb.options(share=True), eb.Graph("sufficient") as graph:
        x = eb.input([1.0, 2.0])
        first, second = eb.tanh(x), eb.tanh(x)
    graph.run()
    assert repr(second) == repr(first)
    assert "tanh" in repr(second)


def test_a_graph_keeps_the_option_that_it_was_opened_with():
    with eb.Graph("sufficient") as graph:
        x = eb.ones(2)
        with pytest.warns(UserWarning, match="share=True changed nothing"), eb.options(share=True):
            eb.exp(x), eb.exp(x)
    graph.run()
    assert graph.report().shared == {}


def test_hashes_that_collide(monkeypatch):
    """Nodes are compared by all that they are: with one hash for all, nothing is confused."""
    monkeypatch.setattr(sharing_loops, "_mixed", lambda hashed: 7)
    monkeypatch.setattr("edbatch.runtime.sharing.share_nodes", sharing_loops.share_nodes.py_func)
    test_integers_types_and_inputs_tell_nodes_apart()
    test_what_is_computed()
