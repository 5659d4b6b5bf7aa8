"""Tables that programs are compiled into, after an interrupt at any line of making them: as if it had not come."""

import itertools

import numpy as np
import pytest

import edbatch as eb
from edbatch.memory.plan.windows import Windows
from edbatch.runtime.compile.program_table import DerivativePrograms, ProgramTable
from edbatch.runtime.compile.scattered import ScatteredKernels
from edbatch.runtime.type_table import shared_table
from tests.interrupts import Interrupt


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


@pytest.mark.cpu
def test_programs_of_types(monkeypatch):
    """Interrupted as the first are joined, as more are, and as all are joined anew."""
    monkeypatch.setattr("edbatch.runtime.compile.program_table.MOST_GONE", 0)
    monkeypatch.setattr("edbatch.runtime.type_table._shared", {})  # types of other tests' models may be gone
    W = eb.ParameterCollection(seed=0).add_parameters((3, 3), name="W")
    with eb.Graph(policy="sufficient"):
        (W @ eb.tanh(eb.ones(3))).value()
    table = shared_table(eb.device("cpu"))
    kinds = [kind for kind in range(table.count) if table.program(kind) is not None]
    most = max(kinds) + 1

    class Types:
        """Those up to one of them, and programs of these: more come later."""

        program = staticmethod(table.program)

        def __init__(self):
            self.count, self.programs = 0, ProgramTable()

    def use(types):
        for kind in kinds:
            types.count = max(types.count, kind + 1)
            types.programs.prepare([known for known in kinds if known < types.count], types)

    def read(programs, kind):
        """What compiled loops read of a type, wherever it lies."""
        tables, task = programs.directory.tables, programs.directory.tables.tasks[kind]
        assert len(tables.tasks) == len(programs._sizes) >= most
        extent = tables.extents[task["program"]]
        return [tables.steps[extent["steps"] : extent["steps_end"]].tobytes(), programs._sizes[kind].tobytes()]

    clean = Types()
    use(clean)
    found = interrupted_everywhere(Types, use)
    assert len(found) > 60
    for types in found:
        use(types)
        assert [read(types.programs, kind) for kind in kinds] == [read(clean.programs, kind) for kind in kinds]
