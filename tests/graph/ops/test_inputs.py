"""What enters a graph."""

import numpy as np
import pytest

import edbatch as eb


def test_a_scalar_is_no_constant_of_equal_value():
    """The gradient of a scalar is its own, whatever numbers of that value the program has."""
    with eb.Graph(dtype="float64"):
        x, y = eb.scalar(2), eb.scalar(2)
        loss = x * 2 * y * y + 2 * eb.square(x)
    loss.backward()
    np.testing.assert_allclose([x.gradient(), y.gradient()], [8 + 8, 16])


def test_several_rows_are_an_index_of_the_table():
    table = eb.ParameterCollection().add_lookup_parameters((3, 2), name="E")
    with eb.Graph(policy="none"):
        with pytest.raises(eb.EdBatchError, match=r"got list; several rows, as a matrix, are E\[\[1, 2\]\]"):
            eb.lookup(table, [1, 2])
        assert table[[1, 2]].shape == (2, 2)


TABLE = np.arange(24.0).reshape(3, 4, 2)


@pytest.mark.parametrize(
    "key",
    [(0, 1), (2, -1, 1), (-1, slice(1, 3)), (1, ..., 0), (1, [0, 2]), (np.int64(1), None), (1,), [0, 1]],
)
def test_an_index_of_a_table_is_that_of_an_array(key):
    table = eb.ParameterCollection().add_lookup_parameters(TABLE.shape, init=TABLE)
    with eb.Graph(policy="sufficient"):
        part = table[key]
        loss = eb.sum(eb.square(part))
    loss.backward()
    np.testing.assert_array_equal(part.value(), TABLE[key])
    want = np.zeros_like(TABLE)
    want[key] = 2 * TABLE[key]
    np.testing.assert_array_equal(table.grad(), want)


def test_an_index_of_a_table_begins_in_a_cell_with_a_number():
    table = eb.ParameterCollection().add_lookup_parameters(TABLE.shape, init=TABLE)

    @eb.cell
    def entry(row: int):
        return table[row, 1]

    with eb.Graph():
        np.testing.assert_array_equal(entry(2).value(), TABLE[2, 1])


@pytest.mark.parametrize("key", [(), ([0, 1], 1), (slice(0, 2), 1), (..., 0), (None, 0), ((0, 1), 1)])
def test_other_indices_of_a_table_say_what_to_write(key):
    table = eb.ParameterCollection().add_lookup_parameters(TABLE.shape, name="E")
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=r"number of one row.*E\[\[0, 1\]\].*eb.parameter\(E\)"):
        table[key]


def test_integers_beyond_64_bits_are_refused():
    with eb.Graph():
        for value in ([1, 2**70], [[-(2**70)]], 2**64):
            with pytest.raises(eb.EdBatchError, match="integers beyond 64 bits"):
                eb.input(value)
        assert eb.input([2**64 - 1]).value() == np.float32(2**64)


class Kept:
    """A tensor that gives no numbers away, as one of PyTorch that requires a gradient."""

    def __array__(self, *_, **__):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad")


def test_what_gives_no_numbers_is_refused():
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=r"input: expected an array of numbers .*requires grad"):
        eb.input(Kept())


def test_tensors_with_gradients_are_refused():
    torch = pytest.importorskip("torch")
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=r"input: expected an array of numbers .*detach"):
        eb.input(torch.ones(3, requires_grad=True))
