"""Jobs that threads share: right, and with the same bits, for every number of threads."""

import threading

import numpy as np
import pytest

from edbatch.errors import EdBatchError
from edbatch.kernels.cpu import cores, emitter, partitions, thread_pool
from edbatch.kernels.cpu.backend import NumPyBackend
from edbatch.kernels.tables import Matrix, Sizes
from tests.threads import THREADS, bits_by_threads

pytestmark = pytest.mark.cpu


def random_matrix(random, rows, columns, dtype, gap):
    return random.standard_normal((rows, columns + gap)).astype(dtype)


def product(m, n, k, turned, add, dtype):
    """A function that multiplies, and what it should find."""
    random = np.random.default_rng(m + n + k)
    x = random_matrix(random, m, k, dtype, 3)
    stored = random_matrix(random, *((n, k) if turned else (k, n)), dtype, 2)
    out = random_matrix(random, m, n, dtype, 5)
    w = stored[:, :k].T if turned else stored[:, :n]
    want = x[:, :k].astype(np.float64) @ w + (out[:, :n] if add else 0)
    want = np.concatenate([want, out[:, n:]], 1)  # nothing else is written to

    def run():
        got = out.copy()
        matrices = (Matrix(of.ctypes.data, of.shape[1], at) for of, at in ((x, 0), (stored, turned), (got, 0)))
        emitter.multiply_rows(thread_pool.device(), out.itemsize, Sizes(m, n, k), *matrices, add)
        return [got]

    return run, want


SIZES = [
    (64, 256, 640),
    (64, 1280, 256),
    (65, 1037, 77),
    (1000, 96, 50),
    (3000, 50, 33),
    (16, 256, 1300),
    (2, 2100, 600),
]


@pytest.mark.parametrize(("dtype", "turned", "add"), [(np.float32, 0, 1), (np.float32, 1, 0), (np.float64, 1, 1)])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_products(m, n, k, turned, add, dtype):
    assert partitions.product_parts(Sizes(m, n, k), np.dtype(dtype).itemsize) > 1
    run, want = product(m, n, k, turned, add, dtype)
    found = bits_by_threads(run)
    unit = 1 if dtype == np.float32 else 1e-8
    np.testing.assert_allclose(run()[0], want, rtol=1e-4 * unit, atol=1e-4 * unit)
    assert len(set(found)) == 1


@pytest.mark.parametrize(("dtype", "fresh"), [(np.float32, True), (np.float64, False)])
@pytest.mark.parametrize(
    ("k", "m", "n"), [(1243, 256, 100), (300, 5, 2048), (64, 1280, 256), (3000, 64, 17), (1, 2000, 1500)]
)
def test_products_of_gradients(k, m, n, fresh, dtype):
    random = np.random.default_rng(k)
    left, right = random_matrix(random, k, m, dtype, 4)[:, 2 : m + 2], random_matrix(random, k, n, dtype, 0)
    before = np.asfortranarray(random_matrix(random, m, n, dtype, 0)) * (not fresh)

    def run():
        whole = before.copy(order="F")
        NumPyBackend().add_product(left, right, whole, fresh)
        return [whole]

    found = bits_by_threads(run)
    want = left.astype(np.float64).T @ right + before
    np.testing.assert_allclose(
        run()[0], want, rtol=1e-4 if dtype == np.float32 else 1e-11, atol=1e-3 if dtype == np.float32 else 1e-11
    )
    assert len(set(found)) == 1


def test_a_closed_pool_leaves_no_threads():
    thread_pool.close()
    before = threading.active_count()
    with thread_pool.Computing(3):
        assert threading.active_count() == before + 2
    thread_pool.close()
    assert threading.active_count() == before


def test_cores_that_a_control_group_is_granted(tmp_path):
    assert cores.granted(tmp_path) == []
    (tmp_path / "cpu.max").write_text("250000 100000\n")
    assert cores.granted(tmp_path) == [2]
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert cores.granted(tmp_path) == []
    (tmp_path / "cpu.max").unlink()
    (tmp_path / "cpu").mkdir()
    for name, value in (("quota", 300000), ("period", 100000)):
        (tmp_path / "cpu" / f"cpu.cfs_{name}_us").write_text(f"{value}\n")
    assert cores.granted(tmp_path) == [3]
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    assert cores.granted(tmp_path) == []


def test_the_environment_says_how_many(monkeypatch):
    monkeypatch.setattr(thread_pool, "_default", None)
    monkeypatch.setenv("EDBATCH_THREADS", "3")
    assert thread_pool.number(0) == 3
    assert thread_pool.number(2) == 2
    for wrong in ("0", "-1", "many", "1.5"):
        monkeypatch.setenv("EDBATCH_THREADS", wrong)
        with pytest.raises(EdBatchError, match=r"EDBATCH_THREADS: threads=.*expected an integer of at least 1"):
            cores.asked()
    assert THREADS == (1, 2, 3, 4)
