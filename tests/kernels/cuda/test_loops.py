"""The functions of `CudaBackend` against those of the same names that the CPU has."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import edbatch as eb
from edbatch.kernels.cpu.backend import NumPyBackend
from tests.training.rules import RULES, operands, updated

CPU = NumPyBackend()
seeds = st.integers(0, 10**6)
counts = st.integers(0, 9)
dtypes = st.sampled_from([np.float32, np.float64])


ORDERS = ["rows", "columns", "part", "turned"]


def stored(backend, array, order):
    """An array of the device in one of several layouts in memory."""
    if order == "part":
        wide = np.concatenate([array, array], axis=-1)
        return backend.from_host(wide, "C")[..., array.shape[-1] :]
    if order == "turned":
        return backend.from_host(np.ascontiguousarray(array[..., ::-1]), "C")[..., ::-1]
    if order == "columns":
        return backend.from_host(np.ascontiguousarray(np.moveaxis(array, -1, 1)), "C").swapaxes(1, -1)
    return backend.from_host(array, "C")


@given(counts, st.integers(1, 3), st.integers(1, 40), *[st.sampled_from(ORDERS)] * 2, dtypes, seeds)
def test_all_rows_are_added(cuda, n, rows, columns, order, order_of_whole, dtype, seed):
    random = np.random.default_rng(seed)
    x, whole = random.normal(size=(n, rows, columns)).astype(dtype), random.normal(size=(rows, columns)).astype(dtype)
    target = stored(cuda.backend, whole[None], order_of_whole)[0]
    cuda.backend.add_all(stored(cuda.backend, x, order), target)
    want = whole + x.astype(np.float64).sum(axis=0)
    np.testing.assert_allclose(cuda.backend.to_host(target), want, atol=1e-5 if dtype == np.float32 else 1e-12)


@given(st.integers(1, 9), st.integers(1, 3), st.integers(1, 9), st.sampled_from(ORDERS), dtypes, seeds)
def test_rows_of_one_index_are_summed(cuda, n, rows, columns, order, dtype, seed):
    random = np.random.default_rng(seed)
    x, indices = random.normal(size=(n, rows, columns)).astype(dtype), random.integers(0, 6, n)
    if seed % 3 == 0:
        indices = np.sort(random.permutation(20)[:n])  # nothing to sum
    found, got = cuda.backend.sum_equal(indices, stored(cuda.backend, x, order))
    want_found, want = CPU.sum_equal(indices, x)
    assert found.dtype == want_found.dtype == np.int64
    np.testing.assert_array_equal(found, want_found)
    # The CPU adds up float32 in float64, and rounds once; a GPU does not.
    np.testing.assert_allclose(cuda.backend.to_host(got), want, rtol=0, atol=3e-6 if dtype == np.float32 else 1e-14)


@given(st.integers(1, 5), st.integers(1, 40), st.booleans(), dtypes, seeds)
def test_prepared_kernels(cuda, k, width, listed, dtype, seed):
    rule, rows = RULES["Momentum"], np.random.default_rng(seed).permutation(6)[:k] if listed else np.arange(k)
    given = operands(rule, 6, width, rows, dtype, seed)
    mine, theirs = (
        updated(backend, rule, *given[:3], rows if listed else None, given[3]) for backend in (cuda.backend, CPU)
    )
    for got, want in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=3e-6 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("reduce", [eb.sum, eb.mean, eb.maximum, eb.logsumexp])
def test_lists_of_many_numbers(cuda, reduce):
    """As losses are added up: by many threads, and to the same bits each time."""
    values = np.random.default_rng(0).normal(size=(3000, 3)).astype(np.float32)
    wide = values.astype(np.float64)
    wanted = {eb.sum: wide.sum(0), eb.mean: wide.mean(0), eb.maximum: wide.max(0)}
    found = []
    for _ in range(2):
        with cuda, eb.Graph(policy="sufficient"):
            found.append(reduce([eb.input(value) for value in values]).value())
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], wanted.get(reduce, np.log(np.exp(wide).sum(0))), rtol=1e-5)
