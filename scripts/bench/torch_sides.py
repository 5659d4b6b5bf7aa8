"""PyTorch's sides of a contest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from edbatch.models.workloads import Labelled
from scripts.peers import lattices, sequences, trees
from scripts.peers.peer import Peer, forward_run, training_step

PEERS = {**trees.PEERS, **sequences.PEERS, **lattices.PEERS}


def kinds(name: str) -> dict[str, type[Peer]]:
    """The networks of a workload."""
    torch.set_num_threads(1)
    return {f"pytorch {how}": kind for how, kind in PEERS[name].items()}


def step_of(peer: Peer, training: bool, lr: float, adam: bool) -> Callable[[Sequence[Any]], Any]:
    """What runs a mini-batch of prepared samples."""
    run = training_step(peer, peer.optimizers(lr, adam)) if training else forward_run(peer)
    return lambda prepared: run(peer.batch(prepared))


def answers(
    peer: Peer, samples: Sequence[Labelled], expected: dict[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """What a network says of a mini-batch, and what EdBatch does, by the network's names."""
    batch = peer.batch([peer.prepare(sample) for sample in samples])
    loss = peer.loss(batch)
    loss.backward()
    places = np.argsort(_places(peer, samples))
    found = {"": forward_run(peer)(batch).cpu().numpy()[places], "loss": loss.detach().cpu().numpy()}
    found |= peer.gradients()
    peer.zero_grad()
    own = {name: torch.tensor(value) for name, value in expected.items() if name not in ("", "loss")}
    arranged = {name: value.numpy() for name, value in peer.arranged(own).items()}
    return found, {name: expected[name] for name in ("", "loss")} | arranged


def _places(peer: Peer, samples: Sequence[Labelled]) -> np.ndarray:
    """In the order in which the network gives the places, the number of each: it gives labels in the same order."""
    numbered, n = [], 0
    for sample in samples:
        numbered.append(peer.prepare(sample._replace(right=range(n, n + len(sample.right)))))
        n += len(sample.right)
    return peer.batch(numbered)[-1].cpu().numpy()
