"""Faults of kernels, whose results a GPU leaves to chance: each kind is found where it is; none where there is none."""

import ctypes
import re
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from edbatch.kernels.cuda.backend import COMMON, text_of
from tests.emulated import libraries
from tests.emulated.arrays import plain
from tests.emulated.driver import EmulatedDriver
from tests.emulated.libraries import reports, with_checks

pytestmark = with_checks

KERNEL = """
extern "C" __global__ void {name}([[maybe_unused]] float* x, [[maybe_unused]] const Given<2> given) {{
    [[maybe_unused]] __shared__ float parts[64];
    const unsigned t = threadIdx.x, at = 64 * blockIdx.x + t;
    {body}
}}
"""
RIGHT = """parts[t] = x[at];
    __syncthreads();
    x[at] = parts[63 - t] + over_row(parts[t], Add()) + __shfl_xor_sync(0xffffffffu, x[at], 5) + given.v[0];
    __syncthreads();
    if (at % 4 == 0) *(int4*)(parts + t) = *(int4*)(x + at);
    __syncthreads();
    x[at] = parts[t ^ 1] + t / 2 * 2;"""
CLEAR = "parts[t] = 0; __syncthreads();"
RACE, BOUNDS, ALIGNED, EARLY = "has a race", "is out of bounds", "is not aligned", "has no value to read"
#: Each with what is said of it, at lines that end in "HERE" alone.
FAULTS = {
    "before_a_barrier": (RACE, f"{CLEAR}\n parts[t] = 1;  // HERE\n x[at] = parts[t ^ 1];  // HERE"),
    "after_a_barrier": (RACE, f"{CLEAR}\n x[at] = parts[t ^ 1];  // HERE\n parts[t] = 1;  // HERE"),
    "of_blocks": (RACE, "x[t] = 1;  // HERE"),
    "of_a_warp": (
        RACE,
        """if (t % 2) x[at] = 1;  // HERE
        const float one = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
        if (t % 2 == 0) parts[t] = one + x[at + 1];  // HERE""",
    ),
    "early": (EARLY, "x[at] = parts[t];  // HERE"),
    "early_in_a_block": (EARLY, "if (blockIdx.x == 0) parts[t] = 1;\n x[at] = parts[t];  // HERE"),
    "read_before": (BOUNDS, "parts[t] = x[(int)at - 1];  // HERE"),
    "read_behind": (BOUNDS, "parts[t] = x[at + 64];  // HERE"),
    "written_behind": (BOUNDS, "if (at == 127) x[128] = 1;  // HERE"),
    "of_a_type": (BOUNDS, "float own[2] = {}; x[at] = own[given.v[1]];  // HERE"),
    "aligned_to_4": (ALIGNED, "if (at == 0) *(double*)(x + 1) = 1;  // HERE"),
    "aligned_to_8": (ALIGNED, "if (at == 0) *(int4*)x = *(int4*)(x + 2);  // HERE"),
}  # fmt: skip


def launch(kernel):
    """What it computes, in all orders of threads."""
    driver, found = EmulatedDriver(), []
    for _ in range(3):
        x = driver.empty(128, np.float32)
        driver.upload(np.arange(128, dtype=np.float32), x)
        driver.run(kernel, (2,), (64,), x, (ctypes.c_longlong * 2)(1, 2))
        found.append(plain(x).copy())
    return found


@pytest.fixture(scope="module")
def kernels():
    """All of them by name."""
    bodies = {"right": RIGHT} | {name: body for name, (_, body) in FAULTS.items()}
    source = text_of(COMMON) + "".join(KERNEL.format(name=name, body=body) for name, body in bodies.items())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(libraries, "checks", True)
        return dict(zip(bodies, EmulatedDriver().load(source, list(bodies)), strict=True))


def test_a_right_kernel(kernels):
    found = launch(kernels["right"])
    np.testing.assert_array_equal(found[1:], found[:1] * 2)
    assert not reports()


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault(kernels, name):
    what, _ = FAULTS[name]
    with pytest.raises(AssertionError, match="716") if name == "aligned_to_8" else nullcontext():
        launch(kernels[name])
    said = reports()
    assert said
    for text in said:
        found = re.fullmatch(rf"{name}: thread \d+ of block [01] {what}\b.*, at (.*[.]cu):(\d+)", text)
        assert found, text
        assert Path(found[1]).read_text().splitlines()[int(found[2]) - 1].endswith("// HERE"), text


@pytest.mark.parametrize(
    ("body", "message"), [("given.v[0] = 1;", "read-only"), ("((long long*)given.v)[0] = 1;", "cast-qual")]
)
def test_parameters_are_not_written(monkeypatch, body, message):
    """A GPU would copy them for each thread."""
    monkeypatch.setattr(libraries, "checks", True)
    with pytest.raises(RuntimeError, match=message):
        EmulatedDriver().load(text_of(COMMON) + KERNEL.format(name="kernel", body=body), ["kernel"])
