"""Published networks by `Batched`: what they compute sample by sample, in fewer batches."""

import numpy as np
import pytest
import torch

from edbatch.torch import Batched, cell
from tests.torch.published import NETWORKS

SIZE = 8
READING = ("stack", "shapes", "crf")  # in the middle of a sample, which the others have to wait for


@pytest.fixture(autouse=True)
def _in_float64():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def drawn(name, count, nodes):
    torch.manual_seed(0)
    network = NETWORKS[name]
    return network, network.make(SIZE), network.samples(np.random.default_rng(1), count, nodes)


def gradients(model, losses):
    model.zero_grad()
    torch.stack(losses).sum().backward()
    return {name: torch.zeros_like(x) if x.grad is None else x.grad for name, x in model.named_parameters()}


@pytest.mark.parametrize("name", NETWORKS)
def test_values_and_gradients(name):
    network, model, samples = drawn(name, 4, 8)
    with_cells = network.with_cells(model, cell)
    theirs = network.losses(model, samples)
    wanted = gradients(model, theirs)
    for module in (model, with_cells) if network.marked else (model,):
        ours = network.losses_together(Batched(module), samples)
        torch.testing.assert_close(torch.stack(ours), torch.stack(theirs), rtol=1e-9, atol=1e-12)
        for at, gradient in gradients(model, ours).items():
            torch.testing.assert_close(gradient, wanted[at], rtol=1e-9, atol=1e-12, msg=lambda text, at=at: at + text)


@pytest.mark.parametrize("name", ["constituency", "lattice", "messages", "stack"])
def test_batches(name):
    """Of the same samples four times over there are four times as many nodes, and nearly as many batches."""
    network, model, samples = drawn(name, 2, 8)
    reports = []
    for times in (1, 4):
        batched = Batched(model, cells="marked")
        network.losses_together(batched, samples * times)
        reports.append(batched.last.report())
    one, four = reports
    assert four.nodes == 4 * one.nodes
    assert four.batches < (one.batches * 1.5 if name not in READING else four.nodes)
