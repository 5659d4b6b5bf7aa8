"""PyTorch's sides of a contest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from edbatch.experiments.measure import message
from edbatch.experiments.peers.own import LR, Own
from edbatch.experiments.peers.peer import Peer, training_step
from edbatch.experiments.peers.sides import Answer, Contest, Point
from edbatch.experiments.peers.table import PEERS
from edbatch.experiments.peers.tasks import Task


def add(contest: Contest, task: Task, point: Point) -> None:
    """Add them, and why there are no others."""
    model = Own(task, point.hidden, seed=point.seed).model
    peers = PEERS[task.workload]
    kinds = {"pytorch per sample": peers.per_sample}
    kinds |= {f"pytorch by hand, {how}": kind for how, kind in peers.by_hand.items()}
    for name, kind in kinds.items():
        _add(contest, name, kind(model), task, point)
        if not point.compiled:
            contest.missing[f"{name} compiled"] = "not asked for"
        elif not kind.compilable:
            contest.missing[f"{name} compiled"] = "its LSTMs are kernels of the library, which nothing is compiled of"
        else:
            _add_compiled(contest, f"{name} compiled", kind(model, compiled=True), task, point)


def _add(contest: Contest, name: str, peer: Peer, task: Task, point: Point) -> None:
    prepared = [peer.prepare(sample) for sample in task.samples]
    contest.answers[name] = partial(_answer, peer, task.samples[: point.batch], point)
    contest.sides[name] = point.mixed(_step(peer, point), prepared)


def _add_compiled(contest: Contest, name: str, peer: Peer, task: Task, point: Point) -> None:
    """What does not compile here is missing."""
    try:
        _answer(peer, task.samples[: point.batch], point)
    except Exception as error:
        contest.missing[name] = message(error)
    else:
        _add(contest, name, peer, task, point)


def _step(peer: Peer, point: Point) -> Callable[[Sequence[Any]], None]:
    step = training_step(peer, peer.sgd(LR))

    def run(prepared: Sequence[Any]) -> None:
        _use(point.threads)
        batch = peer.batch(prepared)
        if point.training:
            step(batch)
        else:
            with torch.inference_mode():
                peer.probabilities(batch)

    return run


def _use(threads: int) -> None:
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)


def _answer(peer: Peer, samples: Sequence[Any], point: Point) -> Answer:
    _use(point.threads)
    batch = peer.batch([peer.prepare(sample) for sample in samples])
    with torch.inference_mode():
        probabilities = peer.probabilities(batch).numpy()
    gradients = {}
    if point.training:
        peer.zero_grad()
        peer.loss(batch).backward()
        gradients = peer.sparse_gradients()
        peer.zero_grad()
    return Answer(probabilities[np.argsort(_places(peer, samples))], gradients)


def _places(peer: Peer, samples: Sequence[Any]) -> np.ndarray:
    """In the order in which the network gives the places, the number of each: it gives labels in the same order."""
    numbered, n = [], 0
    for sample in samples:
        numbered.append(peer.prepare(sample._replace(**{sample._fields[-1]: range(n, n + len(sample[-1]))})))
        n += len(sample[-1])
    batch: Any = peer.batch(numbered)
    return np.concatenate([one[-1].numpy() for one in batch]) if isinstance(batch, list) else batch[-1].numpy()
