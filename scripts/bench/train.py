"""Training a TreeLSTM on the Stanford Sentiment Treebank: EdBatch, and PyTorch per sample and batched by hand.

    EDBATCH_DATA=... python -m scripts.bench.train [--json] [--rounds 5] [--hidden 64] [--batch 25] [--trees 250]

Needs PyTorch (the extra `bench`). All train on the same mini-batches with a loss at every node, one thread, in turns;
ratios are of the thread's processor time, but for several threads, which the clock times.
A round is the first mini-batches of an epoch, about `--trees` trees; the time of an epoch is extrapolated from it by
the number of nodes. Of EdBatch, a step is all there is: recording the graph in Python, scheduling, planning, forward,
backward, update; once more with samples that are replayed (`eb.replay`), mixed anew each round. The hand-batched
peer's indices are made anew for every mini-batch too, from what it knows of each
tree before the clock runs. Without EDBATCH_DATA the trees are made up.
"""

from __future__ import annotations

import argparse
import gc
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

import edbatch as eb
from edbatch.experiments.measure import interleaved
from edbatch.experiments.mini_batches import as_tuples
from edbatch.experiments.peers.own import Own
from edbatch.experiments.peers.peer import Peer, training_step
from edbatch.experiments.peers.tasks import MODELS, Task
from edbatch.experiments.peers.tree_networks import TreeLSTMByLevel, TreeLSTMPerSample
from scripts import data_folder
from scripts.bench.mini_batches import source
from scripts.bench.report import Tables, command

PEERS: dict[str, type[Peer]] = {"PyTorch per sample": TreeLSTMPerSample, "PyTorch by level": TreeLSTMByLevel}
MOST_BACKWARD = {256: 1.6}  # times forward, asked
MOST_MEMORY = 2  # times PyTorch's peak, asked
ASKED = {("PyTorch per sample", 64): 25, ("PyTorch per sample", 256): 25,
         ("PyTorch by level", 64): 2, ("PyTorch by level", 256): 1.4}  # fmt: skip
LR = 1e-4  # Adam's; small, so that many rounds on the same trees stay what training is


def trees() -> Task:
    """EdBatch's and PyTorch's TreeLSTM, and trees."""
    return MODELS["TreeLSTM"](data_folder())


def started(task: Task, hidden: int, replays: bool = False) -> Own:
    """EdBatch's side, trained by Adam."""
    return Own(task, hidden, optimizer=lambda model: eb.Adam(model, lr=LR), replays=replays)


def backward(own: Own, mini_batch: list[Any]) -> None:
    """Forward and backward, from recording on."""
    own.loss(mini_batch).backward()
    own.model.zero_grad()


def over(step: Callable[[Any], Any], mini_batches: list[Any]) -> Callable[[], None]:
    """All mini-batches, one after the other."""

    def run() -> None:
        for mini_batch in mini_batches:
            step(mini_batch)

    return run


def replayed(own: Own, samples: list[Any], batch: int) -> Callable[[], None]:
    """An epoch over samples that are recorded once; mixed anew each time, as in training."""
    mixed, random = [as_tuples(sample) for sample in samples], Random(0)

    def run() -> None:
        random.shuffle(mixed)
        for at in range(0, len(mixed), batch):
            own.step(mixed[at : at + batch])

    return run


def torch_step(peer: Peer) -> Callable[[Any], None]:
    """PyTorch's step of training, of what is known of the samples of a mini-batch."""
    step = training_step(peer, peer.adam(LR))
    return lambda prepared: step(peer.batch(prepared))


def speeds(task: Task, hidden: int, batch: int, limit: int, rounds: int) -> list[dict[str, Any]]:
    """Trees per second of all, and EdBatch's backward over its forward."""
    measured = task.samples[: max(batch, limit // batch * batch)]
    mini_batches = [measured[at : at + batch] for at in range(0, len(measured), batch)]
    own = started(task, hidden)
    functions = {
        "EdBatch": over(own.step, mini_batches),
        "EdBatch, replayed": replayed(started(task, hidden, replays=True), measured, batch),
        "forward": over(lambda mini_batch: own.loss(mini_batch).value(), mini_batches),
        "forward and backward": over(lambda mini_batch: backward(own, mini_batch), mini_batches),
    }
    for name, kind in PEERS.items():
        peer = kind(own.model)
        prepared = [[peer.prepare(sample) for sample in mini_batch] for mini_batch in mini_batches]
        functions[name] = over(torch_step(peer), prepared)
    runs = interleaved(functions, rounds)
    nodes = sum(len(tree.words) for tree in task.samples) / sum(len(tree.words) for tree in measured)
    cpu = {name: median(of.cpu) for name, of in runs.items()}
    rows = [
        {
            "hidden": hidden,
            "batch": batch,
            "trained by": name,
            "trees/s": len(measured) / runs[name].seconds,
            **runs[name].ms(len(mini_batches), "ms per step"),
            "epoch, s (extrapolated)": runs[name].seconds * nodes,
            "EdBatch is faster, times": cpu[name] / cpu["EdBatch"],
            "replayed, times": cpu[name] / cpu["EdBatch, replayed"],
            "asked": ASKED.get((name, hidden), ""),
        }
        for name in ("EdBatch", "EdBatch, replayed", *PEERS)
    ]
    rows[0]["backward / forward"] = cpu["forward and backward"] / cpu["forward"] - 1
    rows[0]["asked"] = MOST_BACKWARD.get(hidden, "")
    return rows


def with_threads(task: Task, hidden: int, batch: int, rounds: int, threads: int = 2) -> dict[str, Any]:
    """EdBatch and PyTorch by level, several threads each: the fastest rounds, since others' work only adds to them."""
    mini_batch = task.samples[:batch]
    own, again = started(task, hidden), started(task, hidden, replays=True)
    peer = TreeLSTMByLevel(own.model)
    step, prepared = torch_step(peer), [peer.prepare(sample) for sample in mini_batch]
    replay = replayed(again, mini_batch, batch)
    functions = {"recorded": lambda: own.step(mini_batch), "replayed": replay, "PyTorch": lambda: step(prepared)}
    torch.set_num_threads(threads)
    try:
        with eb.options(threads=threads):
            runs = interleaved(functions, rounds, warm_ups=3)
    finally:
        torch.set_num_threads(1)
    seconds = {name: min(of.wall) for name, of in runs.items()}
    return {
        "hidden": hidden,
        "batch": batch,
        "threads": threads,
        **{f"{name}, ms": 1e3 * of for name, of in seconds.items()},
        "recorded, times": seconds["PyTorch"] / seconds["recorded"],
        "replayed, times": seconds["PyTorch"] / seconds["replayed"],
        "asked": ASKED.get(("PyTorch by level", hidden), ""),
        "load": os.getloadavg()[0],
    }


def products(task: Task, hidden: int, batch: int, rounds: int) -> dict[str, Any]:
    """The matrix products of one step alone: forward, backward to what was multiplied, and to the parameters.

    Neither side can be faster than its BLAS: NumPy's is what EdBatch calls, PyTorch brings its own.
    """
    peer = TreeLSTMByLevel(started(task, hidden).model)
    levels_of = peer.batch([peer.prepare(sample) for sample in task.samples[:batch]])
    leaves, inner = levels_of.words, [n for (n,) in levels_of.inner]
    levels = [(len(leaves), peer.W), *((n, peer.U) for n in inner if n)]
    random = np.random.default_rng(0)

    def rows(n: int, size: int) -> np.ndarray:
        return random.random((n, size), np.float32)

    forward = [(rows(n, W.shape[1]), W.detach().numpy().T) for n, W in levels]
    backward = [(rows(n, W.shape[0]), W.detach().numpy()) for n, W in levels]
    weights = [(rows(n, W.shape[1]).T, rows(n, W.shape[0])) for n, W in ((len(leaves), peer.W), (sum(inner), peer.U))]
    pairs = forward + backward + weights
    tensors = [tuple(map(torch.from_numpy, pair)) for pair in pairs]
    sides = {"NumPy": lambda: [a @ b for a, b in pairs], "PyTorch": lambda: [a @ b for a, b in tensors]}
    columns = [of.ms(name=f"{name}, ms") for name, of in interleaved(sides, rounds).items()]
    return {"hidden": hidden, "batch": batch, **columns[0], **columns[1]}


def memory(hidden: int, batch: int) -> dict[str, Any]:
    """Peak memory of the first training step on a mini-batch, each in a process of its own, against what is saved."""
    peaks, saved = {}, {}
    for name in ("EdBatch", "PyTorch by level"):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
            peaks[name], saved[name] = processes.submit(peak_of_step, name, hidden, batch).result()
    return {
        "hidden": hidden,
        "batch": batch,
        "saved by EdBatch, MB": saved["EdBatch"] / 1e6,
        "saved by PyTorch by level, MB": saved["PyTorch by level"] / 1e6,
        "peak of EdBatch, MB": peaks["EdBatch"] / 1e6,
        "peak of PyTorch by level, MB": peaks["PyTorch by level"] / 1e6,
        "EdBatch's peak / PyTorch's peak": peaks["EdBatch"] / peaks["PyTorch by level"],
        "asked": MOST_MEMORY,
        "EdBatch's peak / saved": peaks["EdBatch"] / saved["EdBatch"],
        "EdBatch's peak / PyTorch's saved": peaks["EdBatch"] / saved["PyTorch by level"],
    }


def peak_of_step(name: str, hidden: int, batch: int) -> tuple[int, int]:
    """By how many bytes the process grows at most in forward and backward, its code compiled before by a small step.

    And the bytes of all intermediate values that are kept for backward, parameters not among them: of EdBatch the
    values of the graph's nodes and what its forward run saved of the inside of cells.
    """
    torch.set_num_threads(1)
    task = trees()
    own = started(task, hidden)
    small, mini_batch = task.samples[-8:], task.samples[:batch]
    if name == "EdBatch":
        backward(own, small)
        peak = _growth(lambda: backward(own, mini_batch))
        loss = own.loss(mini_batch)
        loss.backward()
        graph = loss.graph
        assert isinstance(graph, eb.Graph)
        inside = sum(saved.rows.nbytes for ran in graph._evaluation.ran for saved in ran.saved.values())
        return peak, graph.report().memory_bytes + inside
    peer = TreeLSTMByLevel(own.model)
    prepared, few = ([peer.prepare(sample) for sample in some] for some in (mini_batch, small))
    peer.loss(peer.batch(few)).backward()
    peak = _growth(lambda: peer.loss(peer.batch(prepared)).backward())
    kept: dict[int, int] = {}
    parameters = {parameter.untyped_storage().data_ptr() for parameter in peer.parameters()}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = peer.loss(peer.batch(prepared))
    loss.backward()
    return peak, sum(kept.values())


def _growth(function: Callable[[], None]) -> int:
    gc.collect()
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    function()
    return _resident("VmHWM") - before


def _resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def tables(options: argparse.Namespace) -> Tables:
    """Everything."""
    torch.set_num_threads(1)
    task = trees()
    several = "Several threads each, the fastest step by the clock"
    points = [(hidden, batch) for hidden in options.hidden for batch in options.batch]
    return {
        f"Training a TreeLSTM on {source()}, {options.trees} trees a round": [
            row for point in tqdm(points, disable=None) for row in speeds(task, *point, options.trees, options.rounds)
        ],
        several: [with_threads(task, *point, options.rounds) for point in points],
        "Matrix products of a step alone": [products(task, *point, options.rounds) for point in points],
        "Memory of forward and backward": [memory(*point) for point in points],
    }


main = command(
    __doc__,
    tables,
    rounds=5,
    hidden=(64, 256),
    batch=(25, 256),
    trees={"type": int, "default": 250, "help": "of a round, about (default: 250)"},
)

if __name__ == "__main__":
    main()
