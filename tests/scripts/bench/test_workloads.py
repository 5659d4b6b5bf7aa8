"""The benchmark of workloads, at its smallest."""

import pytest

from edbatch.experiments.measure import STAGES
from scripts.bench.workloads import main


@pytest.mark.parametrize("name", ["tagger", "child-sum"])
def test_times_and_memory(tables_of, name):
    times, memory = tables_of(main, "--workload", name, "--hidden=4", "--batch=2").values()
    (row,) = times
    assert (row["workload"], row["hidden"], row["batch"]) == (name, 4, 2)
    assert row["total / products"] == pytest.approx(row["ms"] / row["products, ms"])
    assert all(row[f"{stage}, ms"] > 0 for stage in STAGES)
    (row,) = memory
    assert row["nodes"] > row["batches"] >= row["lower bound"] > 0
