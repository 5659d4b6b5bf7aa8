"""Translates programs: a TreeLSTM reads a syntax tree, and another, which attends to it, writes the other's."""

from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.torch.published.network import Network

TOKENS, END = 30, 0


class BinaryTree:
    def __init__(self, value, left=None, right=None):
        self.value, self.left, self.right = value, left, right


class TreeEncoder(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.embedding = nn.Embedding(TOKENS, size)
        self.ix = nn.Linear(size, size)
        self.fx = nn.Linear(size, size)
        self.ux = nn.Linear(size, size)
        self.ox = nn.Linear(size, size)
        for gate in ("i", "fl", "fr", "u", "o"):
            setattr(self, f"{gate}h_l", nn.Linear(size, size))
            setattr(self, f"{gate}h_r", nn.Linear(size, size))

    def calc_root(self, x, l_h, l_c, r_h, r_c):
        i = torch.sigmoid(self.ix(x) + self.ih_l(l_h) + self.ih_r(r_h))
        f_l = torch.sigmoid(self.fx(x) + self.flh_l(l_h) + self.flh_r(r_h))
        f_r = torch.sigmoid(self.fx(x) + self.frh_l(l_h) + self.frh_r(r_h))
        u = torch.tanh(self.ux(x) + self.uh_l(l_h) + self.uh_r(r_h))
        o = torch.sigmoid(self.ox(x) + self.oh_l(l_h) + self.oh_r(r_h))
        c = i * u + f_l * l_c + f_r * r_c
        return o * torch.tanh(c), c

    def forward(self, tree, annotations):
        if tree is None:
            return torch.zeros(self.size), torch.zeros(self.size)
        l_h, l_c = self.forward(tree.left, annotations)
        r_h, r_c = self.forward(tree.right, annotations)
        h, c = self.calc_root(self.embedding(torch.tensor(tree.value)), l_h, l_c, r_h, r_c)
        annotations.append(h)
        return h, c


class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.attention = nn.Linear(size, size, bias=False)
        self.combine = nn.Linear(2 * size, size)

    def forward(self, annotations, h):
        weights = F.softmax(torch.mv(annotations, self.attention(h)), dim=0)
        context = (weights.unsqueeze(1) * annotations).sum(0)
        return torch.tanh(self.combine(torch.cat([context, h], 0)))


class Tree2Tree(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.encoder = TreeEncoder(size)
        self.embedding = nn.Embedding(TOKENS, size)
        self.attention = Attention(size)
        self.lstms = nn.ModuleList([nn.LSTMCell(2 * size, size) for _ in range(2)])
        self.predict = nn.Linear(size, TOKENS)

    def forward(self, source, target):
        annotations = []
        state = self.encoder(source, annotations)
        annotations = torch.stack(annotations)
        loss, n = 0.0, 0
        queue = deque([(target, state)])
        while queue:
            tree, (h, c) = queue.popleft()
            e_t = self.attention(annotations, h)
            value = END if tree is None else tree.value
            loss = loss + F.cross_entropy(self.predict(e_t), torch.tensor(value))
            n += 1
            if tree is not None:
                x = torch.cat([self.embedding(torch.tensor(value)), e_t], 0).unsqueeze(0)
                for lstm, child in zip(self.lstms, (tree.left, tree.right), strict=True):
                    new_h, new_c = lstm(x, (h.unsqueeze(0), c.unsqueeze(0)))
                    queue.append((child, (new_h.squeeze(0), new_c.squeeze(0))))
        return loss / n


def samples(rng, count, nodes):
    def tree(left):
        if left < 1:
            return None
        first = int(rng.integers(0, left))
        return BinaryTree(int(rng.integers(1, TOKENS)), tree(first), tree(left - 1 - first))

    sizes = rng.integers(nodes // 4, nodes * 3 // 4, (count, 2))
    return [tuple(tree(max(1, int(size))) for size in pair) for pair in sizes]


NETWORK = Network(
    "programs, tree to tree with attention (Chen et al. 2018)", Tree2Tree, samples, lambda result, *given: result,
    ((TreeEncoder, "calc_root"), (Attention, "forward")),
)  # fmt: skip
