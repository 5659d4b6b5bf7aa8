"""Kernels translated to machine code, against Python's own reading of them."""

import math
import signal
import threading

import numpy as np
import pytest

from edbatch.code_cache import cache_folder
from edbatch.errors import EdBatchError, EdBatchWarning
from edbatch.kernels import fused, machine_code, scalars
from edbatch.kernels.machine_code import address_of, llvm_of
from edbatch.kernels.pointers import call_kernel
from edbatch.kernels.recipe import Compute, Load, Recipe, Store
from edbatch.stopwatch import compiling
from tests.kernels.test_scalars import GRID, compiled

KERNEL = """
def kernel(n, d, places):
    p0, d0 = floats_at(places[0]), places[1]
    p1, d1 = floats_at(places[2]), places[3]
    for i in range(n):
        r0 = i * d0
        r1 = i * d1
        for j in range(d):
            v0 = p0[r0 + j]
            v1 = {expression}
            p1[r1 + j] = v1
"""
NUMBERS = np.array([-math.inf, -3.5, -1e-42, -0.0, 0.0, 0.3, 1.0, 80.0, math.inf, math.nan], np.float32)


def run(expression, x):
    out = np.full_like(x, 7)
    places = np.array([x.ctypes.data, 0, out.ctypes.data, 0], np.int64)
    call_kernel(address_of(KERNEL.format(expression=expression)), 1, len(x), places.ctypes.data)
    return out


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "exp", "sqrt"])
def test_functions_are_what_numba_makes_of_them(name):
    want = np.empty_like(GRID)
    compiled(getattr(scalars, name))(GRID, want)
    np.testing.assert_array_max_ulp(run(f"{name}(v0)", GRID), want, 2)


EXPRESSIONS = {
    "v0 + float32(0.1)": lambda x: x + np.float32(0.1),
    "v0 - float32(-1e999)": lambda x: x + np.float32(math.inf),
    "-v0": lambda x: -x,
    "float32(1) / v0": lambda x: np.float32(1) / x,
    "v0 * v0 / float32(3)": lambda x: x * x / np.float32(3),
    "v0 if v0 > float32(0) else float32(0.3) * v0": lambda x: np.where(x > 0, x, np.float32(0.3) * x),
    "float32(1) if v0 == v0 else float32(-2)": lambda x: np.where(np.isnan(x), np.float32(-2), np.float32(1)),
    "float32(1) if v0 <= float32(0.3) else float32(0)": lambda x: (x <= np.float32(0.3)).astype(np.float32),
    "abs(v0)": np.abs,
    "maximum(v0, float32(0.5))": lambda x: np.maximum(x, np.float32(0.5)),
    "minimum(float32(0.5), v0)": lambda x: np.minimum(np.float32(0.5), x),
    "maximum(float32(-1), minimum(float32(1), v0))": lambda x: np.clip(x, -1, 1),
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_have_the_same_bits(expression):
    with np.errstate(all="ignore"):
        want = EXPRESSIONS[expression](NUMBERS)
    got = run(expression, NUMBERS)
    alike = (got.view(np.int32) == want.view(np.int32)) | (np.isnan(got) & np.isnan(want))
    assert alike.all(), (got, want)


@pytest.mark.parametrize("value", [0.1, -0.0, 1e-45, 3.4028235e38, -math.inf, 16777217.0, 1e-50])
def test_numbers_are_exact(value):
    got = run(f"float32({value!r})".replace("inf", "1e999"), NUMBERS)
    assert set(got.view(np.int32).tolist()) == {int(np.float32(value).view(np.int32))}


@pytest.mark.parametrize(
    "expression",
    [
        "v0 ** v0",
        "v0 // v0",
        "v0 + 1.5",
        "v0 + 1",
        "1 if v0 else 2",
        "unknown(v0)",
        "places[0] + v0",
        "v9",
        "v0 and v0",
        "'a'",
    ],
)
def test_anything_else_is_refused(expression):
    with pytest.raises(EdBatchError, match="kernels cannot have"):
        llvm_of(KERNEL.format(expression=expression))


@pytest.mark.parametrize(
    "statement", ["while n: n = n", "for i in range(1, n): pass", "n += 1", "import os", "a.b = n"]
)
def test_other_statements_are_refused(statement):
    with pytest.raises(EdBatchError, match="kernels cannot"):
        llvm_of(f"def kernel(n, d, places):\n    {statement}\n")


def test_every_function_that_recipes_may_call_is_translated():
    for name in fused.FUNCTIONS:
        operands = (0, 0) if name in ("maximum", "minimum") else (0,)
        given = ", ".join(f"{{{at}}}" for at in range(len(operands)))
        recipe = Recipe(1, (Load(0), Compute(f"{name}({given})", operands)), (Store(1, 0),))
        assert f"@{machine_code._LIBRARY.get(name, name)}" in llvm_of(fused.source_of(recipe))


_alive = []


def forget():
    """As if another process came; kernels that are in use stay where they are."""
    _alive.append(machine_code._engine())
    address_of.cache_clear()
    machine_code._engine.cache_clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("edbatch.code_cache._warned", threading.Event())
    yield cache_folder()
    forget()


def test_a_kernel_is_compiled_once_for_all_processes(folder, monkeypatch):
    want = run("v0 + float32(41)", NUMBERS)
    assert len(list(folder.iterdir())) == 1
    forget()
    monkeypatch.setattr(machine_code, "_object_of", None)
    np.testing.assert_array_equal(run("v0 + float32(41)", NUMBERS), want)


@pytest.mark.parametrize("damage", [b"", b"edbatch 1\n", "garbled", "another"])
def test_a_damaged_kernel_is_compiled_again(folder, damage):
    want = run("v0 + float32(43)", NUMBERS)
    (file,) = folder.iterdir()
    if damage == "another":
        run("v0 - float32(43)", NUMBERS)
        (other,) = set(folder.iterdir()) - {file}
        damage = other.read_bytes()
    elif damage == "garbled":
        damage = bytearray(file.read_bytes())
        damage[len(damage) // 2] ^= 255
    file.write_bytes(damage)
    forget()
    with pytest.warns(EdBatchWarning, match="damaged"):
        got = run("v0 + float32(43)", NUMBERS)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("when", ["kept", "keep", "_engine"])
def test_an_interrupt_waits_for_the_compiler(folder, monkeypatch, when):
    original, booked = getattr(machine_code, when), compiling.seconds

    def interrupted(*args):
        signal.raise_signal(signal.SIGINT)
        return original(*args)

    with monkeypatch.context() as patched:
        patched.setattr(machine_code, when, interrupted)
        with pytest.raises(KeyboardInterrupt):
            run("v0 + float32(47)", NUMBERS)
    assert len(list(folder.iterdir())) == 1
    assert compiling.seconds > booked
    np.testing.assert_array_equal(run("v0 + float32(47)", NUMBERS), NUMBERS + np.float32(47))


def test_no_rows_and_no_entries():
    address = address_of(KERNEL.format(expression="v0"))
    call_kernel(address, 0, 5, np.zeros(4, np.int64).ctypes.data)
    call_kernel(address, 5, 0, np.zeros(4, np.int64).ctypes.data)
