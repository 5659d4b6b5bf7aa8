"""Update rules in CUDA C++: NVRTC compiles them for every GPU, and on the CPU they mean what they mean on Numba."""

import itertools
import re
import sys

import numpy as np
import pytest

from edbatch.kernels import update
from edbatch.kernels.cuda.geometry import spread
from edbatch.kernels.cuda.update import module_of
from edbatch.kernels.rule import Rule
from tests.emulated.driver import EmulatedDriver, run_thread, with_cpp
from tests.kernels import nvrtc
from tests.kernels.updates import RULES, expected, operands

with_nvrtc = pytest.mark.skipif(sys.platform == "darwin", reason="NVIDIA makes no compiler for macOS")

KINDS = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}


def kernel_of(name, dtype):
    """A rule's kernel, on the CPU."""
    driver = EmulatedDriver()
    names = [f"{rule}_{kind}" for rule in RULES for kind in KINDS.values()]
    return driver, driver.load(module_of(RULES), names)[names.index(f"{name}_{KINDS[dtype]}")]


def on_cuda(name, p, g, state, rows, constants):
    """As `kernels.update.update`."""
    driver, kernel = kernel_of(name, p.dtype)
    x, y, z, *block = spread(*g.shape)
    driver.run(kernel, (x, y, z), block, *g.shape, rows, p, g, state, state.shape[1], *map(p.dtype.type, constants))


@with_nvrtc
@pytest.mark.parametrize("capability", [70, 80, 90, 100])
def test_nvrtc_compiles(capability):
    if capability not in nvrtc.supported():
        pytest.skip(f"this NVRTC does not compile for sm_{capability}")
    ptx, cubin = nvrtc.compile_for(capability, module_of(RULES))
    for name, kind in itertools.product(RULES, KINDS.values()):
        assert f".visible .entry {name}_{kind}(" in ptx
    assert not re.search(r"div\.[su]64", ptx)  # slow
    assert cubin.startswith(b"\x7fELF")


@with_nvrtc
def test_divisions_and_roots_are_exact_and_each_dtype_has_its_own():
    """No arithmetic of one dtype in a kernel of the other: GPUs for graphics take sixty times as long for float64."""
    ptx, _ = nvrtc.compile_for(80, module_of({"adam": RULES["Adam"]}))
    parts = ptx.split(".entry ")
    single, double = (next(x for x in parts if x.startswith(f"adam_{kind}(")) for kind in KINDS.values())
    assert "sqrt.rn.ftz.f32" in single
    assert "div.rn.ftz.f32" in single
    assert "f64" not in single
    assert "sqrt.rn.f64" in double
    assert "div.rn.f64" in double
    assert "f32" not in double


@with_nvrtc
@pytest.mark.parametrize("capability", [80, 90, 100])
def test_no_kernel_spills_and_all_run_on_full_processors(capability):
    for name, found in nvrtc.resources(capability, module_of(RULES)).items():
        assert (found.stack, found.spilled, found.shared) == (0, 0, 0), name
        assert found.registers <= (32 if name.endswith("_float") else 40), name  # 64 and 48 warps a processor of 64


@with_cpp
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", RULES)
def test_updates_mean_what_they_mean_on_numba(name, dtype):
    rule = RULES[name]
    for n, width, rows in ((1, 1, [0]), (1, 200, None), (3, 5, None), (9, 33, [0, 3, 8]), (50, 8, [7, 49, 2])):
        at = np.arange(n) if rows is None else np.array(rows)
        p, g, state, constants = operands(rule, n, width, at, dtype, seed=1)
        want = expected(rule, *(array.astype(np.float64) for array in (p, g, state)), at, constants)
        cuda, numba = ([p.copy(), g, state.copy(), None if rows is None else at, constants] for _ in range(2))
        on_cuda(name, *cuda)
        update.update(rule, *numba)
        rtol, atol = (3e-6, 1e-6) if dtype == np.float32 else (1e-13, 1e-15)
        for got, other, expect in ((cuda[0], numba[0], want[0]), (cuda[2], numba[2], want[1])):
            np.testing.assert_allclose(got, expect, rtol=rtol, atol=atol)
            np.testing.assert_allclose(got, other, rtol=rtol, atol=atol)
        others = np.setdiff1d(np.arange(n), at)
        np.testing.assert_array_equal(cuda[0][others], p[others])
        np.testing.assert_array_equal(cuda[2][others], state[others])


@with_cpp
@pytest.mark.parametrize(("k", "width"), [(1, 1), (7, 1), (1, 50), (7, 13), (3, 600), (0, 3)])
def test_every_entry_is_updated_once(k, width):
    rule = RULES["Momentum"]
    rows = np.arange(2 * k, 0, -2)  # of 2 k + 1
    p, g, state, constants = operands(rule, 2 * k + 1, width, rows, np.float32)
    want = expected(rule, p, g, state, rows, np.float32(constants))
    on_cuda("Momentum", p, g, state, rows, constants)
    np.testing.assert_allclose(p, want[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(state, want[1], rtol=1e-6, atol=1e-6)


@with_cpp
def test_positions_beyond_32_bits():
    """The only row and the only entry left are beyond 2^32; the arrays' addresses make up for it."""
    p, g, state = (np.array([x], np.float32) for x in (1, 2, 4))
    row, entry = 2**32, 2**20
    k, width = row + 1, entry + 1
    addresses = [
        None,
        p.ctypes.data - 4 * (row * width + entry),
        g.ctypes.data - 4 * (row * width + entry),
        state.ctypes.data - 4 * (row * width + entry),
    ]
    constants = {"scale": 1, "lr": 0.5, "decay": 0, "keep": 0.25, "of_gradient": 0, "of_velocity": 1}
    values = [constants[name] for name in RULES["Momentum"].constants]
    _, kernel = kernel_of("Momentum", p.dtype)
    grid, block = (2**31 - 1, 65535, 65535), (4, 4)
    thread = 2**30, 2**18 % 65535, 2**18 // 65535  # of blocks: row 2^32, entry 2^20
    run_thread(kernel, grid, block, thread, (0, 0), k, width, *addresses, 1, *map(np.float32, values))
    assert (p[0], state[0]) == (1 - 0.5 * 3, 3)


@with_cpp
def test_nan_and_infinity():
    """As NumPy has it: AMSGrad's largest mean square, and the smallest gradient."""
    values = np.array([np.nan, -np.inf, -1, 0, 2, np.inf])
    left, right = (grid.ravel() for grid in np.meshgrid(values, values))
    for dtype in KINDS:
        g, state = right[None].astype(dtype), np.stack([left, left])[None].astype(dtype)
        on_cuda("Others", np.zeros_like(g), g, state, None, [1.0])
        np.testing.assert_array_equal(state[0, 0], np.minimum(left, right))
        np.testing.assert_array_equal(state[0, 1], np.abs(left) + np.abs(right))
        state = np.abs(np.stack([left, right, left]))[None].astype(dtype)
        constants = dict.fromkeys(RULES["AMSGrad"].constants, 1.0) | {"add_square": 0.0}
        with np.errstate(invalid="ignore"):
            on_cuda("AMSGrad", np.zeros_like(g), np.zeros_like(g), state, None, constants.values())
        np.testing.assert_array_equal(state[0, 2], np.maximum(np.abs(left), np.abs(right)))


def test_a_module_has_two_kernels_for_every_rule():
    source = module_of({"a": Rule((), ("c",), "p = p - c * g"), "b": RULES["Adam"]})
    assert re.findall(r"__global__ void (\w+)\(", source) == ["a_float", "a_double", "b_float", "b_double"]
