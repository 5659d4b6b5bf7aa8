"""Modules of one sample that are drawn at random, beside themselves sample by sample."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._pytree import tree_leaves

import edbatch.torch
from tests.torch.cases import CASES
from tests.torch.test_functions import PARAMETERS, SHAPES, compared

SIZE = SHAPES["v"][0]
OF_ONE = [
    torch.tanh, torch.sigmoid, F.relu, F.gelu, F.elu, torch.sin, torch.square, F.softplus, torch.abs, torch.neg,
    lambda x: x.softmax(0), lambda x: x - x.mean() / 2, lambda x: x / (1 + x.norm()),
    lambda x: F.normalize(x, dim=0, eps=0.1), lambda x: x.flip(0), lambda x: torch.cat([x[1:], x[:1]]),
    lambda x: x.view(1, 5).t().reshape(-1), lambda x: torch.stack(list(x.unbind())), lambda x: x.clamp(-0.5, 0.5),
    lambda x: x.cumsum(0), lambda x: x * x.var(), lambda x: x.expand(3, -1).sum(0),
    lambda x: (x.unsqueeze(1) @ x.unsqueeze(0)).max(1).values, lambda x: x.masked_fill(x < 0, 0.1),
    lambda x: torch.where(x > 0.2, x, x.detach()), lambda x: x.chunk(5)[0].repeat(5), lambda x: x.logsumexp(0) - x,
    lambda x: x[[2, 0, 3, 1, 4]], lambda x: x.topk(5)[0],
]  # fmt: skip
READING = [
    lambda x: x + x.argmax(), lambda x: x if x.sum() > 0 else x * 0.5, lambda x: x * x.max().item(),
    lambda x: x * int(x.argmin()), lambda x: x[x.argmax()] + x,
]  # fmt: skip
OF_TWO = [
    torch.add, torch.mul, torch.sub, torch.maximum, lambda a, b: a / (1 + b.abs()), lambda a, b: a * (a @ b),
    lambda a, b: torch.outer(a, b).sum(1), lambda a, b: torch.cat([a[:2], b[2:]]), lambda a, b: torch.lerp(a, b, 0.3),
    lambda a, b: a * F.cosine_similarity(a, b, 0), lambda a, b: torch.stack([a, b], 1).amax(1),
    lambda a, b: a * F.mse_loss(a, b), lambda a, b: a.where(a > b, b), lambda a, b: a + (a > b) * b,
]  # fmt: skip


def into(a, b):
    """Writes to a tensor of its own, which has another name."""
    total = a * 1
    same = total
    total += b
    total.mul_(0.5).clamp_(-1, 1)
    return same + F.relu(total.clone(), inplace=True)


def without_gradient(a, b):
    with torch.no_grad():
        scale = a * b
    return a * scale + b


OF_TWO += [into, without_gradient]


class Drawn(nn.Module):
    """A recursion over a tree of numbers, each of which draws what is computed at a node."""

    def __init__(self, seed, dtype):
        super().__init__()
        torch.manual_seed(seed)
        self.embed = nn.Embedding(7, SIZE)
        self.layers = nn.ModuleList(nn.Linear(SIZE, SIZE, bias=bool(at)) for at in range(2))
        self.norm, self.step = nn.LayerNorm(SIZE, eps=0.1), nn.GRUCell(SIZE, SIZE)
        self.deep = nn.Sequential(self.layers[0], nn.Tanh(), self.norm)  # which it shares
        self.heads = nn.MultiheadAttention(SIZE, 1)
        nn.init.normal_(self.norm.weight)  # else sums are zero up to rounding, which decides what is larger
        nn.init.normal_(self.norm.bias)
        self.given = nn.ParameterDict({name: torch.randn(shape) for name, shape in SHAPES.items()})
        self.scale = 1.0
        self.to(dtype)

    def case(self, number, x, y):
        """What a case of a function gives, as a factor."""
        code = CASES[number % len(CASES)]
        given = {name: self.given[name] for name in PARAMETERS} | {"v": x, "w": y, "s": x[0] + y[1]}
        given |= {"p": x.sigmoid(), "q": y.sigmoid(), "n": torch.stack([x, y, x * y])}
        given |= {name: self.given[name] * x[at] for at, name in enumerate(["k", "t", "u", "c"])}
        given |= {"m": self.given["m"] * x, "i": torch.arange(15).reshape(3, 5) * 7 % 3, "j": torch.tensor([4, 0, 2])}
        given["mask"] = torch.arange(15).reshape(3, 5) % 4 > 1
        total = y
        for leaf in tree_leaves(eval(code, globals(), given)):
            if not isinstance(leaf, bool | int) and leaf.dtype is not torch.int64:  # which of equal numbers is open
                leaf = leaf.to(x.dtype) if leaf.dtype != x.dtype else leaf
                total = total + torch.tanh(leaf.mean() if leaf.shape else leaf)
        return x * torch.tanh(total)

    @edbatch.torch.cell
    def marked(self, a, b, *, which):
        return torch.tanh(OF_ONE[which](self.layers[which % 2](a))) * OF_TWO[which](a, b) * self.scale

    def of_one(self, number, x):
        which, kind = divmod(number, 8)
        if kind == 0:
            return self.layers[which % 2](x)
        if kind == 1:
            return [self.norm, self.deep][which % 2](x)
        if kind == 2:
            return self.step(x[None], self.given["v"][None])[0] if which % 2 else self.step(x)
        if kind == 3 and which % 3 == 0:
            rows = torch.stack([x, self.given["w"]])
            return self.heads(rows, rows, rows)[0][0]
        if kind == 4:
            with torch.no_grad():
                return OF_ONE[which % len(OF_ONE)](x) + self.given["q"]
        if kind == 5 and which % 4 == 0:
            return READING[which // 4 % len(READING)](x)
        return OF_ONE[which % len(OF_ONE)](x)

    def state(self, tree):
        if isinstance(tree, int):
            return self.of_one(tree, self.embed(torch.tensor(tree % 7)))
        number, left, right = tree
        a, b = self.state(left), self.state(right)
        which, kind = divmod(number, 8)
        if kind == 0:
            return self.case(which, a, b)
        if kind == 1:
            return self.marked(a, b, which=which % 4)
        number, which = divmod(which, len(OF_TWO))
        return torch.tanh(self.of_one(number, OF_TWO[which](a, b)))

    def forward(self, tree):
        found = self.state(tree)
        return found, (found * self.given["p"]).sum()


def drawn_tree(rng, leaves):
    if leaves == 1:
        return int(rng.integers(10000))
    left = int(rng.integers(1, leaves))
    return int(rng.integers(10**7)), drawn_tree(rng, left), drawn_tree(rng, leaves - left)


@torch.no_grad()
def write(rng, model):
    for parameter in model.parameters():
        parameter += 0.1 * torch.randn_like(parameter)


def exchange(rng, model):
    model.layers[1] = nn.Linear(SIZE, SIZE, dtype=model.given["v"].dtype)


def load(rng, model):
    model.load_state_dict({name: x * 0.9 for name, x in model.state_dict().items()}, assign=bool(rng.integers(2)))


def turn(rng, model):
    model.train(not model.training)
    model.scale += 0.1


CHANGES = [write] * 24 + [lambda rng, model: None] * 16 + [turn] * 6 + [exchange, load]


def run(seed, times):
    """A module that is called some times with trees, and changed in between."""
    dtype = torch.float32 if seed % 3 == 2 else torch.float64
    model = Drawn(seed, dtype)
    batched = edbatch.torch.Batched(model, cells="marked" if seed % 2 else "auto")
    for at in range(times):
        rng = np.random.default_rng([seed, at])
        CHANGES[rng.integers(len(CHANGES))](rng, model)
        trees = [drawn_tree(rng, int(rng.integers(1, 5))) for _ in range(3)]
        try:
            compared(model, trees, 1e-8 if dtype is torch.float64 else 1e-3, batched)
        except Exception as error:
            if "entries is empty" in str(error):  # there are no empty tensors
                continue
            error.add_note(f"seed {seed}, call {at}: {trees}")
            raise


@pytest.mark.filterwarnings("ignore")  # PyTorch's, where a number is read
@pytest.mark.parametrize("seed", range(3))
def test_random_modules(seed):
    run(seed, 60)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_random_modules(seed):
    run(seed, 100)
