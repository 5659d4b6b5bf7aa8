"""Graph convolutions of one graph as a matrix of its nodes' states and one of its edges."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parameter import Parameter

from tests.torch.published.network import Network

FEATURES, CLASSES = 10, 3


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = Parameter(torch.Tensor(in_features, out_features))
        self.bias = Parameter(torch.Tensor(out_features))
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        return torch.mm(adj, support) + self.bias


class GCN(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gc1 = GraphConvolution(FEATURES, size)
        self.gc2 = GraphConvolution(size, size)
        self.out = nn.Linear(size, CLASSES)

    def forward(self, x, adj, label):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, 0.0, training=self.training)
        x = F.relu(self.gc2(x, adj))
        return F.log_softmax(self.out(x.mean(dim=0)), dim=0)


def samples(rng, count, nodes):
    found = []
    for label in torch.from_numpy(rng.integers(0, CLASSES, count)):
        n = max(2, int(rng.integers(nodes // 2, nodes * 3 // 2)))
        adj = torch.from_numpy(rng.random((n, n)) < 3 / n).to(torch.get_default_dtype())
        adj = ((adj + adj.t() + torch.eye(n)) > 0).to(adj.dtype)
        adj = adj / adj.sum(1, keepdim=True)
        found.append((torch.from_numpy(rng.normal(size=(n, FEATURES))).to(adj.dtype), adj, label))
    return found


NETWORK = Network(
    "graphs as matrices, graph convolutions (Kipf & Welling 2017)", GCN, samples,
    lambda result, x, adj, label: F.nll_loss(result, label),
)  # fmt: skip
