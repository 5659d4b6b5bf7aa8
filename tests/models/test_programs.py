"""Models whose structure follows from values: together as one by one, gradients, and the equations."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.models import MixtureOfExperts, TreeGenerator

X = np.random.default_rng(0).standard_normal((12, 5))


def experts(chosen):
    model = eb.ParameterCollection(seed=1, dtype="float64")
    layers = [MixtureOfExperts(model, 6, 5, 5, chosen), MixtureOfExperts(model, 6, 5, 4, chosen)]

    async def two_layers(k):
        return await layers[1].mix(await layers[0].mix(eb.input(X[k])))

    return model, two_layers, layers


def trees():
    model = eb.ParameterCollection(seed=1, dtype="float64")
    network = TreeGenerator(model, 7, 3, 5)
    for parameter in model:
        parameter.set_value(3 * parameter.value())

    async def loss_of_its_own(k):
        tree = await network.grow(k % 3, 4, np.random.default_rng(k))
        return eb.reshape(network.loss(tree, (k + 1) % 3), (1,))

    return model, loss_of_its_own, network


MODELS = {
    "one of six experts": lambda: experts(1),
    "two of six experts": lambda: experts(2),
    "all experts": lambda: experts(6),
    "trees": trees,
}


def results(model, program, limit=None, policy="sufficient"):
    """Values, loss and gradients."""
    model.zero_grad()
    with eb.Graph(dtype="float64", policy=policy):
        outputs = eb.run([program(k) for k in range(8)], limit=limit)
        loss = eb.sum([eb.sum(y * eb.input(np.cos(np.arange(y.shape[0])))) for y in outputs])
    loss.backward()
    return [*eb.forward(outputs), loss.value(), *(p.grad() for p in model)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("policy", "limit"), [("sufficient", None), ("agenda", 3)])
def test_together_as_one_by_one(name, policy, limit):
    model, program, _ = MODELS[name]()
    alone = results(model, program, 1)
    together = results(model, program, limit, policy)
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("chosen", [1, 2, 6])
def test_experts_are_those_of_the_equations(chosen):
    _, _, (layer, _) = experts(chosen)
    W_gate = layer.W_gate.value()
    with eb.Graph(dtype="float64", policy="sufficient") as graph:
        found = eb.forward(eb.run([layer.mix(eb.input(x)) for x in X]))
    asked = set()
    for x, y in zip(X, found, strict=True):
        scores = W_gate @ x
        best = np.argsort(-scores)[:chosen]
        asked |= set(best.tolist())
        weights = np.exp(scores) / np.exp(scores if chosen == 1 else scores[best]).sum()
        expected = sum(
            weights[k] * np.tanh(layer.experts[k].W.value() @ x + layer.experts[k].b.value()) for k in best.tolist()
        )
        np.testing.assert_allclose(y, expected, rtol=1e-11)
    assert graph.report().batches <= len(asked) + chosen + 6  # one for each expert


def test_a_tree_generator_learns_its_trees():
    right = {0: ((1, 2), 3), 1: (4, (5, (6, 0))), 2: 3}
    model = eb.ParameterCollection(seed=1)
    network = TreeGenerator(model, 7, 3, 16)
    trainer = eb.Adam(model, lr=0.02)
    for _ in range(60):
        with eb.Graph(policy="sufficient"):
            loss = eb.sum([network.loss(tree, topic) for topic, tree in right.items()])
        loss.backward()
        trainer.update()
    with eb.Graph(policy="sufficient") as graph:
        assert eb.run([network.grow(topic, 6) for topic in right]) == list(right.values())
    assert graph.report().rounds == 4  # levels of the deepest tree
