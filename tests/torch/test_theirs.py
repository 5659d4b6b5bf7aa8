"""PyTorch's own functions of lazy tensors: one call for each batch, wherever a module calls them."""

import pytest
import torch
from torch import nn

import edbatch as eb
from edbatch.torch import Batched, cell
from tests.torch.test_functions import compared

POINTS = list(torch.linspace(-1, 1, 20, dtype=torch.float64).reshape(5, 4))


def composed(self, h):
    a, b = self.layer(h).sort()[0].chunk(2)
    return torch.atan(torch.cat([b, a])) * torch.cdist(a[None], b[None])[0]


class Composing(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4, dtype=torch.float64)

    forward = composed


class Network(nn.Module):
    """Calls a function three times for each sample."""

    def __init__(self, how):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.part = nn.Linear(4, 4, dtype=torch.float64), Composing()
        self.how = how

    marked = cell(composed)

    def step(self, h):
        return {"cell": self.part, "marked": self.marked}.get(self.how, lambda h: composed(self, h))(h)

    def forward(self, x):
        h = self.layer(x)
        for _ in range(3):
            h = self.step(h)
            if self.how == "read":
                with torch.no_grad():
                    h = h if h.sum() > 0 else h * 0.5
        return h


@pytest.mark.filterwarnings("ignore")  # PyTorch's, where a number is read
@pytest.mark.parametrize("how", ["cell", "marked", "read", "plain"])
def test_where_they_are_called(how):
    compared(Network(how), POINTS)
    module = Batched(Network(how))
    module(POINTS)
    report = module.last.report()
    if how == "plain":
        assert report.batches < report.nodes / 4
    if how != "read":
        replayed = Batched(module.model, replay=True)
        for _ in range(3):
            compared(module.model, POINTS, batched=replayed)


def test_axes_are_those_of_one_sample():
    """`torch.func.vmap` lets some functions take the batch's."""
    model = Network("plain")
    model.step = torch.tril
    with pytest.raises(eb.EdBatchError, match="at least 2 dimensions"):
        Batched(model)(POINTS)
