"""Tables that programs are compiled into, after an interrupt at any line of making them: as if it had not come."""

import itertools

import numpy as np
import pytest

import edbatch as eb
from edbatch.memory.plan.windows import Windows
from edbatch.runtime.compile.program_table import DerivativePrograms
from edbatch.runtime.compile.scattered import ScatteredKernels
from tests.interrupts import Interrupt

pytestmark = pytest.mark.usefixtures("no_old_garbage")  # finalizers of other tests have lines, too


def interrupted_everywhere(make, use):
    """What is made, each interrupted at another line of its use."""
    found = []
    for at in itertools.count(1):
        found.append(make())
        if not Interrupt(at).run(lambda: use(found[-1])):
            return found


@pytest.mark.cpu
@pytest.mark.parametrize("adding", [False, True])
def test_kernels_of_scattered_windows(adding):
    def make():
        windows = Windows()
        windows.look((3, 2), np.dtype("float32"), lambda rows: rows.swapaxes(1, 2))
        windows.look((4,), np.dtype("float64"), lambda rows: rows[:, ::-2])
        return ScatteredKernels(windows, eb.device("cpu").backend)

    make().tables(True)  # compiles them
    found = interrupted_everywhere(make, lambda kernels: kernels.tables(adding))
    assert len(found) > 20
    for kernels in found:
        records, words = kernels.tables(True)
        for record in records:
            for kernel, name in (("read", "read"), ("add", "add"), ("add_lists", "lists")):
                assert record[kernel] != 0
                given = words[record[f"{name}_given"] : record[f"{name}_end"]]
                assert given[: record["axes"]].prod() == record["entries"]


def test_numbers_of_derivatives():
    found = interrupted_everywhere(DerivativePrograms, lambda programs: programs.number("one"))
    assert len(found) > 3
    for programs in found:
        for name in ("another", "one"):
            assert programs.program(programs.number(name)) == name
