"""The pointer network against its equations in PyTorch, and learning to sort."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.models import PointerDecoder
from tests.models.against_torch import check, check_policies, check_training, new_model

RANDOM = np.random.default_rng(0)
SAMPLES = [(xs.tolist(), np.argsort(xs[:, 0]).tolist()) for xs in (RANDOM.random((n, 2)) for n in (4, 1, 3, 6))]
DIM = 3


def test_values_and_gradients():
    model = new_model()
    network = PointerDecoder(model, input_dim=2, dim=DIM)

    def build():
        return [network.loss(*sample) for sample in SAMPLES]

    def wanted(torch, p):
        def step(name, x, h, c):
            i, f, o, u = (p[f"{name}.W"] @ x + p[f"{name}.U"] @ h + p[f"{name}.b"]).split(DIM)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(u)
            return torch.sigmoid(o) * torch.tanh(c), c

        losses = []
        for inputs, order in SAMPLES:
            xs = torch.tensor(inputs, dtype=torch.float64)
            h = c = torch.zeros(DIM, dtype=torch.float64)
            memory = []
            for x in xs:
                h, c = step("encoder", x, h, c)
                memory.append(h)
            pointed, loss = torch.zeros(2, dtype=torch.float64), 0
            for position in order:
                h, c = step("decoder", pointed, h, c)
                scores = torch.tanh(torch.stack(memory) @ p["W_1"].T + p["W_2"] @ h) @ p["v"][0]
                loss = loss - torch.log_softmax(scores, 0)[position]
                pointed = xs[position]
            losses.append(loss)
        return losses

    report = check(model, build, wanted)
    assert report.batches < report.nodes / 2
    check_policies(build)


def test_it_learns_an_order():
    model = new_model()
    network = PointerDecoder(model, input_dim=2, dim=12)
    check_training(model, lambda: eb.sum([network.loss(*sample) for sample in SAMPLES]), steps=80, part=0.3)
    with eb.Graph(dtype="float64"):
        orders = eb.run([network.order(inputs) for inputs, _ in SAMPLES])
    assert [sorted(order) for order in orders] == [sorted(order) for _, order in SAMPLES]
    with eb.Graph(), pytest.raises(eb.EdBatchError, match="expected at least one input, got none"):
        network.loss([], [])
