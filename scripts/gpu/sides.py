"""PyTorch's sides of a point: per sample, batched by hand, compiled, and captured as CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from edbatch.experiments.peers.own import LR, Own
from edbatch.experiments.peers.peer import Peer, training_step
from edbatch.experiments.peers.table import PEERS
from edbatch.experiments.peers.tasks import Task
from scripts.gpu.clock import Side
from scripts.gpu.points import PER_SAMPLE, Point

LARGEST_PER_SAMPLE = 64  # mini-batch: more takes seconds and tells nothing new

Maker = Callable[..., Side]


def peers(point: Point, task: Task) -> Iterator[tuple[str, Maker]]:
    """Their names, and what makes them."""
    competing = PEERS[task.workload]
    if point.per_sample and point.batch <= LARGEST_PER_SAMPLE:
        yield PER_SAMPLE, lambda *given: _eager(competing.per_sample, point, *given)
    for name, kind in competing.by_hand.items():
        yield f"PyTorch {name}", lambda *given, kind=kind: _eager(kind, point, *given)
        if point.graphed:
            yield f"PyTorch {name}, CUDA graph", lambda *given, kind=kind: _graphed(kind, point, *given)
        if point.compiled and kind.compilable:
            yield f"PyTorch {name}, compiled", lambda *given, kind=kind: _eager(kind, point, *given, compiled=True)


def _runner(peer: Peer, training: bool, numbers: Callable[[], Any]) -> Callable[[Any], Any]:
    if training:
        return training_step(peer, peer.sgd(LR), numbers)

    def forward(batch: Any) -> Any:
        with torch.inference_mode(), numbers():
            return peer.probabilities(batch)

    return forward


def _eager(
    kind: type[Peer], point: Point, name: str, own: Own, mini_batches: list[Any], device: str, numbers: Any,
    compiled: bool = False,
) -> Side:  # fmt: skip
    peer = kind(own.model, device, compiled)

    def prepare(number: int) -> Any:
        return peer.batch([peer.prepare(sample) for sample in mini_batches[number]])

    return Side(name, prepare, _runner(peer, point.training, numbers))


def _graphed(
    kind: type[Peer], point: Point, name: str, own: Own, mini_batches: list[Any], device: str, numbers: Any
) -> Side:
    """The best case: each mini-batch's own structure was captured before the clock runs, and is replayed."""
    peer = kind(own.model, device)
    run = _runner(peer, point.training, numbers)
    graphs, batches = [], []
    pool, stream, before = torch.cuda.graph_pool_handle(), torch.cuda.Stream(), torch.cuda.current_stream()
    try:
        for samples in mini_batches:
            batch = peer.batch([peer.prepare(sample) for sample in samples])
            stream.wait_stream(before)
            with torch.cuda.stream(stream):
                run(batch)
            before.wait_stream(stream)
            peer.zero_grad(set_to_none=True)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool, stream=stream):
                run(batch)
            graphs.append(graph)
            batches.append(batch)  # its memory is what the graph reads
    finally:
        torch.cuda.set_stream(before)  # PyTorch leaves the other one current where a capture fails

    def replay(graph: Any) -> Any:
        graph.replay()
        return batches

    return Side(name, graphs.__getitem__, replay)
