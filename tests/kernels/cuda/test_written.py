"""What NVRTC makes of the kernels that are written by hand, for every GPU."""

import re
import sys

import pytest

from edbatch.kernels.cuda.backend import BY_HAND, KERNELS, text_of
from tests.kernels import nvrtc

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="NVIDIA makes no compiler for macOS")


@pytest.fixture(scope="module")
def ptx():
    """From a compute capability to the PTX of all kernels."""
    made = {}

    def of(capability):
        if capability not in made:
            made[capability] = nvrtc.compile_for(capability, text_of(BY_HAND))
        return made[capability]

    return of


@pytest.mark.parametrize("capability", [70, 80, 90, 100])
def test_nvrtc_compiles(ptx, capability):
    if capability not in nvrtc.supported():
        pytest.skip(f"this NVRTC does not compile for sm_{capability}")
    text, cubin = ptx(capability)
    assert sorted(re.findall(r"\.visible \.entry (\w+)\(", text)) == sorted(KERNELS)
    assert ".local" not in text  # memory of a thread's own, for what registers cannot hold
    assert not re.search(r"(div|rem)\.[su]64", text)  # slow
    assert cubin.startswith(b"\x7fELF")


@pytest.mark.parametrize("capability", [80, 90, 100])
def test_no_kernel_spills_and_all_can_be_launched(capability):
    for name, found in nvrtc.resources(capability, text_of(BY_HAND)).items():
        assert (found.stack, found.spilled) == (0, 0), name
        assert found.registers * (1024 if name.startswith("add_all") else 256) <= 65536, name
        assert found.registers <= (48 if name.endswith("float") else 80), name
        assert found.shared <= (8192 if name.startswith("add_all") else 2048), name
