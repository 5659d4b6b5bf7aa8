"""A tree network in EdBatch, and the same in PyTorch, sample by sample."""

import numpy as np
import torch
from torch import nn

import edbatch as eb

SIZE, WORDS, CLASSES = 6, 12, 3


def tree(rng, leaves):
    """Nested pairs of words."""
    if leaves == 1:
        return int(rng.integers(WORDS))
    left = int(rng.integers(1, leaves))
    return tree(rng, left), tree(rng, leaves - left)


def trees(seed, count, leaves=6):
    rng = np.random.default_rng(seed)
    return [tree(rng, int(rng.integers(1, leaves + 1))) for _ in range(count)]


class Ours:
    """A TreeLSTM whose classes are scored at the root."""

    def __init__(self, dtype="float64", dropout=0.0):
        self.model = model = eb.ParameterCollection(dtype=dtype, seed=0)
        self.table = model.add_lookup_parameters((WORDS, 2 * SIZE), "table", init="normal")
        self.W = model.add_parameters((5 * SIZE, 2 * SIZE), "compose.W")
        self.b = model.add_parameters(5 * SIZE, "compose.b", init="normal")
        self.V = model.add_parameters((CLASSES, SIZE), "V")
        self.dropout = dropout

    @eb.cell
    def compose(self, h1, c1, h2, c2):
        i, f, g, o, u = eb.split(eb.affine(self.W, eb.concatenate([h1, h2]), self.b), 5)
        c = eb.sigmoid(i) * eb.tanh(u) + eb.sigmoid(f) * c1 + eb.sigmoid(g) * c2
        return eb.sigmoid(o) * eb.tanh(c), c

    def state(self, tree):
        if not isinstance(tree, tuple):
            row = eb.lookup(self.table, tree)
            return row[:SIZE], row[SIZE:]
        return self.compose(*self.state(tree[0]), *self.state(tree[1]))

    def scores(self, tree):
        return self.V @ eb.dropout(self.state(tree)[0], self.dropout)

    def scored_beside(self, tree, x):
        """With a vector of the caller's."""
        return self.V @ (self.state(tree)[0] * x)


class Theirs(nn.Module):
    """The same, with the parameters of a module of ours."""

    def __init__(self, module):
        super().__init__()
        for name, parameter in module.named_parameters():
            copied = nn.Parameter(parameter.detach().clone(), requires_grad=parameter.requires_grad)
            self.register_parameter(name.replace(".", "_"), copied)

    def state(self, tree):
        if not isinstance(tree, tuple):
            row = self.table[tree]
            return row[:SIZE], row[SIZE:]
        (h1, c1), (h2, c2) = self.state(tree[0]), self.state(tree[1])
        i, f, g, o, u = (self.compose_W @ torch.cat([h1, h2]) + self.compose_b).chunk(5)
        c = i.sigmoid() * u.tanh() + f.sigmoid() * c1 + g.sigmoid() * c2
        return o.sigmoid() * c.tanh(), c

    def forward(self, samples, *lists):
        if lists:
            return torch.stack([self.V @ (self.state(tree)[0] * x) for tree, x in zip(samples, *lists, strict=True)])
        return torch.stack([self.V @ self.state(tree)[0] for tree in samples])
