"""Attention over lists of many lengths, beside PyTorch's."""

import pytest

from scripts.bench.attention import main


def test_all_lengths_take_the_batches_of_one_and_sums_are_those_of_pytorch(tables_of):
    pytest.importorskip("torch")
    tables = tables_of(main, "--hidden=8", "--sentences=5")
    figures = {row["figure"]: row for rows in tables.values() if "figure" in rows[0] for row in rows}
    compared = [row for name, row in figures.items() if "batches" in name or "the same sum" in name]
    assert len(compared) == 4
    for row in compared:
        assert row["measured"] == row["asked"]
    for title, rows in tables.items():
        if "milliseconds" in title:
            assert [row[""] for row in rows] == ["forward", "PyTorch forward", "train", "PyTorch train"]
