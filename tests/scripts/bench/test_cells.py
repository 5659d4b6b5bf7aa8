"""Cells beside their products, and what the paper counts of its cells."""

import pytest

import edbatch as eb
from edbatch.experiments.mini_batches import MiniBatches
from scripts.bench.cells import VARIANTS, ratios
from scripts.bench.mini_batches import over_products, samples
from scripts.bench.paper_cells import CASES
from scripts.bench.paper_tables import compiling, latency, memory_kernels


@pytest.fixture(autouse=True)
def made_up_data(monkeypatch):
    monkeypatch.delenv("EDBATCH_DATA", raising=False)


def test_every_variant_is_divided_by_the_same_products():
    row = ratios(samples("tree-lstm", 4), hidden=4, size=2, rounds=1)
    assert (row["hidden"], row["batch"]) == (4, 2)
    assert {f"{name} / products" for name in VARIANTS} < row.keys()
    assert row["ms, fused"] > 0


def test_mini_batches_run_under_the_options_in_force():
    found = MiniBatches("tree-lstm", samples("tree-lstm", 4), 4, 2)
    nodes = found.run(0).n
    with eb.options(cells=False):
        assert found.run(0).n > 2 * nodes
    assert len(found.batches) == 2
    row = over_products(found, {"cells": {}}, rounds=1)["cells"]
    assert row.keys() > {"ms", "CPU ms", "total / products", "planning ms"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_planned_layouts_copy_nothing(case):
    row = memory_kernels(case)
    assert row["planned"] == "0 (0 kB)"
    assert row["paper, PQ tree"].startswith(f"{case.kernels[1]} (")


@pytest.mark.slow
def test_compiling_and_latency():
    rows = compiling(rounds=1)
    assert [row["cell"] for row in rows] == [case.name for case in CASES]
    assert all(row["batches"] >= row["fewest"] for row in rows)  # more where a cell is split around its state
    assert latency(CASES[0], rounds=1)["ratio"] > 0
