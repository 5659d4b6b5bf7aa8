"""The largest entries along an axis: what a stable sort puts first, NaN before all."""

import numpy as np
import pytest

import edbatch as eb


def stable(x, axis):
    """The numbers of all entries, the largest first."""
    found = np.argsort(-np.where(np.isnan(x), 0, x), axis=axis, kind="stable")
    is_number = np.take_along_axis(~np.isnan(x), found, axis)
    return np.take_along_axis(found, np.argsort(is_number, axis=axis, kind="stable"), axis)


def with_ties(random, shape):
    """Numbers of which many are equal, infinite, NaN or zeros of either sign."""
    x = random.integers(-4, 4, shape).astype(float)
    for special in (np.inf, -np.inf, np.nan, -0.0, 0.0):
        x[random.random(shape) < 0.05] = special
    return x


def looks(x, data):
    """Pairs: a value of three axes as it lies, turned round, in part or with gaps; and its numbers."""
    return [
        (x, data), (x.T, data.T), (x[:, ::-1], data[:, ::-1]), (x[1], data[1]), (x[..., 1], data[..., 1]),
        (x[::2, 1:], data[::2, 1:]),
    ]  # fmt: skip


@pytest.mark.parametrize("at", range(6))
def test_along_any_axis_of_what_lies_anyhow(cuda, at):
    """Each look on one device, in one dtype; what is special of these is in the tests of kernels."""
    device, dtype = [("cpu", "float32"), ("cuda", "float32"), ("cpu", "float64")][at % 3]
    random = np.random.default_rng(at)
    batch = [with_ties(random, (3, 5, 4)) for _ in range(4)]
    for axis, k in ((-1, 2), (0, 1), (0, 9)):  # or all there are
        with eb.device(device), eb.Graph(dtype=dtype):
            pairs = [looks(eb.input(x), x)[at] for x in batch]
            found = [eb.top_k(x, min(k, x.shape[axis]), axis) for x, _ in pairs]
            pooled = [eb.k_max_pool(x, min(k, x.shape[axis]), axis) for x, _ in pairs]
            eb.forward([x for pair in found for x in pair] + pooled)
            for (_, data), (values, numbers), pool in zip(pairs, found, pooled, strict=True):
                want = stable(data, axis).take(range(min(k, data.shape[axis])), axis)
                np.testing.assert_array_equal(numbers.value(), want)
                np.testing.assert_array_equal(values.value(), np.take_along_axis(data, want, axis))
                np.testing.assert_array_equal(pool.value(), np.take_along_axis(data, np.sort(want, axis), axis))


@pytest.mark.parametrize(
    ("device", "in_cell", "size", "k"),
    [("cpu", False, 1, 1), ("cpu", True, 5, 5), ("cuda", False, 33, 2), ("cpu", False, 64, 40)],
)
def test_gradients_go_to_the_largest(cuda, device, in_cell, size, k):
    random = np.random.default_rng(size)
    data = random.integers(-4, 4, (2, 3, size)).astype(float)
    weights = random.normal(size=(3, k))

    def both(x):
        return eb.sum(eb.top_k(x, k)[0] * weights), eb.sum(eb.k_max_pool(x.T, k, 0).T * weights)

    for number in range(2):
        with eb.device(device), eb.Graph(dtype="float64"):
            xs = [eb.input(x) for x in data]
            eb.sum([(eb.cell(both) if in_cell else both)(x)[number] for x in xs]).backward()
            for x, of_x in zip(xs, data, strict=True):
                want, places = np.zeros((3, size)), stable(of_x, 1)[:, :k]
                np.put_along_axis(want, np.sort(places, 1) if number else places, weights, 1)
                np.testing.assert_array_equal(x.gradient(), want)


@pytest.mark.parametrize(
    ("device", "size", "dtype"), [("cpu", 100_000, "float32"), ("cpu", 100_000, "float64"), ("cuda", 2000, "float32")]
)
def test_many_are_sorted(cuda, device, size, dtype):
    """In as many steps as a sort takes: all of them, and some of them."""
    random = np.random.default_rng(0)
    data = random.normal(size=size).astype(dtype)
    for x in (data, data.round(1), np.sort(data), -np.sort(-data)):
        with eb.device(device), eb.Graph(dtype=dtype):
            of_x = eb.input(x)
            numbers, pooled = [eb.top_k(of_x, k)[1] for k in (100, size)], eb.k_max_pool(of_x, 100)
            eb.forward([*numbers, pooled])
            want = stable(x, 0)
            np.testing.assert_array_equal(numbers[0].value(), want[:100])
            np.testing.assert_array_equal(numbers[1].value(), want)
            np.testing.assert_array_equal(pooled.value(), x[np.sort(want[:100])])
