"""What is wrong with an array of expressions is said by one clear error, with the place."""

import numpy as np
import pytest

import edbatch as eb
from tests.graph.array_uses import Model


def test_of_choosing():
    with eb.Graph():
        xs = eb.array(np.ones((3, 2)))
        with pytest.raises(eb.EdBatchError, match=r"^entries 3 of 3 expressions: index 3 is out of range"):
            xs[3]
        with pytest.raises(eb.EdBatchError, match=r"index -4 is out of range for 3 entries"):
            xs[[0, -4]]
        for key in (1.5, "a", [True, False], np.ones((3, 2), np.int64), None, [[0], [1, 2]]):
            with pytest.raises(eb.EdBatchError, match=r"of 3 expressions: expected an integer, a slice, a list"):
                xs[key]
        with pytest.raises(eb.EdBatchError, match=r"of 3 expressions: slice"):
            xs["a":2]
        with pytest.raises(eb.EdBatchError, match=r"index 2 is out of range for 2 entries"):
            xs[:, 2]


def test_of_lengths():
    with eb.Graph():
        xs, ys = eb.array(np.ones((3, 2))), eb.array(np.ones((4, 2)))
        for call in (lambda: xs + ys, lambda: eb.where(xs, ys, xs), lambda: eb.stack([xs, ys])):
            with pytest.raises(
                eb.EdBatchError, match=r"operand 1 is an array of expressions: expected 3 entries, got 4"
            ):
                call()
        with pytest.raises(eb.EdBatchError, match=r"expected an integer for each of 3 entries, got 4"):
            eb.pick(xs, np.zeros(4, np.int64))


def test_of_graphs():
    with eb.Graph():
        xs = eb.array(np.ones((3, 2)))
    with eb.Graph():
        ys, one = eb.array(np.ones((3, 2))), eb.ones(2)
        for other in (ys, one):
            with pytest.raises(eb.EdBatchError, match=r"operand 1 is an expression of another graph"):
                xs * other
            with pytest.raises(eb.EdBatchError, match=r"part 1 is of another graph"):
                eb.array([xs, other])
        with pytest.raises(eb.EdBatchError, match=r"value 1: an expression of another graph"):
            eb.forward([one, xs])


def test_of_shapes():
    with eb.Graph():
        xs = eb.array(np.ones((3, 2)))
        with pytest.raises(eb.EdBatchError, match=r"array: expected parts of one shape, got \[2\] at 0 and \[3\] at 1"):
            eb.array([xs, eb.ones(3)])
        with pytest.raises(eb.EdBatchError, match=r"add\(\[2\], \[3\]\): shapes do not broadcast"):
            xs + eb.ones(3)


def test_of_integers():
    model = Model("float32")

    @eb.cell
    def cell(x, i: int):
        return eb.pick(x, i)

    @eb.cell
    def loss(x, i: int):
        return eb.cross_entropy(x, i)

    with eb.Graph():
        xs = eb.array(np.ones((3, 2)))
        wrong, negative = np.array([0, 1, 5]), np.array([0, -1, 1])
        cases = [
            lambda: eb.pick(xs, wrong), lambda: eb.lookup(model.table, wrong + 5), lambda: cell(xs, wrong),
            lambda: eb.cross_entropy(xs, wrong), lambda: eb.pick(model.b, wrong + 5),
        ]  # fmt: skip
        for case in cases:
            with pytest.raises(eb.EdBatchError, match=r"the integer (5|10) of entry 2 is"):
                case()
        for case in (
            lambda: eb.cross_entropy(xs, negative),
            lambda: eb.hinge(xs, negative),
            lambda: loss(xs, negative),
        ):
            with pytest.raises(
                eb.EdBatchError, match=r"the integer -1 of entry 1 is no label, expected one in \[0, 2\)"
            ):
                case()
        with pytest.raises(eb.EdBatchError, match=r"expected an integer"):
            eb.pick(xs, np.array([0.0, 1.0, 1.0]))
        with pytest.raises(eb.EdBatchError, match=r"argument i: expected an integer, got ndarray"):
            cell(xs, np.array([0.0, 1.0, 1.0]))


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


def test_of_numbers():
    with eb.Graph():
        xs = eb.array(np.ones((3, 2)))
        with pytest.raises(eb.EdBatchError, match=r"^backward of ExpressionArray\(3 expr.*eb\.sum"):
            xs.backward()
        for call in (float, int, lambda x: x.item()):
            with pytest.raises(eb.EdBatchError, match=r"as a number: expected one expression"):
                call(xs[:, 0])
        with pytest.raises(eb.EdBatchError, match=r"^truth of ExpressionArray"):
            bool(xs)
        with pytest.raises(eb.EdBatchError, match=r"is no array; expected its .value\(\)"):
            np.asarray(xs)


def test_of_cells():
    @eb.cell
    def several(x):
        return eb.array([x, x])

    with eb.Graph(), pytest.raises(eb.EdBatchError, match=r"several: it returns an array of expressions"):
        several(eb.ones(2))


def test_of_what_is_listed():
    with eb.Graph():
        xs, numbers = eb.array(np.ones((3, 2))), eb.array(np.ones(3))
        with pytest.raises(eb.EdBatchError, match=r"expected integers, np\.array\(labels\), or eb\.input"):
            eb.cross_entropy(xs, [0.0, 1.0, 1.0])
        with pytest.raises(eb.EdBatchError, match=r"softmax\(\[\]\): a number has no axis; .* list\(xs\)"):
            eb.softmax(numbers)
        assert len(eb.softmax(list(numbers))) == 3


def test_arrays_of_other_libraries():
    class Foreign:
        """As PyTorch's tensors are."""

        def __init__(self, numbers):
            self.__dlpack__, self.__dlpack_device__ = numbers.__dlpack__, numbers.__dlpack_device__

    with eb.Graph():
        np.testing.assert_array_equal(eb.array(Foreign(np.eye(3, 2))).value(), np.eye(3, 2))
