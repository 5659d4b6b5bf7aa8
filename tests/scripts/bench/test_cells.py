"""Cells beside their products."""

import pytest

import edbatch as eb
from edbatch.experiments.mini_batches import MiniBatches
from scripts.bench.cells import VARIANTS, ratios
from scripts.bench.mini_batches import over_products, samples


@pytest.fixture(autouse=True)
def made_up_data(monkeypatch):
    monkeypatch.delenv("EDBATCH_DATA", raising=False)


def test_every_variant_is_divided_by_the_same_products():
    row = ratios(samples("tree-lstm", 4), hidden=4, size=2, rounds=1)
    assert (row["hidden"], row["batch"]) == (4, 2)
    assert {f"{name} / products" for name in VARIANTS} < row.keys()
    assert row["ms"] > 0


def test_mini_batches_run_under_the_options_in_force():
    found = MiniBatches("tree-lstm", samples("tree-lstm", 4), 4, 2)
    nodes = found.run(0).n
    with eb.options(cells=False):
        assert found.run(0).n > 2 * nodes
    assert len(found.batches) == 2
    row = over_products(found, {"cells": {}}, rounds=1)["cells"]
    assert row.keys() > {"ms", "CPU ms", "total / products", "planning ms"}
