"""The benchmark of training, at its smallest."""

import pytest

pytest.importorskip("torch", reason="the extra bench")


def test_all_sides_train_on_the_same_trees(tables_of):
    from scripts.bench.train import main

    rows, threads, products, memory = tables_of(main, "--hidden=4", "--batch=2", "--trees=4").values()
    assert [row["trained by"] for row in rows] == [
        "EdBatch",
        "EdBatch, replayed",
        "PyTorch per sample",
        "PyTorch by level",
    ]
    assert rows[0]["EdBatch is faster, times"] == 1
    assert rows[0]["backward / forward"] > -1
    assert {"NumPy, ms", "PyTorch, ms"} < products[0].keys()
    assert threads[0]["threads"] == 2
    assert threads[0]["replayed, times"] > 0
    assert memory[0]["EdBatch's peak / PyTorch's peak"] > 0
    assert memory[0]["saved by EdBatch, MB"] > 0
