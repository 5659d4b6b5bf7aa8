"""Every experiment at its smallest: its tables have their columns, and all sides say the same numbers before."""

from importlib import import_module

import pytest

import edbatch as eb
from scripts.bench.__main__ import experiments
from scripts.bench.contest import Own, Task, compare, sides_of
from scripts.bench.mini_batches import NINE

ELSEWHERE = {"pins", "dynet", "ed_batch", "schedules"}  # they have tests of their own
TORCH = {"peers", "cavs", "recursion", "moe", "published", "torch"}  # the extra bench
SIDES = ["edbatch", "edbatch replayed", "edbatch unbatched", "pytorch per sample", "pytorch by hand"]
SMALL = {
    "batches": ["--batch=4", "--workload=tree-gru"],
    "cavs": ["--hidden=4", "--batch=2"],
    "cells": [],
    "learning": ["--batch=4", "--workload=tree-gru"],
    "moe": ["--experts=3", "--batch=10"],
    "peers": ["--hidden=4", "--batch=2", "--workload", "tagger-characters", "lattice-gru"],
    "products": ["--hidden=4", "--batch=2", "--workload=tagger"],
    "published": ["--hidden=8", "--batch=2", "--nodes=6", "--network", "constituency", "crf"],
    "recursion": ["--hidden=4", "--batch=2"],
    "stages": ["--hidden=4", "--batch=4", "--workload=tree-gru"],
    "torch": ["--hidden=4", "--batch=2"],
}
COLUMNS = {
    "batches": ["workload", "bound", "depth", "agenda"],
    "cavs": ["batch", *SIDES],
    "cells": ["cell", "side", "memory kernels", "kB moved", "latency, us"],
    "learning": ["workload", "seconds", "episodes", "batches", "bound"],
    "moe": ["experts", "batch", "EdBatch", "EdBatch, over PyTorch one by one", "PyTorch by hand", "the paper's"],
    "peers": ["workload", "batch", *SIDES[:3]],
    "products": ["workload", "way", "hidden", "batch", "CPU ms", "op by op / products"],
    "published": ["network", "kind", "nodes", "batches", "reads", "gradients off", "per sample, ms", "Batched, ms"],
    "recursion": ["mode", "batch", *SIDES],
    "stages": ["workload", "run", "construction", "lowering", "scheduling", "planning", "execution"],
    "torch": ["a step", "CPU ms", "least", "over PyTorch tree by tree", "over EdBatch alone", "gradients off"],
}


def test_every_experiment_is_here():
    assert SMALL.keys() == COLUMNS.keys() == experiments().keys() - ELSEWHERE


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "cells")) for name in SMALL])
def test_a_table(name, tables_of):
    if name in TORCH:
        pytest.importorskip("torch", reason="the extra bench")
    rows, *_ = tables_of(import_module(f"scripts.bench.{name}").main, *SMALL[name]).values()
    assert list(rows[0])[: len(COLUMNS[name])] == COLUMNS[name]
    numbers = [value for row in rows for value in row.values() if isinstance(value, int | float)]
    assert all(number >= 0 for number in numbers)
    assert all(row.get("gradients off", 0) < 1e-4 for row in rows)


@pytest.mark.parametrize("training", [False, True], ids=["forward", "training"])
@pytest.mark.parametrize("name", NINE)
def test_all_sides_of_the_nine_say_the_same(name, training, monkeypatch):
    pytest.importorskip("torch", reason="the extra bench")
    monkeypatch.delenv("EDBATCH_DATA", raising=False)
    sides, samples = sides_of(name, 4, 3, training, adam=training)
    assert list(sides) == [side for side in SIDES if side != "pytorch per sample" or name.startswith(("tree", "mv"))]
    assert samples == 24
    for run in sides.values():
        run()


def test_a_difference_is_an_error_that_names_side_and_array():
    task = Task("tree-lstm", 2, None)
    found = Own(task, 4).values(task.samples)
    for name, said in (("", "probabilities"), ("loss", "loss"), ("U", "U")):
        with pytest.raises(eb.EdBatchError, match=f"^a side: {said} differ by"):
            compare("a side", found | {name: found[name] * 1.01}, found)
        with pytest.raises(eb.EdBatchError, match=f"^a side: {said} differ by nan"):
            compare("a side", found | {name: found[name] * float("nan")}, found)
    with pytest.raises(eb.EdBatchError, match=r"^a side: differs in \['more'\]"):
        compare("a side", found | {"more": found["U"]}, found)


def test_without_pytorch_its_sides_are_missing(monkeypatch):
    monkeypatch.delenv("EDBATCH_DATA", raising=False)
    monkeypatch.setattr("scripts.bench.contest.find_spec", lambda _: None)
    assert list(sides_of("lattice-lstm", 4, 2, training=True)[0]) == SIDES[:3]
