"""N-ary and 2-Type TreeLSTM against their equations in PyTorch."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.models import NaryTreeLSTM, TreeLSTM2Type
from tests.models.against_torch import check, check_policies, check_training, new_model
from tests.models.test_tree_rnn import TREES

DIM = 3
INPUTS = np.random.default_rng(0).normal(size=(6, 2))
BELOW = [(), (), (), (0, 1, 2), (1,), (3, 4)]


def test_nary():
    model = new_model()
    lstm = NaryTreeLSTM(model, input_dim=2, dim=DIM, places=3, name="t")

    def build():
        nodes = []
        for x, below in zip(INPUTS, BELOW, strict=True):
            nodes.append(lstm.node(eb.input(x), [nodes[child] for child in below]))
        return [vector for node in nodes for vector in node]

    def wanted(torch, p):
        W, b, U = (p[f"t.{name}"] for name in "WbU")
        nodes = []
        for x, below in zip(torch.from_numpy(INPUTS), BELOW, strict=True):
            f, i, o, u = (W @ x + b).split(DIM)
            c = 0
            rows = U.split(DIM)
            for place, child in enumerate(below):
                h = nodes[child][0]
                columns = slice(place * DIM, (place + 1) * DIM)
                i, o, u = (gate + rows[3 + k][:, columns] @ h for k, gate in enumerate((i, o, u)))
            for place, child in enumerate(below):
                gate = f
                for other, sibling in enumerate(below):
                    gate = gate + rows[place][:, other * DIM : (other + 1) * DIM] @ nodes[sibling][0]
                c = c + torch.sigmoid(gate) * nodes[child][1]
            c = c + torch.sigmoid(i) * torch.tanh(u)
            nodes.append((torch.sigmoid(o) * torch.tanh(c), c))
        return [vector for node in nodes for vector in node]

    check(model, build, wanted)
    check_policies(build)
    check_training(model, lambda: eb.sum([eb.sum((h - 0.3) * (h - 0.3)) for h in build()]))


def test_at_most_n_children():
    lstm = NaryTreeLSTM(eb.ParameterCollection(), input_dim=2, dim=DIM, places=2)
    with eb.Graph(), pytest.raises(eb.EdBatchError, match="at most 2 children, got 3"):
        lstm.node(eb.zeros(2), [(eb.zeros(DIM), eb.zeros(DIM))] * 3)
    with pytest.raises(eb.EdBatchError, match="places=0"):
        NaryTreeLSTM(eb.ParameterCollection(), input_dim=2, dim=DIM, places=0)


def test_two_types():
    model = new_model()
    lstm = TreeLSTM2Type(model, words=8, labels=3, dim=DIM, seed=10)
    kinds = [kind for words, _, _ in TREES for word, kind in zip(words, lstm.types(words), strict=True) if word is None]
    assert set(kinds) == {0, 1}

    def build():
        return [h for words, children, _ in TREES for h in lstm.hidden(words, children)]

    def wanted(torch, p):
        found = []
        for words, children, _ in TREES:
            nodes = []
            for word, below, kind in zip(words, children, lstm.types(words), strict=True):
                if word is not None:
                    i, o, u = (p["W"] @ p["embed"][word] + p["b_leaf"]).split(DIM)
                    c = torch.sigmoid(i) * torch.tanh(u)
                else:
                    (h1, c1), (h2, c2) = (nodes[child] for child in below)
                    U, b = (p["U_second"], p["b_second"]) if kind else (p["U"], p["b"])
                    i, o, f1, f2, u = (U @ torch.cat([h1, h2]) + b).split(DIM)
                    c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f1) * c1 + torch.sigmoid(f2) * c2
                nodes.append((torch.sigmoid(o) * torch.tanh(c), c))
            found += [h for h, _ in nodes]
        return found

    check(model, build, wanted)
    check_policies(build)
    check_training(model, lambda: eb.sum([lstm.loss(*tree) for tree in TREES]), steps=60)


def test_types_follow_from_seed_and_tree():
    words = [*range(1, 40), None]
    one, other = (TreeLSTM2Type(eb.ParameterCollection(), 50, 3, 2, seed=seed) for seed in (1, 2))
    assert one.types(words) == one.types([None if word is None else np.int64(word) for word in words])
    assert one.types(words) != other.types(words)
    assert one.types(words) != one.types([5, *words[1:]])
    assert 8 < sum(one.types(words)) < 32
    with pytest.raises(eb.EdBatchError, match="seed=-1"):
        TreeLSTM2Type(eb.ParameterCollection(), 50, 3, 2, seed=-1)
