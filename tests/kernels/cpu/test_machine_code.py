"""Machine code of kernels: compiled once for all processes, and found again on the disk or not."""

import threading
import warnings

import numpy as np
import pytest

from edbatch.compiling.cache import cache_folder
from edbatch.errors import EdBatchWarning
from edbatch.kernels.cpu import machine_code
from edbatch.kernels.language.ir import NEXT, Compute, Constant, Kernel, Load, Place, Store
from tests.kernels.language.calls import run

NUMBERS = np.array([-np.inf, -3.5, -1e-42, -0.0, 0.0, 0.3, 1.0, 80.0, np.inf, np.nan], np.float32)


def combined(function, number):
    steps = (Load(0, (NEXT,)), Constant(float(number).hex()), Compute(function, (0, 1)))
    return Kernel(1, 0, (Place(), Place()), steps, (Store(2, 1, (NEXT,)),))


_alive = []


def forget():
    """As if another process came; kernels that are in use stay where they are."""
    _alive.append(machine_code._engine())
    machine_code.address_of.cache_clear()
    machine_code._engine.cache_clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for said in ("_warned", "_healed"):
        monkeypatch.setattr(f"edbatch.compiling.cache.{said}", threading.Event())
    forget()
    yield cache_folder()
    forget()


def test_a_kernel_is_compiled_once_for_all_processes(folder, monkeypatch):
    want = run(combined("add", 41), NUMBERS)
    assert len(list(folder.iterdir())) == 1
    forget()
    monkeypatch.setattr(machine_code, "optimized", None)
    np.testing.assert_array_equal(run(combined("add", 41), NUMBERS), want)


def test_on_another_processor_a_kernel_is_compiled_again(folder, monkeypatch):
    """Also where Numba is told to compile for what all of them can do, as where they share a home."""
    monkeypatch.setattr("numba.core.config.CPU_NAME", "generic")
    monkeypatch.setattr("numba.core.config.CPU_FEATURES", "")
    want = run(combined("add", 42), NUMBERS)
    forget()
    name, features = machine_code._processor()
    others = ",".join(reversed(features.split(",")))
    monkeypatch.setattr(machine_code, "_processor", lambda: (name, others))
    np.testing.assert_array_equal(run(combined("add", 42), NUMBERS), want)
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("damage", [b"", b"edbatch 1\n", "garbled", "another"])
def test_a_damaged_kernel_is_compiled_again(folder, damage):
    want = run(combined("add", 43), NUMBERS)
    (file,) = folder.iterdir()
    if damage == "another":
        run(combined("subtract", 43), NUMBERS)
        (other,) = set(folder.iterdir()) - {file}
        damage = other.read_bytes()
    elif damage == "garbled":
        damage = bytearray(file.read_bytes())
        damage[len(damage) // 2] ^= 255
    file.write_bytes(damage)
    forget()
    with pytest.warns(EdBatchWarning, match=r"damaged; it is compiled again, .* once, and the file replaced"):
        got = run(combined("add", 43), NUMBERS)
    np.testing.assert_array_equal(got, want)
    forget()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(run(combined("add", 43), NUMBERS), want)
