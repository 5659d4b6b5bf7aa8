"""Sides agree in their numbers before they are timed; models in PyTorch beside those of the package."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.data.random_trees import random_trees
from edbatch.errors import EdBatchError
from edbatch.experiments import torch_forms
from edbatch.experiments.contest import Task, agree, missing, rates, timed
from edbatch.experiments.experiment import Setting
from edbatch.experiments.mini_batches import MiniBatches
from edbatch.models import LanguageModel, TreeFC


def of_trees(name, training):
    trees = [tree.binarized() for tree in random_trees(4, 0)]
    found = MiniBatches(name, trees, 6, 4)
    labels = sorted({label for tree in trees for label in tree.labels})
    samples = [
        (*sample, tuple(map(labels.index, tree.labels))) for sample, tree in zip(found.batches[0], trees, strict=True)
    ]
    network = found.network
    task = Task(found.model, lambda sample: network.loss(*sample), samples, "sufficient", training, network.W)
    return task, lambda: torch_forms.trees(name, found.model, samples, training)


def of_full_trees(training):
    model = eb.ParameterCollection(seed=0)
    embed = model.add_lookup_parameters((10, 6))
    network = TreeFC(model, 6, 6)
    samples = [(1, 2, 3, 4), (5, 6, 7, 1)]
    task = Task(
        model, lambda tree: network.root([eb.lookup(embed, word) for word in tree]).sum(), samples, "sufficient",
        training, network.W,
    )  # fmt: skip
    return task, lambda: {"pytorch": torch_forms.full_trees(network, embed, samples, training)}


def of_language_model(training):
    model = eb.ParameterCollection(seed=0)
    network = LanguageModel(model, 12, 6)
    samples = [(3, 4, 5), (6,), (7, 8, 9, 10, 11), ()]
    task = Task(model, network.loss, samples, "sufficient", training, network.W_out)
    return task, lambda: {"pytorch": torch_forms.language_model(network, samples, training)}


PROBLEMS = {
    "tree-rnn": lambda training: of_trees("tree-rnn", training),
    "rntn": lambda training: of_trees("rntn", training),
    "tree-fc": of_full_trees,
    "language-model": of_language_model,
}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_models_in_pytorch_give_the_same_numbers(name, training):
    pytest.importorskip("torch")
    assert torch_forms.available()
    task, make = PROBLEMS[name](training)
    others = make()
    task.check(others)
    for side, other in others.items():
        loss, gradient = other()
        with pytest.raises(EdBatchError, match=f"the loss: {side} differs from edbatch by"):
            task.check({side: lambda loss=loss, gradient=gradient: (1.01 * loss, gradient)})
        if training:
            with pytest.raises(EdBatchError, match=f"the gradient of {task.checked.name}: {side} differs from edbatch"):
                task.check({side: lambda loss=loss, gradient=gradient: (loss, np.zeros_like(gradient))})


def test_rows_of_sides():
    task, _ = of_full_trees(training=True)
    task.check({})
    rows = rates(timed(task.sides(), Setting(quick=True)), samples=2)
    assert [row["side"] for row in rows] == ["edbatch", "edbatch replayed", "edbatch unbatched"]
    assert all(row["samples/s"] == pytest.approx(2000 / row["CPU ms"]) for row in rows)
    assert missing({"pytorch": "gone"}) == [{"side": "pytorch", "missing": "gone"}]


def test_what_is_not_a_number_does_not_agree():
    with pytest.raises(EdBatchError, match="x: b differs from a by nan"):
        agree({"a": 1.0, "b": float("nan")}, "x")


def test_pytorch_is_missing(monkeypatch):
    monkeypatch.setattr(torch_forms, "find_spec", lambda _: None)
    assert not torch_forms.available()
