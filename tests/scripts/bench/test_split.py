"""Cells that are split, whole, and split by hand."""

import pytest

from scripts.bench.split import VARIANTS, LanguageModel, Tagger, measured


@pytest.mark.parametrize("make", [Tagger, LanguageModel])
def test_every_variant_runs(make):
    rows = measured(make, [[0, 1, 2], [1]], hidden=4, rounds=1)
    assert [row["cells"] for row in rows] == list(VARIANTS)
    whole, by_hand, split = (row["nodes"] for row in rows)
    assert whole < by_hand == split
