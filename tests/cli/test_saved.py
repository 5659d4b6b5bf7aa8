"""What `edbatch train --save` leaves, `edbatch run --load` predicts by: other samples, numbered as in training."""

import json

import numpy as np
import pytest

import edbatch as eb
from edbatch.data.lattices import Arc, Lattice
from edbatch.data.random_trees import random_trees
from edbatch.data.trees import write_trees
from edbatch.models.workloads import WORKLOADS, get_workload

TRAINED = ("train", "tree-rnn", "--hidden", 4, "--epochs", 3, "--batch-size", 4, "--lr", 0.02)


@pytest.fixture
def files(tmp_path):
    """Trees to learn from, and others, with words of their own."""
    paths = tmp_path / "train.txt", tmp_path / "dev.txt", tmp_path / "new.txt"
    for path, n, seed in zip(paths, (12, 6, 7), (5, 6, 7), strict=True):
        write_trees(path, random_trees(n, seed))
    paths[2].write_text(paths[2].read_text().replace(" (", " (").replace("w", "another-w"))
    return paths


def test_a_trained_model_predicts_what_training_measured(edbatch_json, edbatch, files, tmp_path):
    train, dev, new = files
    found = edbatch_json(*TRAINED, "--data", train, "--held-out", dev, "--save", tmp_path / "run")
    out = tmp_path / "predicted.txt"
    given = ("run", "tree-rnn", "--load", tmp_path / "run", "--out", out)
    told = edbatch_json(*given, "--data", dev)
    assert (told["loaded"], told["hidden"]) == (str(tmp_path / "run"), 4)
    labels = [line[1] for line in dev.read_text().splitlines()]
    right = [line.split()[0] == label for line, label in zip(out.read_text().splitlines(), labels, strict=True)]
    assert np.mean(right) == pytest.approx(found["epochs"][-1]["held-out accuracy"])
    status, text, _ = edbatch(*given, "--data", new)  # whose words it does not know
    assert status == 0
    assert text.splitlines()[0] == f"tree-rnn, hidden size 4, as {tmp_path / 'run'} has it"
    assert len(out.read_text().splitlines()) == 7
    assert edbatch_json(*TRAINED, "--data", train, "--held-out", dev, "--save", tmp_path / "run", "--resume")["steps"]


def test_what_cannot_be_loaded(edbatch_json, fails, files, tmp_path):
    folder = tmp_path / "run"
    edbatch_json(*TRAINED, "--data", files[0], "--save", folder)
    assert fails("run", "tree-lstm", "--load", folder) == f"{folder}: holds a tree-rnn; expected one, got tree-lstm"
    assert fails("run", "tree-rnn", "--load", folder, "--hidden", 8).startswith("--hidden: expected without --load")
    assert str(tmp_path / "none" / "vocabulary.json") in fails("run", "tree-rnn", "--load", tmp_path / "none")
    for text in ("{}", "[]", "no", '{"model": "tree-rnn", "hidden": "4", "known": {}}'):
        (folder / "vocabulary.json").write_text(text)
        assert fails("run", "tree-rnn", "--load", folder).endswith("expected what edbatch train --save writes")


@pytest.mark.parametrize("name", WORKLOADS)
def test_samples_are_numbered_as_those_before(name):
    """By what JSON has kept; others have the same sizes and labels."""
    workload = get_workload(name)
    found = workload.generate(8, 0)
    known = json.loads(json.dumps(workload.know(found)))
    again, first = workload.number(found, known), workload.number(found)
    assert (again.sizes, again.labels) == (first.sizes, first.labels)
    np.testing.assert_equal(again.samples, first.samples)
    part = workload.number(found[2:4], known)
    assert part.sizes == first.sizes
    if name != "module-network":  # pictures go by place
        assert part.labels == first.labels
        np.testing.assert_equal(part.samples, first.samples[2:4])


def test_what_the_model_does_not_have():
    lattices = get_workload("lattice-lstm")
    small = [Lattice([0, 1], [(), (Arc(0, 3),)])]
    with pytest.raises(eb.EdBatchError, match=r"^lattice 2: expected characters up to 3, as the model has, got 7$"):
        lattices.number([*small, Lattice([0, 1], [(), (Arc(0, 7),)])], lattices.know(small))
    writer = get_workload("td-tree-lstm")
    trees = writer.generate(8, 0)
    with pytest.raises(eb.EdBatchError, match=r"^tree \d: .* is no label of the model$"):
        writer.number(trees, writer.know(trees) | {"labels": []})
