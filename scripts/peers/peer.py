"""What all networks in PyTorch that EdBatch is measured against have in common.

They have the parameters and equations of a model of `edbatch.models`, and are written as fast as they can be while they
stay what they are, so that EdBatch is compared with the best: one upload of indices per mini-batch, no waiting for the
device, products with what is known beforehand in one piece. Samples are `Labelled`, of `edbatch.models.workloads`.
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
    """

    def __init__(self, model: eb.ParameterCollection, device: str = "cpu") -> None:
        super().__init__()
        self.device = torch.device(device)
        tables = {parameter.name for parameter in model if isinstance(parameter, eb.LookupParameters)}
        self.tables = {name.replace(".", "_") for name in tables}
        values = self.arranged({parameter.name: torch.tensor(parameter.value()) for parameter in model})
        self.add_layers(values)
        for name, value in values.items():
            layer, _, end = name.rpartition(".")
            setattr(self.get_submodule(layer), end, nn.Parameter(value.contiguous().to(self.device)))
        self.dim = self.W_out.shape[1]

    def arranged(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """The model's values, or gradients, as this network's parameters have them, by their names."""
        return {name.replace(".", "_"): value for name, value in values.items()}

    def add_layers(self, values: dict[str, Tensor]) -> None:
        """Layers that parameters with points in their names belong to."""

    def gradients(self) -> dict[str, np.ndarray]:
        """By parameter; where there is none, zeros."""
        found = {}
        for name, parameter in self.named_parameters():
            if parameter.requires_grad:
                gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                found[name] = gradient.to_dense().cpu().numpy()
        return found

    def lookup(self, table: Tensor, rows: Tensor) -> Tensor:
        """Embeddings. On the CPU their gradient is sparse, so that an update costs what was looked up.

        On a GPU a dense one is faster, whose indices nobody has to sort and wait for.
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

    def probabilities(self, batch: Any) -> Tensor:
        """Of all labels, at every place."""
        return torch.softmax(F.linear(self.hidden(batch), self.W_out, self.b_out), 1)

    def loss(self, batch: Any) -> Tensor:
        """The sum of the cross-entropies of a mini-batch."""
        return F.cross_entropy(F.linear(self.hidden(batch), self.W_out, self.b_out), batch[-1], reduction="sum")

    def optimizers(self, lr: float, adam: bool = False) -> list[torch.optim.Optimizer]:
        """Plain gradient descent, or Adam; on the CPU of tables only the rows that were looked up are updated."""
        found = {name: parameter for name, parameter in self.named_parameters() if parameter.requires_grad}
        tables = [found.pop(name) for name in self.tables]
        if self.device.type != "cpu":
            return [(torch.optim.Adam if adam else torch.optim.SGD)([*found.values(), *tables], lr=lr, fused=True)]
        of_tables = (torch.optim.SparseAdam if adam else torch.optim.SGD)(tables, lr=lr)
        return [(torch.optim.Adam if adam else torch.optim.SGD)(found.values(), lr=lr, fused=True), of_tables]


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


def joined(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """One below the other, and which each row is of."""
    return np.concatenate(arrays), np.repeat(np.arange(len(arrays)), list(map(len, arrays)))


def forward_run(peer: Peer, numbers: Callable[[], Any] = nullcontext) -> Callable[[Any], Tensor]:
    """Forward to all probabilities of a mini-batch; `numbers` makes the context of runs, `torch.autocast` say."""

    def run(batch: Any) -> Tensor:
        with torch.inference_mode(), numbers():
            return peer.probabilities(batch)

    return run


def training_step(
    peer: Peer, optimizers: Sequence[torch.optim.Optimizer], numbers: Callable[[], Any] = nullcontext
) -> Callable[[Any], None]:
    """Forward, backward, update, of a mini-batch."""

    def step(batch: Any) -> None:
        for optimizer in optimizers:
            optimizer.zero_grad()
        with numbers():
            loss = peer.loss(batch)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()

    return step
