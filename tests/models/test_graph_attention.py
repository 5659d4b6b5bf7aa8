"""Graph attention against a dense, masked form in PyTorch."""

import numpy as np

import edbatch as eb
from edbatch.models import GraphAttention
from tests.models.against_torch import check, check_policies, check_training, new_model

RANDOM = np.random.default_rng(3)
GRAPHS = [
    (RANDOM.normal(size=(5, 2)), [[1, 2], [0], [0, 3, 4], [2], [2]]),
    (RANDOM.normal(size=(1, 2)), [[]]),
    (RANDOM.normal(size=(3, 2)), [[1, 2], [2], []]),
]


def test_values_and_gradients():
    model = new_model()
    low = GraphAttention(model, input_dim=2, dim=4, name="low")
    high = GraphAttention(model, input_dim=4, dim=3, name="high")

    def build():
        found = []
        for xs, near in GRAPHS:
            hidden = [eb.tanh(h) for h in low.nodes([eb.input(x) for x in xs], near)]
            found += high.nodes(hidden, near)
        return found

    def wanted(torch, p):
        def layer(name, xs, near):
            h = xs @ p[f"{name}.W"].T
            scores = torch.nn.functional.leaky_relu(h @ p[f"{name}.a_to"].T + (h @ p[f"{name}.a_from"].T).T, 0.2)
            linked = torch.eye(len(xs), dtype=torch.bool)
            for at, others in enumerate(near):
                linked[at, others] = True
            return torch.softmax(scores.masked_fill(~linked, -torch.inf), dim=1) @ h

        found = []
        for xs, near in GRAPHS:
            found += list(layer("high", torch.tanh(layer("low", torch.from_numpy(xs), near)), near))
        return found

    check(model, build, wanted)
    check_policies(build)
    check_training(model, lambda: eb.sum([eb.sum((h - 0.5) * (h - 0.5)) for h in build()]), part=0.7)


def test_any_number_of_neighbours_is_one_type():
    layer = GraphAttention(eb.ParameterCollection(seed=0), input_dim=2, dim=3)
    with eb.Graph(policy="sufficient") as graph:
        eb.forward([h for xs, near in GRAPHS for h in layer.nodes([eb.input(x) for x in xs], near)])
    report = graph.report()
    assert report.batches == report.lower_bound < 10


def test_large_scores():
    layer = GraphAttention(eb.ParameterCollection(seed=0), input_dim=2, dim=3)
    with eb.Graph():
        found = eb.forward(layer.nodes([eb.input([1000.0, -2000.0]), eb.input([-3000.0, 500.0])], [[1], [0]]))
    assert np.isfinite(found).all()
