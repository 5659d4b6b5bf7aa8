"""What the paper counts of its cells."""

import pytest

from edbatch.experiments.cell_costs import compile_seconds, kernel_seconds, latency, memory_kernels
from edbatch.experiments.paper_cells import CASES


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_planned_layouts_copy_nothing(case):
    found = memory_kernels(case)
    assert found["planned"] == (0, 0)
    assert found["as written"][0] > 0


def test_compiling():
    assert all(seconds > 0 for seconds in compile_seconds(CASES[0], rounds=1).values())


@pytest.mark.slow
def test_kernels_and_latency():
    assert kernel_seconds(CASES[0]) > 0
    assert all(us > 0 for us in latency(CASES[0], rounds=1).values())
