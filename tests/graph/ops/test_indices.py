"""Entries by their number: ties, what is not a number, indices of any kind, and what is refused."""

import numpy as np
import pytest

import edbatch as eb

NAN = np.nan
ROWS = [[1.0, 3.0, 3.0], [NAN, 2.0, NAN], [-np.inf, -np.inf, -np.inf], [0.0, -0.0, -1.0]]


@pytest.mark.parametrize("axis", [None, 0, 1, -1, -2])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_of_equal_entries_as_numpy(name, axis):
    with eb.Graph():
        x = eb.input(ROWS)
        got = getattr(eb, name)(x, axis, keepdims=True).value()
    np.testing.assert_array_equal(got, getattr(np, name)(np.array(ROWS), axis, keepdims=True))


def test_a_single_entry_is_the_first():
    with eb.Graph():
        x = eb.input([[0.0], [5.0]])
        assert eb.forward([eb.argmax(x, 1), eb.argmin(x[:1])])[0].tolist() == [0, 0]
        assert eb.argmax(eb.scalar(3)).value() == 0


def test_what_is_not_there_is_not_a_number():
    with eb.Graph():
        x = eb.input([1.0, 2.0, 3.0])
        y = eb.gather(x, eb.input([-1.0, 2.9, 3.0, np.inf, NAN, -0.5, 1e30]), 0)
        eb.sum(y).backward()
        np.testing.assert_array_equal(y.value(), [NAN, 3, NAN, NAN, NAN, NAN, NAN])
        np.testing.assert_array_equal(x.gradient(), [0, 0, 1])
        assert eb.one_hot(eb.input([3.0, -1.0, NAN]), 3).value().tolist() == [[0] * 3] * 3
        assert eb.scatter(x, eb.input([5.0, 1.0]), eb.ones(2), 0).value().tolist() == [1, 1, 3]


def test_many_indices_take_as_many_steps():
    """Not as many as there are entries times indices; sums are taken in order, so that they are those of NumPy."""
    size, random = 100_000, np.random.default_rng(0)
    x, values, weights = random.normal(size=(3, size)).astype(np.float32)
    index = random.integers(-size, size, size)
    index[::7] = index[0]
    with eb.Graph():
        of_x, of_values = eb.input(x), eb.input(values)
        gathered, put, added = (
            eb.gather(of_x, index, 0),
            eb.scatter(of_x, index, of_values, 0),
            eb.scatter_add(of_x, index, of_values, 0),
        )
        eb.sum(gathered * weights).backward()
        of_gather = of_x.gradient()
        eb.sum(put * weights).backward()
        of_scatter = of_x.gradient(), of_values.gradient()
        eb.sum(added * weights).backward()
        of_scatter_add = of_x.gradient(), of_values.gradient()
        found = eb.forward([gathered, put, added])
    summed, written, at = np.zeros_like(x), x.copy(), np.zeros(size, int)
    np.add.at(summed, index, weights)
    written[index] = values
    at[index] = np.arange(size)
    last = np.zeros(size, np.float32)
    last[at[index]] = weights[index]
    total = np.zeros_like(x)
    np.add.at(total, index, values)
    for got, want in zip(found, (x[index], written, x + total), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(of_gather, summed)
    np.testing.assert_array_equal(of_scatter, (np.where(np.isin(np.arange(size), index % size), 0, weights), last))
    np.testing.assert_array_equal(of_scatter_add, (weights, weights[index]))


def test_the_last_of_several_values_stays():
    with eb.Graph():
        x, values = eb.input([1.0, 2.0, 3.0]), eb.input([7.0, 8.0, 9.0])
        y = eb.scatter(x, [1, 1, 0], values, 0)
        eb.sum(y * eb.input([1.0, 10.0, 100.0])).backward()
        assert y.value().tolist() == [9, 8, 3]
        assert x.gradient().tolist() == [0, 0, 100]
        assert values.gradient().tolist() == [0, 10, 1]


@pytest.mark.parametrize("size", [1, 31, 32, 33, 64, 65, 1100])
def test_sums_of_all_entries_up_to_each(size):
    data = np.random.default_rng(size).normal(size=(2, size, 2))
    weights = np.random.default_rng(1).normal(size=data.shape)
    with eb.Graph(dtype="float64"):
        x = eb.input(data)
        y = eb.cumsum(x, -2)
        eb.sum(y * eb.input(weights)).backward()
        np.testing.assert_allclose(y.value(), data.cumsum(1), rtol=1e-10, atol=1e-12)
        want = np.flip(np.flip(weights, 1).cumsum(1), 1)
        np.testing.assert_allclose(x.gradient(), want, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint64"])
def test_indices_of_few_bits_into_more_entries_than_these_count(dtype):
    numbers = np.array([3, 100], dtype)
    values = np.arange(70_000.0)
    with eb.Graph():
        x = eb.input(values)
        found = [eb.gather(x, numbers, 0), x[numbers], eb.argmax(eb.one_hot(numbers, 70_000), 1)]
        found.append(eb.scatter_add(x, numbers, -eb.gather(x, numbers, 0), 0)[np.array([3, 4, 100])])
        got = eb.forward(found)
    for array, want in zip(got, [[3, 100], [3, 100], [3, 100], [0, 4, 0]], strict=True):
        assert array.tolist() == want
