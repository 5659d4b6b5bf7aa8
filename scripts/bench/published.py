"""Published networks with code for one sample, as it is, by `edbatch.torch.Batched`, beside PyTorch sample by sample.

A step of training: forward, loss, backward, of the thread's processor time. Gradients are compared in float64. Marked
is with two or three functions as `edbatch.torch.cell`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from edbatch.torch import Batched, cell
from scripts.bench.measure import interleaved
from scripts.bench.report import Tables, command
from tests.torch.published import NETWORKS
from tests.torch.published.network import Network

MINI_BATCHES = 3


def reads_of(graph: Any) -> int:
    """How often values were read before all was recorded."""
    return len(graph._taken_over().ran) - 1


def gradients(module: Any, losses: list[torch.Tensor]) -> list[torch.Tensor]:
    """Of all parameters, of the mean loss."""
    module.zero_grad()
    torch.stack(losses).mean().backward()
    return [torch.zeros_like(p) if p.grad is None else p.grad for p in module.parameters()]


def difference(network: Network, size: int, batch: int, nodes: int) -> float:
    """The worst of the gradients' entries, each over the largest of its parameter, in float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    try:
        module, samples = network.make(size), network.samples(np.random.default_rng(0), batch, nodes)
        sides = (module, network.with_cells(module, cell))
        theirs, found = gradients(module, network.losses(module, samples)), []
        for one in sides:
            ours = gradients(module, network.losses_together(Batched(one), samples))
            found += [
                (a - b).abs().max() / (b.abs().max() if b.any() else 1) for a, b in zip(ours, theirs, strict=True)
            ]
        return float(torch.stack(found).max())  # NaN, if one is
    finally:
        torch.set_default_dtype(before)


def row_of(name: str, size: int, batch: int, nodes: int, rounds: int) -> dict[str, Any]:
    """One network."""
    network = NETWORKS[name]
    torch.manual_seed(0)
    module, random = network.make(size), np.random.default_rng(0)
    others = [module, network.with_cells(module, cell)] if network.marked else [module]
    mini_batches = [network.samples(random, batch, nodes) for _ in range(MINI_BATCHES)]
    batched = dict(zip(("Batched", "marked"), map(Batched, others), strict=False))

    def step(losses: Callable[[Any, Any], Any], of: Any) -> Callable[[int], None]:
        def run(number: int) -> None:
            module.zero_grad()
            torch.stack(losses(of, mini_batches[number % MINI_BATCHES])).mean().backward()

        return run

    sides = {"per sample": step(network.losses, module)}
    sides |= {side: step(network.losses_together, of) for side, of in batched.items()}
    runs = interleaved(sides, rounds, given=lambda number: number, warm_ups=MINI_BATCHES, limit=60)
    report = batched["Batched"].last.report()
    ms = {side: of.ms() for side, of in runs.items()}
    found = {"network": name, "kind": network.kind, "nodes": report.nodes, "batches": report.batches}
    found |= {"reads": reads_of(batched["Batched"].last), "worst difference": difference(network, size, batch, nodes)}
    found |= {f"{side}, ms": of for side, of in ms.items()}
    return found | {
        f"times, {side}": ms["per sample"] / ms[side] if side in ms else "" for side in ("Batched", "marked")
    }


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    torch.set_num_threads(1)
    names = tqdm(given.network, disable=None)
    rows = [row_of(name, given.hidden, given.batch, given.nodes, given.rounds) for name in names]
    return {f"A step of training, hidden {given.hidden}, batch {given.batch}, made-up data": rows}


main = command(
    __doc__,
    tables,
    network=tuple(NETWORKS),
    hidden={"type": int, "default": 100},
    batch={"type": int, "default": 32},
    nodes={"type": int, "default": 24, "help": "of a sample, about"},
)
