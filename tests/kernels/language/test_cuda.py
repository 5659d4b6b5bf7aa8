"""Kernels as CUDA C++: a C++ compiler shows that they mean what NumPy means; see `cuda/test_ops`, too."""

import sys

import numpy as np
import pytest

from edbatch.kernels.cuda.geometry import parts, spread
from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.given import filled
from edbatch.kernels.language.ir import NEXT, SAME, Compute, Kernel, Load, Place, Store
from edbatch.kernels.row_kernels import add_lists
from tests.emulated import libraries
from tests.emulated.arrays import device_address
from tests.emulated.driver import EmulatedDriver, run_thread
from tests.emulated.libraries import reports, with_checks, with_cpp
from tests.kernels import nvrtc
from tests.kernels.language.calls import geometries, launch, module_of, of_function, on_gpu
from tests.kernels.language.random_kernels import Maker
from tests.kernels.language.random_kernels import given as words_of
from tests.kernels.language.test_llvm import check

with_nvrtc = pytest.mark.skipif(sys.platform == "darwin", reason="NVIDIA makes no compiler for macOS")


@with_nvrtc
def test_divisions_and_roots_are_exact():
    ptx, _ = nvrtc.compile_for(80, module_of({f"{name}_": of_function(name) for name in ("sqrt", "divide")}))
    assert "sqrt.rn.ftz.f32" in ptx
    assert "div.rn.ftz.f32" in ptx


@with_cpp
@pytest.mark.parametrize("first", [0, 20, 40])
def test_random_kernels(first):
    """For groups, whatever the number of threads."""
    cases = {}
    for seed in range(first, first + 20):
        dtype = ("float32", "float64")[seed % 2]
        cases[f"kernel{seed}"] = (*Maker(np.random.default_rng(seed), seed % 3 > 0, dtype).make(), seed % 3 > 0)
    handles = EmulatedDriver().load(module_of({name: kernel for name, (kernel, _, _) in cases.items()}), list(cases))
    for handle, (kernel, call, exact) in zip(handles, cases.values(), strict=True):
        for grid, block in geometries(kernel, call):

            def run(kernel, call, handle=handle, grid=grid, block=block):
                words = words_of(kernel, call, device_address)
                launch(handle, call.n, words, grid, block)

            check(kernel, call, run, exact)


@with_checks
@pytest.mark.parametrize("lanes", [1, 32, 64])
def test_lists_are_added_in_place(monkeypatch, lanes):
    """Threads that store nothing read nothing that others write."""
    monkeypatch.setattr(libraries, "checks", True)
    rows, out = np.ones((5, 3), np.float32), np.zeros((2, 3), np.float32)
    kernel, offsets = add_lists("float32"), np.array([0, 2, 5], np.int32)
    places = [(device_address(array), 12, 0) for array in (rows, out)]
    (handle,) = EmulatedDriver().load(module_of({"kernel": kernel}), ["kernel"])
    launch(handle, 2, filled(kernel, [3, device_address(offsets)], places), (2,), (lanes, 64 // lanes))
    assert not reports()
    np.testing.assert_array_equal(out, [[2] * 3, [3] * 3])


def grids(n, size):
    """Those that have a thread for each entry, and more: see `geometry.spread`."""
    found = [spread(n, size)]
    for along, down in [(1, 1), (4, 2), (16, 3), (64, 4)]:
        columns = parts(size, along)
        found += [(parts(n, down) + more, parts(columns, 1 + more), 1 + more, along, down) for more in range(3)]
    return found


@with_cpp
@pytest.mark.parametrize(("n", "size"), [(1, 1), (7, 1), (1, 50), (7, 13), (0, 3)])
def test_every_entry_is_computed_once(n, size):
    """In place, so that an entry computed twice shows; a number a row, and a row for all."""
    make = Builder()
    x, row, shared = make.add(Load(0, (NEXT,))), make.add(Load(1, (SAME,))), make.add(Load(2, (NEXT,)))
    value = make.compute("add", make.compute("add", x, row), shared)
    count = Kernel(1, 0, (Place(),) * 3, make.instructions, (Store(value, 0, (NEXT,)),))
    for geometry in grids(n, size):
        x = np.zeros((n, size), np.float32)
        rows = np.arange(n, dtype=np.float32)[:, None]
        shared = np.arange(size, dtype=np.float32)[None]
        on_gpu(count, n, size, x, rows, shared, geometry=geometry)
        np.testing.assert_array_equal(x, rows + shared)


@with_cpp
def test_positions_beyond_32_bits():
    """The only row and the only entry left are beyond 2^32; the arrays' addresses make up for it."""
    steps = (Load(0, (NEXT,)), Compute("add", (0, 0)))
    kernel = Kernel(1, 0, (Place(), Place()), steps, (Store(1, 1, (NEXT,)),))
    (handle,) = EmulatedDriver().load(module_of({"kernel": kernel}), ["kernel"])
    x, out = np.full(1, 21, np.float32), np.zeros(1, np.float32)
    n = size = 2**32 + 1
    stride = 2**20
    first = (n - 1) * stride + (size - 1)  # row and entry 2^32
    words = filled(kernel, [size], [(array.ctypes.data - 4 * first, 4 * stride, 0) for array in (x, out)])
    block = 2**30, 2**30 % 65535, 2**30 // 65535  # of 4 by 4 threads: row and entry 2^32
    places = (*block, 4, 4, 1, 2**31 - 1, 65535, 65535, 0, 0, 0)
    run_thread(handle, places, n, np.ctypeslib.as_ctypes(words))
    assert out[0] == 42
