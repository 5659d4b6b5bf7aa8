"""The equations of TreeLSTM, TreeLSTM-2Type, TreeGRU and MV-RNN in PyTorch, each per sample and by level."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from edbatch.experiments.peers.samples import TreeSample
from edbatch.experiments.peers.trees import State, TreeByLevel, TreePeer, TreePerSample
from edbatch.models.tree_lstm_variants import node_types


class _TreeLSTM(TreePeer):
    compilable: tuple[str, ...] = ("leaf", "compose")

    def inputs(self, words: Tensor) -> State:
        """Embeddings [n, dim]."""
        return (self.lookup(self.embed, words),)

    def leaf(self, x: Tensor) -> State:
        """Hidden and cell states [n, dim]."""
        gates = F.linear(x, self.W, self.b_leaf)
        i, o = torch.sigmoid(gates[:, : 2 * self.dim]).chunk(2, 1)
        c = i * torch.tanh(gates[:, 2 * self.dim :])
        return o * torch.tanh(c), c

    @staticmethod
    def of_two(left: State, right: State) -> State:
        """Hidden states beside one another, and cell states."""
        return torch.cat([left[0], right[0]], 1), left[1], right[1]

    @staticmethod
    def of_pairs(pairs: State) -> State:
        """The same without a copy."""
        h, c = pairs
        return h.view(len(h) // 2, -1), c[::2], c[1::2]

    def compose(self, h: Tensor, c1: Tensor, c2: Tensor) -> State:
        """Hidden and cell states [n, dim]; h [n, 2 dim] is the children's hidden states side by side."""
        return self.gated(F.linear(h, self.U, self.b), c1, c2)

    def gated(self, gates: Tensor, c1: Tensor, c2: Tensor) -> State:
        """What the gates [n, 5 dim] make of cell states."""
        i, o, f1, f2 = torch.sigmoid(gates[:, : 4 * self.dim]).chunk(4, 1)
        c = i * torch.tanh(gates[:, 4 * self.dim :]) + f1 * c1 + f2 * c2
        return o * torch.tanh(c), c


class TreeLSTMPerSample(TreePerSample, _TreeLSTM):
    """TreeLSTM, node by node."""


class TreeLSTMByLevel(TreeByLevel, _TreeLSTM):
    """TreeLSTM, level by level."""


class _TwoTypes(_TreeLSTM):
    compilable = ("leaf", "compose", "compose_second")

    def kinds(self, sample: TreeSample) -> Sequence[int]:
        """As `edbatch.models.TreeLSTM2Type` draws them, by the seed that it has if none is given."""
        return node_types(sample.words, seed=0)

    def composers(self) -> tuple[Callable[..., State], ...]:
        """Of the two types."""
        return self.compose, self.compose_second

    def compose_second(self, h: Tensor, c1: Tensor, c2: Tensor) -> State:
        """States of nodes of the second type."""
        return self.gated(F.linear(h, self.U_second, self.b_second), c1, c2)


class TreeLSTM2TypePerSample(TreePerSample, _TwoTypes):
    """TreeLSTM-2Type, node by node."""


class TreeLSTM2TypeByLevel(TreeByLevel, _TwoTypes):
    """TreeLSTM-2Type, level by level, the two types of a level one after the other."""


class _TreeGRU(TreePeer):
    compilable = ("leaf", "compose")

    def arranged(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """Without the prefix that the layer's parameters have."""
        return {name.removeprefix("tree."): value for name, value in values.items()}

    def original(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """With it."""
        own = ("embed", "W_out", "b_out")
        return {name if name in own else f"tree_{name}": value for name, value in values.items()}

    def inputs(self, words: Tensor) -> State:
        """Embeddings [n, dim]."""
        return (self.lookup(self.embed, words),)

    def leaf(self, x: Tensor) -> State:
        """States [n, dim]."""
        z, n = F.linear(x, self.W, self.b_leaf).chunk(2, 1)
        return (torch.sigmoid(z) * torch.tanh(n),)

    @staticmethod
    def of_two(left: State, right: State) -> State:
        """Beside one another."""
        return (torch.cat([left[0], right[0]], 1),)

    @staticmethod
    def of_pairs(pairs: State) -> State:
        """The same without a copy."""
        return (pairs[0].view(len(pairs[0]) // 2, -1),)

    def compose(self, h: Tensor) -> State:
        """States [n, dim]; h [n, 2 dim] is the children's side by side."""
        d = self.dim
        gates = F.linear(h, self.U, self.b)
        new = torch.tanh(F.linear(torch.sigmoid(gates[:, : 2 * d]) * h, self.U_n, self.b_n))
        z1, z2, z3 = torch.softmax(gates[:, 2 * d :].unflatten(1, (3, d)), 1).unbind(1)
        return (z1 * h[:, :d] + z2 * h[:, d:] + z3 * new,)


class TreeGRUPerSample(TreePerSample, _TreeGRU):
    """TreeGRU, node by node."""


class TreeGRUByLevel(TreeByLevel, _TreeGRU):
    """TreeGRU, level by level."""


class _MVRNN(TreePeer):
    """Matrices are kept transposed: those of a node's children side by side are one operand of one product for all."""

    compilable = ("compose",)

    def arranged(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """Words' matrices transposed, each a row."""
        return values | {"matrices": values["matrices"].transpose(1, 2).flatten(1)}

    def original(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """As the model has them."""
        square = values["matrices"].unflatten(1, (self.dim, self.dim))
        return values | {"matrices": square.transpose(1, 2)}

    def inputs(self, words: Tensor) -> State:
        """Vectors [n, dim] and matrices [n, dim, dim]."""
        rows = self.lookup(self.matrices, words)
        return self.lookup(self.vectors, words), rows.view(-1, self.dim, self.dim)

    def leaf(self, a: Tensor, A: Tensor) -> State:
        """They are the state."""
        return a, A

    @staticmethod
    def of_two(left: State, right: State) -> State:
        """Vectors and matrices of left and right children."""
        return left[0], right[0], left[1], right[1]

    @staticmethod
    def of_pairs(pairs: State) -> State:
        """The same."""
        a, A = pairs
        return a[::2], a[1::2], A[::2], A[1::2]

    def compose(self, a: Tensor, b: Tensor, A: Tensor, B: Tensor) -> State:
        """Vectors [n, dim] and matrices [n, dim, dim], transposed as they are given."""
        changed = torch.cat([torch.bmm(a.unsqueeze(1), B), torch.bmm(b.unsqueeze(1), A)], 2).squeeze(1)
        return torch.tanh(F.linear(changed, self.W)), F.linear(torch.cat([A, B], 2), self.W_M)


class MVRNNPerSample(TreePerSample, _MVRNN):
    """MV-RNN, node by node."""


class MVRNNByLevel(TreeByLevel, _MVRNN):
    """MV-RNN, level by level."""
