"""Child-sum TreeLSTMs over the dependency trees of two sentences, whose relatedness is told."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.torch.published.network import Network

WORDS, CLASSES = 40, 5


class Tree:
    def __init__(self, idx):
        self.idx = idx
        self.children = []
        self.state = None

    def add_child(self, child):
        self.children.append(child)


class ChildSumTreeLSTM(nn.Module):
    def __init__(self, in_dim, mem_dim):
        super().__init__()
        self.mem_dim = mem_dim
        self.ioux = nn.Linear(in_dim, 3 * mem_dim)
        self.iouh = nn.Linear(mem_dim, 3 * mem_dim)
        self.fx = nn.Linear(in_dim, mem_dim)
        self.fh = nn.Linear(mem_dim, mem_dim)

    def node_forward(self, inputs, child_c, child_h):
        child_h_sum = torch.sum(child_h, dim=0, keepdim=True)
        iou = self.ioux(inputs) + self.iouh(child_h_sum)
        i, o, u = torch.split(iou, iou.size(1) // 3, dim=1)
        i, o, u = torch.sigmoid(i), torch.sigmoid(o), torch.tanh(u)
        f = torch.sigmoid(self.fh(child_h) + self.fx(inputs).repeat(len(child_h), 1))
        c = torch.mul(i, u) + torch.sum(torch.mul(f, child_c), dim=0, keepdim=True)
        h = torch.mul(o, torch.tanh(c))
        return c, h

    def forward(self, tree, inputs):
        for child in tree.children:
            self.forward(child, inputs)
        if not tree.children:
            child_c = inputs[0].detach().new(1, self.mem_dim).fill_(0.0).requires_grad_()
            child_h = inputs[0].detach().new(1, self.mem_dim).fill_(0.0).requires_grad_()
        else:
            child_c, child_h = zip(*[child.state for child in tree.children], strict=True)
            child_c, child_h = torch.cat(child_c, dim=0), torch.cat(child_h, dim=0)
        tree.state = self.node_forward(inputs[tree.idx], child_c, child_h)
        return tree.state


class Similarity(nn.Module):
    def __init__(self, mem_dim, hidden_dim, num_classes):
        super().__init__()
        self.wh = nn.Linear(2 * mem_dim, hidden_dim)
        self.wp = nn.Linear(hidden_dim, num_classes)

    def forward(self, lvec, rvec):
        vec_dist = torch.cat((torch.mul(lvec, rvec), torch.abs(torch.add(lvec, -rvec))), 1)
        out = torch.sigmoid(self.wh(vec_dist))
        return F.log_softmax(self.wp(out), dim=1)


class SimilarityTreeLSTM(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.emb = nn.Embedding(WORDS, size, padding_idx=0)
        self.childsumtreelstm = ChildSumTreeLSTM(size, size)
        self.similarity = Similarity(size, size // 2, CLASSES)

    def forward(self, ltree, linputs, rtree, rinputs, target):
        linputs, rinputs = self.emb(linputs), self.emb(rinputs)
        _, lhidden = self.childsumtreelstm(ltree, linputs)
        _, rhidden = self.childsumtreelstm(rtree, rinputs)
        return self.similarity(lhidden, rhidden)


def samples(rng, count, nodes):
    def sentence():
        words = [Tree(idx) for idx in range(max(1, int(rng.integers(nodes // 2, nodes * 3 // 2))))]
        for idx in range(1, len(words)):
            words[int(rng.integers(max(0, idx - 4), idx))].add_child(words[idx])
        return words[0], torch.from_numpy(rng.integers(0, WORDS, len(words)))

    targets = torch.from_numpy(rng.dirichlet([1.0] * CLASSES, (count, 1))).to(torch.get_default_dtype())
    return [(*sentence(), *sentence(), target) for target in targets]


def loss(result, ltree, linputs, rtree, rinputs, target):
    return nn.KLDivLoss(reduction="batchmean")(result, target)


NETWORK = Network(
    "dependency trees, child-sum TreeLSTM (Tai et al. 2015)", SimilarityTreeLSTM, samples, loss,
    ((ChildSumTreeLSTM, "node_forward"), (Similarity, "forward")),
)  # fmt: skip
