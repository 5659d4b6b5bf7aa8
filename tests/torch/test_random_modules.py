"""Modules of one sample that are drawn at random, beside themselves sample by sample."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.torch.test_functions import compared

SIZE = 4
FLOAT = {"dtype": torch.float64}
OF_ONE = [
    torch.tanh, torch.sigmoid, F.relu, F.gelu, F.elu, torch.sin, torch.square, F.softplus, torch.abs, torch.neg,
    lambda x: x.softmax(0), lambda x: x - x.mean() / 2, lambda x: x / (1 + x.norm()),
    lambda x: F.normalize(x, dim=0, eps=0.1),
    lambda x: x.flip(0), lambda x: torch.cat([x[1:], x[:1]]), lambda x: x.view(2, 2).t().reshape(-1),
    lambda x: torch.stack(list(x.unbind())), lambda x: x.clamp(-0.5, 0.5), lambda x: x.cumsum(0), lambda x: x * x.std(),
    lambda x: x.expand(3, -1).sum(0), lambda x: (x.unsqueeze(1) @ x.unsqueeze(0)).max(1).values,
    lambda x: x.masked_fill(x < 0, 0.1), lambda x: torch.where(x > 0.2, x, x.detach()), lambda x: x + x.argmax(),
    lambda x: x.chunk(2)[0].repeat(2), lambda x: x if x.sum() > 0 else x * 0.5, lambda x: x * x.max().item(),
    lambda x: x[[2, 0, 3, 1]], lambda x: x.logsumexp(0) - x, lambda x: x.topk(4)[0],
]  # fmt: skip
OF_TWO = [
    torch.add, torch.mul, torch.sub, torch.maximum, lambda a, b: a / (1 + b.abs()), lambda a, b: a * (a @ b),
    lambda a, b: torch.outer(a, b).sum(1), lambda a, b: torch.cat([a[:2], b[2:]]), lambda a, b: torch.lerp(a, b, 0.3),
    lambda a, b: a * F.cosine_similarity(a, b, 0), lambda a, b: torch.stack([a, b], 1).amax(1),
    lambda a, b: a * F.mse_loss(a, b), lambda a, b: a.where(a > b, b), lambda a, b: a + (a > b) * b,
]  # fmt: skip


class Drawn(nn.Module):
    """A recursion over a tree of numbers, each of which draws what is computed at a node."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.embed = nn.Embedding(7, SIZE, **FLOAT)
        self.layers = nn.ModuleList(nn.Linear(SIZE, SIZE, bias=bool(at), **FLOAT) for at in range(2))
        self.norm, self.step = nn.LayerNorm(SIZE, eps=0.1, **FLOAT), nn.GRUCell(SIZE, SIZE, **FLOAT)
        nn.init.normal_(self.norm.weight)  # else sums are zero up to rounding, which decides what is larger
        nn.init.normal_(self.norm.bias)
        self.weight = nn.Parameter(torch.randn(SIZE, **FLOAT))

    def of_one(self, number, x):
        kind, which = number % 4, number // 4
        if kind == 0:
            return self.layers[which % 2](x)
        if kind == 1:
            return self.norm(x) if which % 2 else self.step(x[None], self.weight[None])[0]
        if number % 13 == 0:
            with torch.no_grad():
                return OF_ONE[which % len(OF_ONE)](x)
        return OF_ONE[which % len(OF_ONE)](x)

    def state(self, tree):
        if isinstance(tree, int):
            return self.of_one(tree, self.embed(torch.tensor(tree % 7)))
        number, left, right = tree
        a, b = self.state(left), self.state(right)
        found = OF_TWO[number % len(OF_TWO)](a, b)
        if number % 5 == 0:
            found = found + 0
            found += a
        return torch.tanh(self.of_one(number, found))

    def forward(self, tree):
        return self.state(tree), (self.state(tree) * self.weight).sum()


def drawn_tree(rng, leaves):
    if leaves == 1:
        return int(rng.integers(1000))
    left = int(rng.integers(1, leaves))
    return int(rng.integers(1000)), drawn_tree(rng, left), drawn_tree(rng, leaves - left)


@pytest.mark.filterwarnings("ignore")  # PyTorch's, where a number is read
@pytest.mark.parametrize("seed", range(60))
def test_random_modules(seed):
    rng = np.random.default_rng(seed)
    compared(Drawn(seed), [drawn_tree(rng, int(rng.integers(1, 7))) for _ in range(3)], rtol=1e-8)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_many_random_modules():
    for seed in range(1000, 3000):
        test_random_modules(seed)
