"""Arrays of expressions: choosing, joining, reading, what is beside them in a graph, and what becomes of them."""

import weakref

import numpy as np
import pytest

import edbatch as eb
from tests.graph.array_uses import Model
from tests.interrupts import Interrupt

NOTHING = []


class TestChoosing:
    """Indices, joins and iteration of arrays."""

    X = np.arange(12.0).reshape(6, 2)

    @pytest.mark.parametrize(
        "key",
        [
            slice(None), slice(1, 4), slice(None, None, 2), slice(None, None, -1), slice(4, 1), slice(-2, None), ...,
            [3, 0, 3, -1], NOTHING, np.array([2, 2]), np.array([True, False, True, True, False, False]), [False] * 6,
        ],
        ids=str,
    )  # fmt: skip
    def test_some_entries(self, key):
        with eb.Graph():
            xs = eb.array(self.X)
            for array, values in ((xs, self.X), (xs * 2, self.X * 2), (xs[::-1][:, ::-1], self.X[::-1, ::-1])):
                expected = values[np.array(key, np.int64) if key is NOTHING else key]
                np.testing.assert_array_equal(array[key].value(), expected)
                np.testing.assert_array_equal((array[key] + 1).value(), expected + 1)

    def test_one_entry(self):
        with eb.Graph() as graph:
            xs = eb.array(self.X)
            for array, values in ((xs, self.X), (xs * 2, self.X * 2), (xs[::-1], self.X[::-1])):
                for at in (0, 3, -1, np.int64(2), np.array(4)):
                    one = array[at]
                    assert one.__class__ is eb.Expression
                    assert one.graph is graph
                    np.testing.assert_array_equal(one.value(), values[at])
                assert [x.value().tolist() for x in array] == values.tolist()

    def test_entries_of_entries(self):
        with eb.Graph():
            xs = eb.array(self.X)
            np.testing.assert_array_equal(xs[1:, 0].value(), self.X[1:, 0])
            np.testing.assert_array_equal(xs[[0, 2], ::-1].value(), self.X[[0, 2], ::-1])
            np.testing.assert_array_equal(xs[2, 1].value(), self.X[2, 1])
            np.testing.assert_array_equal(xs[:, [1, 1, 0]].value(), self.X[:, [1, 1, 0]])
            np.testing.assert_array_equal(xs[:, None].value(), self.X[:, None])

    def test_joined(self):
        W = eb.ParameterCollection().add_parameters(2, init=[8, 9])
        with eb.Graph():
            xs = eb.array(self.X)
            one, rows = eb.input([5.0, 6.0]), eb.input([[1.0, 2.0], [3.0, 4.0]])
            joined = eb.array([xs[4:], one, W, [0.0, 1.0] * np.ones(2), *rows, xs[:0], xs[1:5:2, ::-1]])
            expected = [[8, 9], [10, 11], [5, 6], [8, 9], [0, 1], [1, 2], [3, 4], [3, 2], [7, 6]]
            np.testing.assert_array_equal(joined.value(), expected)
            np.testing.assert_array_equal(eb.array(rows).value(), rows.value())
            np.testing.assert_array_equal(eb.array(range(3)).value(), [0, 1, 2])
            # Each entry is seen through a view of its own, and through one more.
            np.testing.assert_array_equal((joined[:, ::-1] * 2).value(), np.array(expected)[:, ::-1] * 2.0)
            np.testing.assert_array_equal(joined[::-1, 1:].value(), np.array(expected)[::-1, 1:])
            np.testing.assert_array_equal(joined[3].value(), expected[3])


def test_repeated_entries_add_their_gradients():
    model = Model()
    words = np.array([2, 2, 5, 2])
    with eb.Graph(dtype="float64"):
        xs = eb.lookup(model.table, words)
        again = xs[[0, 0, 2]]
        loss = eb.sum(eb.sum(xs * xs)) + eb.sum(eb.sum(again))
    loss.backward()
    table = model.table.value()
    expected = np.zeros((8, 8))
    for word in words:
        expected[word] += 2 * table[word]
    expected[2] += 2
    expected[5] += 1
    np.testing.assert_allclose(model.table.grad(), expected, rtol=1e-14)
    np.testing.assert_allclose(xs.gradient(), 2 * table[words] + np.array([2, 0, 1, 0])[:, None], rtol=1e-14)
    np.testing.assert_allclose(again.gradient(), xs.gradient()[[0, 0, 2]], rtol=0)


def test_a_graph_goes_with_its_last_array():
    with eb.Graph() as graph:
        xs = eb.array(np.ones((3, 2))) * 2
    gone = weakref.ref(graph)
    del graph
    assert gone() is not None
    xs.value()
    del xs
    assert gone() is None


def test_arrays_are_lists_where_a_list_is_taken():
    X = np.random.default_rng(0).normal(size=(5, 3))
    with eb.Graph(dtype="float64"):
        xs, query = eb.array(X), eb.input(X[1])
        lists = list(xs)
        pairs = [
            (eb.sum(xs), eb.sum(lists)), (xs.sum(), eb.sum(lists)), (eb.mean(xs), eb.mean(lists)),
            (eb.max(xs), eb.max(lists)), (eb.maximum(xs), eb.maximum(lists)), (eb.logsumexp(xs), eb.logsumexp(lists)),
            (eb.stack(xs), eb.stack(lists)), (eb.concatenate(xs), eb.concatenate(lists)),
            (eb.softmax(xs)[2], eb.softmax(lists[2])), (eb.softmax(list(xs[::-1]))[2], eb.softmax(lists[::-1])[2]),
            (eb.attention(query, xs, xs), eb.attention(query, lists, lists)),
            (eb.attention(xs, xs, xs[::-1])[3], eb.attention(xs[3], lists, lists[::-1])),
            (eb.weighted_sum(xs[:, 0], xs), eb.weighted_sum([x[0] for x in lists], lists)),
            (eb.dots(query, xs)[4], eb.dots(query, lists)[4]),
            (eb.attention(query, eb.ExpressionList(xs), eb.ExpressionList(xs)), eb.attention(query, lists, lists)),
        ]  # fmt: skip
        for one, other in pairs:
            assert one.__class__ is eb.Expression
            np.testing.assert_array_equal(one.value(), other.value())


def test_an_interrupt_leaves_a_graph_that_is_right_or_says_that_it_is_damaged():
    X, chosen = np.arange(140.0).reshape(70, 2), np.arange(70) < 34
    outcomes, at = set(), 1
    while "done" not in outcomes:
        with eb.Graph("sufficient", "float64"):
            xs = eb.array(X)

            def record(xs=xs):
                ys = (xs * 2)[chosen] + xs[1:35, ::-1]
                eb.sum(eb.array([ys, xs]))
                assert len(ys.ids) == 34

            interrupted = Interrupt(at).run(record)
            try:
                assert eb.sum(xs * 3).value().tolist() == (3 * X.sum(0)).tolist()
                outcomes.add("right" if interrupted else "done")
            except eb.EdBatchError as error:
                outcomes.add("damaged" if "damaged" in str(error) else str(error))
        at += 3
    assert {"right", "done"} <= outcomes <= {"right", "done", "damaged"}


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint64, np.int32])
def test_integers_of_any_size(dtype):
    table = eb.ParameterCollection().add_lookup_parameters((200, 2), init=np.arange(400).reshape(200, 2))
    with eb.Graph():
        np.testing.assert_array_equal(eb.lookup(table, np.array([100, 3], dtype)).value(), [[200, 201], [6, 7]])
        most = int(np.iinfo(dtype).max)
        if most >= 200:
            with pytest.raises(eb.EdBatchError, match=f"{most} (of entry 1 is out of range|is too large)"):
                eb.lookup(table, np.array([0, most], dtype))
        if dtype in (np.int8, np.int32):
            np.testing.assert_array_equal(eb.lookup(table, np.array([-100] * 40, dtype)).value(), [[200, 201]] * 40)
