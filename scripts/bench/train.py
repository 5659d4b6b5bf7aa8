"""Training a TreeLSTM on the Stanford Sentiment Treebank: EdBatch, and PyTorch per sample and batched by hand.

    EDBATCH_DATA=... python -m scripts.bench.train [--json] [--rounds 5] [--hidden 64] [--batch 25] [--trees 250]

Needs PyTorch (the extra `bench`). All train on the same mini-batches with a loss at every node, one thread, in turns.
A round is the first mini-batches of an epoch, about `--trees` trees; the time of an epoch is extrapolated from it by
the number of nodes. Of EdBatch, a step is all there is: recording the graph in Python, scheduling, planning, forward,
backward, update. The hand-batched peer's indices are made anew for every mini-batch too, from what it knows of each
tree before the clock runs. Without EDBATCH_DATA the trees are made up.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

import edbatch as eb
from edbatch.data.random_trees import random_trees
from edbatch.data.trees import read_trees
from edbatch.data.vocabulary import Vocabulary
from edbatch.models import TreeLSTM
from scripts import data_folder
from scripts.bench import report as bench
from scripts.peers.peer import Peer, training_step
from scripts.peers.trees import TreeByLevel, TreePerSample, TreeSample

PEERS: dict[str, type[Peer]] = {"PyTorch per sample": TreePerSample, "PyTorch by level": TreeByLevel}
ASKED = {("PyTorch per sample", 64): 20, ("PyTorch per sample", 256): 20,
         ("PyTorch by level", 64): 1.5, ("PyTorch by level", 256): 1.1}  # fmt: skip
LR = 1e-4  # Adam's; small, so that many rounds on the same trees stay what training is


def samples() -> tuple[list[TreeSample], int]:
    """All trees, words as numbers, and the size of the vocabulary."""
    folder = data_folder()
    found = read_trees(folder / "sst" / "train.txt") if folder else random_trees(2000, seed=0)
    trees = [tree.binarized() for tree in found]
    words = Vocabulary(word for tree in trees for word in tree.words if word is not None)
    numbered = [
        TreeSample([None if word is None else words[word] for word in tree.words], tree.children, tree.labels)
        for tree in trees
    ]
    return numbered, len(words)


class Own:
    """EdBatch's side: the model, and one step of training.

    Args:
        words: size of the vocabulary.
        hidden: size of states.
    """

    def __init__(self, words: int, hidden: int) -> None:
        self.model = eb.ParameterCollection(seed=0)
        self.network = TreeLSTM(self.model, words, 5, hidden)
        self.trainer = eb.Adam(self.model, lr=LR)

    def loss(self, mini_batch: Sequence[TreeSample]) -> eb.Expression:
        """The sum over a mini-batch; not run yet."""
        with eb.Graph():
            return eb.sum([self.network.loss(*sample) for sample in mini_batch])

    def step(self, mini_batch: Sequence[TreeSample]) -> None:
        """Forward, backward, update."""
        self.loss(mini_batch).backward()
        self.trainer.update()

    def forward(self, mini_batch: Sequence[TreeSample]) -> None:
        """Forward alone, from recording to the value."""
        self.loss(mini_batch).value()

    def backward(self, mini_batch: Sequence[TreeSample]) -> None:
        """Forward and backward."""
        self.loss(mini_batch).backward()
        self.model.zero_grad()


def torch_step(peer: Peer) -> Callable[[Any], None]:
    """PyTorch's step of training, of what is known of the samples of a mini-batch."""
    step = training_step(peer, peer.adam(LR))
    return lambda prepared: step(peer.batch(prepared))


def over(step: Callable[[Any], None], mini_batches: list[Any]) -> Callable[[], None]:
    """All mini-batches, one after the other."""

    def run() -> None:
        for mini_batch in mini_batches:
            step(mini_batch)

    return run


def speeds(
    trees: list[TreeSample], words: int, hidden: int, batch: int, limit: int, rounds: int
) -> list[dict[str, Any]]:
    """Trees per second of all, and EdBatch's backward over its forward."""
    measured = trees[: max(batch, limit // batch * batch)]
    mini_batches = [measured[at : at + batch] for at in range(0, len(measured), batch)]
    own = Own(words, hidden)
    functions = {"EdBatch": over(own.step, mini_batches), "forward": over(own.forward, mini_batches),
                 "forward and backward": over(own.backward, mini_batches)}  # fmt: skip
    for name, kind in PEERS.items():
        peer = kind(own.model)
        prepared = [[peer.prepare(sample) for sample in mini_batch] for mini_batch in mini_batches]
        functions[name] = over(torch_step(peer), prepared)
    seconds = bench.interleaved(functions, rounds)
    nodes = sum(len(tree.words) for tree in trees) / sum(len(tree.words) for tree in measured)
    own_seconds = seconds["EdBatch"]
    rows = [
        {
            "hidden": hidden,
            "batch": batch,
            "trained by": name,
            "trees/s": len(measured) / seconds[name],
            "ms per step": 1e3 * seconds[name] / len(mini_batches),
            "epoch, s (extrapolated)": seconds[name] * nodes,
            "EdBatch is faster, times": seconds[name] / own_seconds,
            "asked": ASKED.get((name, hidden), ""),
        }
        for name in ("EdBatch", *PEERS)
    ]
    rows[0]["backward / forward"] = (seconds["forward and backward"] - seconds["forward"]) / seconds["forward"]
    return rows


def products(trees: list[TreeSample], words: int, hidden: int, batch: int, rounds: int) -> dict[str, Any]:
    """The matrix products of one step alone: forward, backward to what was multiplied, and to the parameters.

    Neither side can be faster than its BLAS: NumPy's is what EdBatch calls, PyTorch brings its own.
    """
    peer = TreeByLevel(Own(words, hidden).model)
    levels_of = peer.batch([peer.prepare(sample) for sample in trees[:batch]])
    leaves, inner = levels_of.words, levels_of.inner
    levels = [(len(leaves), peer.W), *((n, peer.U) for n in inner if n)]
    random = np.random.default_rng(0)

    def rows(n: int, size: int) -> np.ndarray:
        return random.random((n, size), np.float32)

    forward = [(rows(n, W.shape[1]), W.detach().numpy().T) for n, W in levels]
    backward = [(rows(n, W.shape[0]), W.detach().numpy()) for n, W in levels]
    weights = [(rows(n, W.shape[1]).T, rows(n, W.shape[0])) for n, W in ((len(leaves), peer.W), (sum(inner), peer.U))]
    pairs = forward + backward + weights
    tensors = [tuple(map(torch.from_numpy, pair)) for pair in pairs]
    seconds = bench.interleaved(
        {"NumPy": lambda: [a @ b for a, b in pairs], "PyTorch": lambda: [a @ b for a, b in tensors]}, rounds
    )
    return {"hidden": hidden, "batch": batch, **{f"{name}, ms": 1e3 * value for name, value in seconds.items()}}


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
        "EdBatch's peak / saved": peaks["EdBatch"] / saved["EdBatch"],
        "EdBatch's peak / PyTorch's saved": peaks["EdBatch"] / saved["PyTorch by level"],
    }


def peak_of_step(name: str, hidden: int, batch: int) -> tuple[int, int]:
    """By how many bytes the process grows at most in forward and backward, its code compiled before by a small step.

    And the bytes of all intermediate values that are kept for backward, parameters not among them: of EdBatch the
    values of the graph's nodes and what its forward run saved of the inside of cells.
    """
    torch.set_num_threads(1)
    trees, words = samples()
    own = Own(words, hidden)
    small, mini_batch = trees[-8:], trees[:batch]
    if name == "EdBatch":
        own.backward(small)
        peak = _growth(lambda: own.backward(mini_batch))
        loss = own.loss(mini_batch)
        loss.backward()
        graph = loss.graph
        assert isinstance(graph, eb.Graph)
        inside = sum(saved.rows.nbytes for ran in graph._evaluation.ran for saved in ran.saved.values())
        return peak, graph.report().memory_bytes + inside
    peer = TreeByLevel(own.model)
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


def main() -> None:
    parser = bench.parser(__doc__.splitlines()[0])
    parser.set_defaults(rounds=5)
    parser.add_argument("--hidden", nargs="+", type=int, default=(64, 256))
    parser.add_argument("--batch", nargs="+", type=int, default=(25, 256))
    parser.add_argument("--trees", type=int, default=250, help="of a round, about (default: 250)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    trees, words = samples()
    points = [(hidden, batch) for hidden in options.hidden for batch in options.batch]
    rows = [
        row
        for hidden, batch in tqdm(points, disable=None)
        for row in speeds(trees, words, hidden, batch, options.trees, options.rounds)
    ]
    source = "SST" if data_folder() else "made-up trees"
    results: dict[str, Any] = {
        f"Training a TreeLSTM on {source}, {options.trees} trees a round": rows,
        "Matrix products of a step alone": [products(trees, words, *point, options.rounds) for point in points],
        "Memory of forward and backward": [memory(hidden, batch) for hidden, batch in points],
        "torch": torch.__version__,
    }
    bench.finish(results, options.json)


if __name__ == "__main__":
    main()
