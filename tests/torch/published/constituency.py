"""A binary TreeLSTM over constituency trees, which tells the sentiment at every node."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.torch.published.network import Network

WORDS, CLASSES = 40, 5


class Node:
    def __init__(self, label, word=None, left=None, right=None):
        self.label, self.word, self.left, self.right = label, word, left, right

    def is_leaf(self):
        return self.word is not None


class BinaryTreeLeafModule(nn.Module):
    def __init__(self, in_dim, mem_dim):
        super().__init__()
        self.cx = nn.Linear(in_dim, mem_dim)
        self.ox = nn.Linear(in_dim, mem_dim)

    def forward(self, input):
        c = self.cx(input)
        o = torch.sigmoid(self.ox(input))
        return c, o * torch.tanh(c)


class BinaryTreeComposer(nn.Module):
    def __init__(self, mem_dim):
        super().__init__()

        def new_gate():
            return nn.ModuleList([nn.Linear(mem_dim, mem_dim), nn.Linear(mem_dim, mem_dim)])

        self.i, self.lf, self.rf, self.update, self.o = (new_gate() for _ in range(5))

    def forward(self, lc, lh, rc, rh):
        def gate(layers):
            return layers[0](lh) + layers[1](rh)

        i = torch.sigmoid(gate(self.i))
        lf, rf = torch.sigmoid(gate(self.lf)), torch.sigmoid(gate(self.rf))
        c = i * torch.tanh(gate(self.update)) + lf * lc + rf * rc
        h = torch.sigmoid(gate(self.o)) * torch.tanh(c)
        return c, h


class TreeLSTMSentiment(nn.Module):
    """Keeps what it said of the nodes, and their labels, where the last call left them."""

    def __init__(self, size):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, size)
        self.leaf_module = BinaryTreeLeafModule(size, size)
        self.composer = BinaryTreeComposer(size)
        self.projection = nn.Linear(size, CLASSES)
        self.dropout = nn.Dropout(0.0)
        self.node_prob_list = []
        self.label_list = []

    def traverse(self, node):
        if node.is_leaf():
            c, h = self.leaf_module(self.embedding(torch.LongTensor([node.word])))
        else:
            lc, lh = self.traverse(node.left)
            rc, rh = self.traverse(node.right)
            c, h = self.composer(lc, lh, rc, rh)
        self.node_prob_list.append(self.projection(self.dropout(h)))
        self.label_list.append(torch.LongTensor([node.label]))
        return c, h

    def forward(self, tree):
        self.node_prob_list = []
        self.label_list = []
        self.traverse(tree)
        nodes = torch.cat(self.node_prob_list)
        return nodes, F.cross_entropy(input=nodes, target=torch.cat(self.label_list), reduction="sum")


def samples(rng, count, nodes):
    def tree(leaves):
        label = int(rng.integers(CLASSES))
        if leaves == 1:
            return Node(label, word=int(rng.integers(WORDS)))
        left = int(rng.integers(1, leaves))
        return Node(label, left=tree(left), right=tree(leaves - left))

    return [(tree(max(1, int(rng.integers(nodes // 4, nodes * 3 // 4)))),) for _ in range(count)]


NETWORK = Network(
    "constituency trees, binary TreeLSTM (Tai et al. 2015)", TreeLSTMSentiment, samples, lambda result, tree: result[1],
    ((BinaryTreeComposer, "forward"), (BinaryTreeLeafModule, "forward")),
)  # fmt: skip
