"""What all networks in PyTorch that EdBatch is measured against have in common.

They have the parameters and equations of a model of `edbatch.models`, and are written as fast as they can be while they
stay what they are, so that EdBatch is compared with the best: one upload of indices per mini-batch, no waiting for the
device, products with what is known beforehand in one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import edbatch as eb


class Peer(nn.Module):
    """A network with a softmax at every place, over mini-batches.

    What is known of a sample before training begins is found by `prepare`, of a mini-batch by `batch`; what runs on the
    device, and nothing else, is `hidden`. A mini-batch ends with the labels, in the order in which `hidden` gives the
    places.

    Args:
        model: whose parameters are copied.
        device: where they live.
        compiled: whether what runs once per level or position goes through `torch.compile`.
    """

    compilable: tuple[str, ...] = ()  # methods that run once per level or position

    def __init__(self, model: eb.ParameterCollection, device: str = "cpu", compiled: bool = False) -> None:
        super().__init__()
        self.device, self.compiled = torch.device(device), compiled
        self.tables = {parameter.name for parameter in model if isinstance(parameter, eb.LookupParameters)}
        values = {parameter.name: torch.tensor(parameter.value()) for parameter in model}
        for name, value in self.arranged(values).items():
            self.register_parameter(name.replace(".", "_"), nn.Parameter(value.contiguous().to(self.device)))
        self.dim = self.W_out.shape[1]
        if compiled:
            for name in self.compilable:
                setattr(self, name, torch.compile(getattr(self, name), dynamic=True))

    def arranged(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """The model's values as this network keeps them."""
        return values

    def original(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """The reverse of `arranged`, names with underscores for points."""
        return values

    def gradients(self) -> dict[str, np.ndarray]:
        """By the names of the model's parameters, underscores for points; where there is none, zeros."""
        found = {}
        for name, parameter in self.named_parameters():
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            found[name] = gradient.to_dense() if gradient.is_sparse else gradient
        return {name: value.cpu().numpy() for name, value in self.original(found).items()}

    def sparse_gradients(self) -> dict[str, np.ndarray]:
        """Like `gradients`, but of tables the rows that were looked up, and which these are. For the CPU."""
        found, rows = {}, {}
        for name, parameter in self.named_parameters():
            gradient = parameter.grad
            if gradient is not None and gradient.is_sparse:
                gradient = gradient.coalesce()
                rows[f"{name}, rows"] = gradient.indices()[0].numpy()
                gradient = gradient.values()
            found[name] = torch.zeros_like(parameter) if gradient is None else gradient
        return {name: value.numpy() for name, value in self.original(found).items()} | rows

    def lookup(self, table: Tensor, rows: Tensor) -> Tensor:
        """Embeddings. On the CPU their gradient is sparse, so that an update costs what was looked up.

        On a GPU a dense one is faster, whose indices nobody has to sort and wait for, and a CUDA graph can hold it.
        """
        return F.embedding(rows, table, sparse=self.device.type == "cpu")

    def prepare(self, sample: Any) -> Any:
        """What is known of a sample before training begins."""
        raise NotImplementedError

    def batch(self, prepared: Sequence[Any]) -> Any:
        """Indices of one mini-batch, on the device; the last are the labels."""
        raise NotImplementedError

    def hidden(self, batch: Any) -> Tensor:
        """Hidden states [places, dim]."""
        raise NotImplementedError

    def scores(self, h: Tensor) -> Tensor:
        """Scores of the labels [places, labels]."""
        return F.linear(h, self.W_out, self.b_out)

    def probabilities(self, batch: Any) -> Tensor:
        """Of all labels, at every place."""
        return torch.softmax(self.scores(self.hidden(batch)), 1)

    def loss(self, batch: Any) -> Tensor:
        """The sum of the cross-entropies of a mini-batch."""
        return F.cross_entropy(self.scores(self.hidden(batch)), batch[-1], reduction="sum")

    def adam(self, lr: float, eps: float = 1e-8) -> list[torch.optim.Optimizer]:
        """Adam as `edbatch.Adam` has it: of tables, only the rows that were looked up. For the CPU.

        But for one thing: `SparseAdam` adds eps before it corrects the bias, not after.
        """
        tables, dense = self._tables_and_others()
        return [torch.optim.Adam(dense, lr=lr, eps=eps, fused=True), torch.optim.SparseAdam(tables, lr=lr, eps=eps)]

    def sgd(self, lr: float) -> list[torch.optim.Optimizer]:
        """Plain gradient descent."""
        tables, dense = self._tables_and_others()
        if self.device.type != "cpu":
            return [torch.optim.SGD(dense + tables, lr=lr, fused=True)]
        return [torch.optim.SGD(dense, lr=lr, fused=True), torch.optim.SGD(tables, lr=lr)]

    def _tables_and_others(self) -> tuple[list[Any], list[Any]]:
        found = {name: parameter for name, parameter in self.named_parameters() if parameter.requires_grad}
        tables = [parameter for name, parameter in found.items() if name in self.tables]
        return tables, [parameter for name, parameter in found.items() if name not in self.tables]


class PerSample(Peer):
    """One sample after the other, as PyTorch is used where structure differs per sample."""

    def of_sample(self, one: Any) -> Tensor:
        """Hidden states [places, dim] of one sample."""
        raise NotImplementedError

    def probabilities(self, batch: Sequence[Any]) -> Tensor:
        """Of all labels, at every place."""
        return torch.cat([torch.softmax(self.scores(self.of_sample(one)), 1) for one in batch])

    def loss(self, batch: Sequence[Any]) -> Tensor:
        """The sum over a mini-batch; the classifier runs once per sample."""
        losses = [F.cross_entropy(self.scores(self.of_sample(one)), one[-1], reduction="sum") for one in batch]
        return torch.stack(losses).sum()


def lstm_cell(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden and cell states [..., dim] of gates [..., 4 dim] in the order input, forget, output, update."""
    dim = c.shape[-1]
    i, f, o = torch.sigmoid(gates[..., : 3 * dim]).chunk(3, -1)
    c = f * c + i * torch.tanh(gates[..., 3 * dim :])
    return o * torch.tanh(c), c


def uploaded(arrays: Sequence[np.ndarray], device: torch.device) -> list[Tensor]:
    """Integer arrays on the device, by one copy that nobody waits for."""
    if device.type == "cpu":
        return [torch.from_numpy(np.ascontiguousarray(array, np.int64)) for array in arrays]
    ends = np.cumsum([0, *map(len, arrays)]).tolist()
    pinned = torch.empty(ends[-1], dtype=torch.int64, pin_memory=True)
    np.concatenate(arrays, out=pinned.numpy(), casting="unsafe")
    whole = pinned.to(device, non_blocking=True)
    return [whole[begin:end] for begin, end in pairwise(ends)]


def training_step(
    peer: Peer, optimizers: Sequence[torch.optim.Optimizer], numbers: Callable[[], Any] = nullcontext
) -> Callable[[Any], None]:
    """Forward, backward, update, of a mini-batch; `numbers` makes the context of forward runs, `torch.autocast` say."""

    def step(batch: Any) -> None:
        for optimizer in optimizers:
            optimizer.zero_grad()
        with numbers():
            loss = peer.loss(batch)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()

    return step
