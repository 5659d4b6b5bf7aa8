"""Lengths that are new."""

import pytest

from scripts.bench.lengths import Models, measured

MODELS = [name for name in vars(Models) if not name.startswith("_")]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_runs(name):
    row = measured(getattr(Models(4), name), rounds=2, backward=True)
    assert row["first ms"] > 0
    assert row["again ms"] > 0
