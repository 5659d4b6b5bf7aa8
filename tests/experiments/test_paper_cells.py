"""The paper's cells compute what is written by hand beside them, compiled plainly and in full."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.experiments.paper_cells import CASES


def run(case, owner, values, dtype, **options):
    cell = getattr(owner, case.cell)
    with eb.options(**options), eb.Graph(policy="sufficient", dtype=dtype):
        results = [cell(*map(eb.input, call)) for call in zip(*values, strict=True)]
        flat = [result if isinstance(result, tuple) else (result,) for result in results]
        found = eb.forward([x for result in flat for x in result])
    return [np.array(found[at :: len(flat[0])]) for at in range(len(flat[0]))]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_cell_computes_what_is_written_by_hand(case, dtype):
    owner = case.make(eb.ParameterCollection(seed=1, dtype=dtype), 8)
    values = case.values(5, 8, dtype)
    want = getattr(owner, case.by_hand)()(*values)
    tolerance = {"rtol": 1e-10} if dtype == "float64" else {"rtol": 2e-5, "atol": 2e-6}
    for got, wanted in zip(run(case, owner, values, dtype), want if isinstance(want, tuple) else (want,), strict=True):
        np.testing.assert_allclose(got, wanted, **tolerance)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compilation_does_not_change_the_numbers(case):
    owner = case.make(eb.ParameterCollection(seed=1, dtype="float64"), 6)
    values = case.values(3, 6, "float64")
    want = run(case, owner, values, "float64", cells=False)
    for compile in ("plain", "full"):
        for got, wanted in zip(run(case, owner, values, "float64", compile=compile), want, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-10, err_msg=compile)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_layout_copies_nothing(case):
    owner = case.make(eb.ParameterCollection(seed=1), 8)
    run(case, owner, case.values(2, 8), "float32")
    ((_, compiled),) = getattr(owner, case.cell).compiled(owner)
    assert compiled.batches - compiled.split == compiled.least
    assert compiled.layout.moved == 0, getattr(owner, case.cell).explain(owner)
    assert compiled.layout.cheapest
