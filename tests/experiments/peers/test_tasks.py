"""The models that are measured on a GPU: mini-batches, and what they cost."""

import numpy as np
import pytest

import edbatch as eb

pytest.importorskip("torch", reason="the extra bench")

NAMES = ("TreeLSTM", "BiLSTM tagger", "LatticeLSTM")


@pytest.fixture(scope="module")
def tasks():
    from edbatch.experiments.peers.tasks import MODELS

    return {name: kind(None) for name, kind in MODELS.items()}


@pytest.mark.parametrize("name", NAMES)
def test_counted_products_are_those_of_the_graph(tasks, name):
    from scripts.bench.products import _products

    task = tasks[name]
    (samples,) = task.mini_batches(5, 1)
    network = task.network(eb.ParameterCollection(seed=0), 8)
    with eb.options(split=False, compile="plain"), eb.Graph() as graph:
        for sample in samples:
            for h in network.hidden(*sample[:-1]):
                network.probabilities(h)
    policy = eb.get_policy("sufficient")
    products = list(_products(graph, policy))
    assert task.count(samples, 8).flops == sum(2 * int(np.prod(a.shape)) * size for a, _, _, size in products)


@pytest.mark.parametrize("name", NAMES)
def test_at_least_parameters_and_results_are_moved(tasks, name):
    task = tasks[name]
    (samples,) = task.mini_batches(5, 1)
    one, ten = task.count(samples, 8).bytes, task.count(samples * 10, 8).bytes
    model = eb.ParameterCollection(seed=0)
    task.network(model, 8)
    matrices = sum(4 * int(np.prod(p.shape)) for p in model if len(p.shape) == 2 and "embed" not in p.name)
    assert one > matrices
    assert ten == 10 * one - 9 * matrices


def test_the_cpu_is_the_cpu_whatever_the_environment_says(tasks, monkeypatch):
    """Or a GPU would be compared with itself."""
    from edbatch.experiments.peers.own import Own
    from scripts.gpu.correctness import values

    monkeypatch.setenv("EDBATCH_DEVICE", "cuda:17")
    task = tasks["TreeLSTM"]
    (samples,) = task.mini_batches(2, 1)
    assert Own(task, 8, "cpu").forward(samples).report().device == "cpu"
    assert values(task, samples, 8, "cpu")["loss"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_mini_batches_are_of_different_samples_and_always_the_same(tasks, name):
    task = tasks[name]
    found = task.mini_batches(20, 3)
    assert [[id(sample) for sample in one] for one in found] == [
        [id(sample) for sample in one] for one in task.mini_batches(20, 3)
    ]
    assert all(len({id(sample) for sample in one}) == 20 for one in found)
    assert {id(sample) for sample in found[0]} != {id(sample) for sample in found[1]}
