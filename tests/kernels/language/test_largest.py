"""Kernels that store the numbers of the largest entries, on both devices: what the interpreter makes of them."""

import numpy as np
import pytest

from edbatch.kernels.language.ir import NEXT, RUN, Kernel, Load, Place, StoreLargest
from tests.emulated.arrays import device_address
from tests.emulated.driver import EmulatedDriver
from tests.kernels.language.calls import geometries, launch, module_of, on_cpu
from tests.kernels.language.interpreter import Call, Rows
from tests.kernels.language.random_kernels import given
from tests.kernels.language.test_llvm import check


def on_gpu(kernel, call):
    (handle,) = EmulatedDriver().load(module_of({"kernel": kernel}), ["kernel"])
    words = given(kernel, call, device_address)
    for grid, block in geometries(kernel, call):
        launch(handle, call.n, words, grid, block)


@pytest.mark.parametrize("run", [on_cpu, on_gpu])
@pytest.mark.parametrize("is_next", [False, True])
@pytest.mark.parametrize(("count", "size", "dtype"), [(1, 1, "float32"), (2, 7, "float64"), (40, 300, "float32")])
def test_rows_of_groups(run, dtype, is_next, count, size):
    """Entries that follow one another, or whose neighbours are of other groups, from the last to the first."""
    random = np.random.default_rng(size)
    n, groups = 3, 4
    x = random.integers(-9, 9, n * groups * size).astype(dtype)
    for special in (np.nan, np.inf, -np.inf, -0.0):
        x[random.random(x.size) < 0.05] = special
    out = np.full(n * groups * count, 7, dtype)
    kind = (RUN, NEXT) if is_next else (NEXT, RUN)
    kernel = Kernel(1, 1, (Place(), Place()), (Load(0, kind, 0),), (StoreLargest(0, 1, kind, count=1),), dtype=dtype)
    strides = [size, count] if is_next else [-groups, groups]
    column = 0 if is_next else groups * (size - 1)
    places = [Rows(x, 0, groups * size), Rows(out, 0, groups * count)]
    check(kernel, Call(n, [groups, size], places, strides, columns=[column, count]), run, exact=True)
