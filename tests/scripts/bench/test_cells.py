"""The paper's cells, compiled plainly and in full; what is counted of them."""

import numpy as np
import pytest

import edbatch as eb
from scripts.bench.cells import compiled_cell, moved
from scripts.bench.paper_cells import CASES


def run(case, owner, values, dtype, **options):
    cell = getattr(owner, case.cell)
    with eb.options(**options), eb.Graph(policy="sufficient", dtype=dtype):
        results = [cell(*map(eb.input, call)) for call in zip(*values, strict=True)]
        flat = [result if isinstance(result, tuple) else (result,) for result in results]
        found = eb.forward([x for result in flat for x in result])
    return [np.array(found[at :: len(flat[0])]) for at in range(len(flat[0]))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiling_changes_no_numbers(case):
    owner = case.make(eb.ParameterCollection(seed=1, dtype="float64"), 6)
    values = [value.astype("float64") for value in case.values(3, 6)]
    want = run(case, owner, values, "float64", cells=False)
    for compile in ("plain", "full"):
        for got, wanted in zip(run(case, owner, values, "float64", compile=compile), want, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-10, err_msg=compile)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_planned_layouts_copy_nothing(case):
    planned = compiled_cell(case)
    assert moved(planned) == (0, 0)
    assert planned.batches - planned.split == planned.least
    assert planned.layout.cheapest
