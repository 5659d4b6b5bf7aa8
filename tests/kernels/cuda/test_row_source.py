"""Kernels of single ops as source: what they cannot number, and what a compiler makes of them."""

import re
import sys

import pytest

import edbatch as eb
from edbatch.kernels.call import Call, Layout, by_rows
from edbatch.kernels.cuda.row_source import source_of, work_of
from edbatch.kernels.cuda.source import common
from tests.kernels import nvrtc

with_nvrtc = pytest.mark.skipif(sys.platform == "darwin", reason="NVIDIA makes no compiler for macOS")


def rows(*shape):
    return Layout(shape, by_rows(shape))


def test_rows_are_no_larger_than_32_bits_can_number():
    largest = Call("copy", "", (), (rows(2**31 - 1),), rows(2**31 - 1))
    assert work_of(largest).groups == 2**31 - 1
    for shape in ((2**31,), (2**16, 2**15)):
        with pytest.raises(eb.EdBatchError, match=re.escape(f"got shape {shape}")):
            work_of(Call("copy", "", (), (rows(*shape),), rows(*shape)))
    far = Layout((2, 3), (-(2**31), 1))
    for x in (far, Layout((2, 3), (3, 1), 0, far), Layout((2, 3), (3, 1), 0, rows(2**16, 2**15))):
        with pytest.raises(eb.EdBatchError, match=re.escape("copy: expected at most 2147483647 entries")):
            work_of(Call("copy", "", (), (x,), rows(2, 3)))


CALLS = {
    "cross_entropy": Call("cross_entropy", "", (), (rows(1000),), rows()),
    "layer_norm": Call("layer_norm", "", (("epsilon", 1e-5),), (rows(512),) * 3, rows(512)),
    "dot": Call("dot", "", (), (rows(512), rows(512)), rows()),
    "sum": Call("sum", "", (("axes", (1,)), ("keepdims", False)), (rows(64, 512),), rows(64)),
    "softmax": Call("softmax", "", (("axis", 0),), (rows(512),), rows(512)),
}


@with_nvrtc
@pytest.mark.parametrize("capability", [80, 90, 100])
def test_kernels_fill_processors_and_read_four_numbers_at_once(capability):
    source = common() + "".join(source_of(call, name) for name, call in CALLS.items())
    text, _ = nvrtc.compile_for(capability, source)
    for name, found in nvrtc.resources(capability, source).items():
        assert (found.stack, found.spilled) == (0, 0), name
        assert found.registers <= 40, name
        kernel = text.split(f".entry {name}(")[1]
        pieces = re.split(r"\n\$L.*:|\bbra\b", kernel[: kernel.index("\n}")])
        assert max(len(re.findall(r"ld\.global(?:\.nc)?\.f32", piece)) for piece in pieces) >= 4, name
