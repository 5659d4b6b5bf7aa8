"""Convolutions of images, beside PyTorch's."""

import pytest

from scripts.bench.images import LAYERS, main


def test_values_and_gradients_are_those_of_pytorch(tables_of):
    pytest.importorskip("torch")
    tables = tables_of(main, "--channels=2", "--size=4", "--samples=3", "--warm_ups=1")
    figures = {row["figure"]: row for title, rows in tables.items() if "milliseconds" not in title for row in rows}
    for name in LAYERS:
        assert figures[f"{name}: values and gradients as PyTorch's"]["measured"] == "True"
        assert figures[f"{name}: train, all, times of PyTorch's"]["measured"] > 0
