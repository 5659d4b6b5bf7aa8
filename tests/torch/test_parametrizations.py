"""Weights that PyTorch computes of others by parametrizations: once for a mini-batch, with PyTorch's gradients."""

import copy
import random

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize

import edbatch as eb
from edbatch.torch import Batched
from tests.torch.test_functions import compared, leaves_and_gradients

SIZE = 4
FLOAT = {"dtype": torch.float64}
POINTS = list(torch.linspace(-1, 2, 5 * SIZE, **FLOAT).reshape(5, SIZE))


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(SIZE, SIZE, **FLOAT)

    def forward(self, h):
        return torch.tanh(self.layer(h)) * self.layer.weight.sum()


class Noisy(Part):
    """A class of users' that draws numbers, so that no cell may be made of it."""

    def forward(self, h):
        return super().forward(h) * random.choice((1.0, 2.0))


class Chain(nn.Module):
    def __init__(self, of, part=Part):
        super().__init__()
        torch.manual_seed(0)
        self.part, self.below = part(), nn.Linear(SIZE, SIZE, **FLOAT)
        of(self.part.layer if part is Part else self.part)

    def forward(self, x):
        h = self.below(x)
        for _ in range(int(x[0] + 2)):
            h = self.part(h)
        return h


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T


class Dropped(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.5, self.training)


KINDS = {
    "weight_norm": parametrizations.weight_norm,
    "orthogonal": parametrizations.orthogonal,
    "spectral_norm": lambda layer: parametrizations.spectral_norm(layer).eval(),
    "of users": lambda layer: parametrize.register_parametrization(layer, "weight", Symmetric()),
    "several": lambda layer: parametrize.register_parametrization(
        parametrizations.weight_norm(parametrizations.weight_norm(layer), "bias", None), "weight", Symmetric()
    ),
    "frozen": lambda layer: parametrizations.weight_norm(layer).requires_grad_(False),
}


@pytest.mark.parametrize("kind", KINDS)
def test_values_and_gradients(kind):
    model = Chain(KINDS[kind])
    module = Batched(model, replay=len(kind) % 2 == 0)  # some of each
    optimizer = torch.optim.SGD([x for x in model.parameters() if x.requires_grad], 0.1)
    for _ in range(3):
        compared(model, POINTS, batched=module)
        optimizer.step()
        with torch.inference_mode():
            torch.testing.assert_close(module(POINTS), [model(x) for x in POINTS])
    compared(copy.deepcopy(model), POINTS)
    first, second = module(POINTS), module(POINTS)  # before the gradients of either
    sum(x.sum() - y.sum() for x, y in zip(first, second, strict=True)).backward()
    report, plain = module.last.report(), Batched(Chain(lambda layer: None))
    plain(POINTS)
    assert report.nodes == plain.last.report().nodes  # cells, too, come as without


def test_what_would_be_another_weight_for_each_sample_is_refused():
    def dropped(layer):
        parametrize.register_parametrization(layer, "weight", Dropped())

    for kind, name in ((parametrizations.spectral_norm, "_SpectralNorm"), (dropped, "Dropped")):
        model = Chain(kind)
        message = rf"{name}, the parametrization of part.layer.weight, changes its buffers or draws.*eval\(\)"
        with pytest.raises(eb.EdBatchError, match=message):
            Batched(model)(POINTS)
        model.part.layer.parametrizations.eval()
        compared(model, POINTS)


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
def test_hooks_that_compute_weights_are_refused(name):
    with pytest.raises(eb.EdBatchError, match=rf"utils.{name} of a Linear .*successor, .*parametrizations.{name}"):
        Batched(Chain(getattr(nn.utils, name)))(POINTS)


def test_parts_of_users_with_parametrizations_are_looked_into():
    found = []
    for run in (Batched, lambda model: lambda samples: [model(x) for x in samples]):
        model = Chain(lambda part: parametrizations.weight_norm(part.layer), Noisy)
        random.seed(0)
        found.append(leaves_and_gradients(model, run(model)(POINTS)))
    torch.testing.assert_close(*found)
