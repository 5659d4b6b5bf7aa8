"""EdBatch and PyTorch on the same mini-batches of a workload: compared, then timed in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.models.workloads import WORKLOADS, Labelled
from scripts import data_folder
from scripts.bench.measure import interleaved
from scripts.bench.mini_batches import as_tuples, samples_of

LR = 1e-5  # so small that many steps on the same samples stay what training is
VALUES, GRADIENTS = 1e-4, 2e-3  # how far float32 may be off: a probability; a gradient beside its parameter's largest
PASSES, MOST = 8, 64  # mini-batches of a run, at most; samples of more than one
SLOW = ("edbatch unbatched", "pytorch per sample")  # which a round or two tell enough of


class Task:
    """A workload with its first labelled samples that have a place.

    Attributes:
        name: of the workload.
        samples: what the model takes of each, and what is right at its places.
        sizes: of the data, as the model is told them.
    """

    def __init__(self, name: str, n: int, folder: Path | None) -> None:
        self.name, self._workload = name, WORKLOADS[name]
        labelled, (_, self.sizes, _) = self._workload.labelled(samples_of(name, n, folder))
        self.samples: list[Labelled] = [as_tuples(sample) for sample in labelled if sample.right]

    def network(self, model: eb.ParameterCollection, hidden: int) -> Any:
        """The model, with states of a size."""
        return self._workload.network(model, *self.sizes, hidden)

    def mini_batches(self, size: int, n: int) -> list[list[Labelled]]:
        """`n` mini-batches, each of different samples; the same ones every time."""
        random = Random(size)
        return [random.sample(self.samples, min(size, len(self.samples))) for _ in range(n)]


def loss_of(network: Any, sample: Labelled) -> eb.Expression:
    """The sum over the places of a sample."""
    return network.cross_entropies(network.hidden(*sample.inputs), sample.right)


def probabilities_of(network: Any, sample: Labelled) -> list[eb.Expression]:
    """Of all labels, at every place of a sample."""
    of = network.probabilities
    return [of(h) for h in network.hidden(*sample.inputs)]


class Own:
    """EdBatch's side: everything from samples on, in Python as a user writes it.

    Args:
        task: what to run.
        hidden: size of states.
        device, dtype, precision: where, in which numbers, and of matrix products.
        adam: whether Adam trains it; else plain gradient descent.
    """

    def __init__(
        self, task: Task, hidden: int, device: str = "cpu", dtype: str = "float32", precision: str = "float32",
        adam: bool = False,
    ) -> None:  # fmt: skip
        self.device, self.dtype, self.precision = device, dtype, precision
        with eb.device(device):
            self.model = eb.ParameterCollection(seed=0, dtype=dtype)
            self.network = task.network(self.model, hidden)
            self.trainer = (eb.Adam if adam else eb.SGD)(self.model, lr=LR)
        self.replayed_loss, self.replayed = eb.replay(loss_of), eb.replay(probabilities_of)

    def numbers(self) -> AbstractContextManager[Any]:
        """The precision in force; float32 is the default."""
        return nullcontext() if self.precision == "float32" else eb.options(precision=self.precision)

    def forward(self, samples: Sequence[Labelled], replays: bool = False, policy: str | None = None) -> eb.Graph:
        """Probabilities at every place, enqueued."""
        of = self.replayed if replays else probabilities_of
        with eb.device(self.device), self.numbers(), eb.Graph(policy=policy, dtype=self.dtype) as graph:
            for sample in samples:
                of(self.network, sample)
            graph.run()
        return graph

    def loss(self, samples: Sequence[Labelled], replays: bool = False, policy: str | None = None) -> eb.Expression:
        """The sum over a mini-batch; not run yet."""
        of = self.replayed_loss if replays else loss_of
        with eb.Graph(policy=policy, dtype=self.dtype):
            return eb.sum([of(self.network, sample) for sample in samples])

    def step(self, samples: Sequence[Labelled], replays: bool = False, policy: str | None = None) -> eb.Graph:
        """Forward, backward, update, enqueued."""
        with eb.device(self.device), self.numbers():
            loss = self.loss(samples, replays, policy)
            loss.backward()
            self.trainer.update()
        assert isinstance(loss.graph, eb.Graph)
        return loss.graph

    def values(self, samples: Sequence[Labelled], **how: Any) -> dict[str, np.ndarray]:
        """Probabilities [places, labels], sample by sample; the loss; gradients by parameter."""
        with eb.device(self.device), self.numbers():
            with eb.Graph(policy=how.get("policy"), dtype=self.dtype):
                of = self.replayed if how.get("replays") else probabilities_of
                found = {"": np.stack(eb.forward([p for one in samples for p in of(self.network, one)]))}
            loss = self.loss(samples, **how)
            loss.backward()
            found["loss"] = np.asarray(loss.value())
        for parameter in self.model:
            gradient = parameter.grad()
            found[parameter.name] = gradient.get() if hasattr(gradient, "get") else gradient
        self.model.zero_grad()
        return found


def run_of(step: Callable[[list[Any]], Any], samples: Sequence[Any], batch: int) -> Callable[[], None]:
    """All samples, mini-batch by mini-batch, in another order each time, which is that of all sides."""
    samples, random = list(samples), Random(0)

    def run() -> None:
        random.shuffle(samples)
        for at in range(0, len(samples), batch):
            step(samples[at : at + batch])

    return run


def sides_of(
    name: str, hidden: int, batch: int, training: bool, adam: bool = False
) -> tuple[dict[str, Callable[[], None]], int]:
    """By name, what runs the same mini-batches once, forward to all probabilities, or in training; and their samples.

    What PyTorch's networks know of a sample (its levels, its positions) is found before; indices of a mini-batch are
    made in the time of a run, as EdBatch's graph is.

    Raises:
        EdBatchError: a side says other numbers of the first mini-batch than EdBatch.
    """
    task = Task(name, min(PASSES, max(1, MOST // batch)) * batch, data_folder())
    samples = task.samples[: max(1, len(task.samples) // batch) * batch]
    own, first = Own(task, hidden, adam=adam), samples[:batch]
    step = own.step if training else own.forward
    found = {"edbatch": run_of(step, samples, batch)}
    expected = own.values(first)
    for side, how in (("edbatch replayed", {"replays": True}), ("edbatch unbatched", {"policy": "none"})):
        compare(f"{name}, {side}", own.values(first, **how), expected)
        found[side] = run_of(lambda given, how=how: step(given, **how), samples, batch)
    if find_spec("torch"):
        from scripts.bench import torch_sides

        for side, kind in torch_sides.kinds(name).items():
            peer = kind(own.model)
            compare(f"{name}, {side}", *torch_sides.answers(peer, first, expected))
            prepared = [peer.prepare(sample) for sample in samples]
            found[side] = run_of(torch_sides.step_of(peer, training, LR, adam), prepared, batch)
    return found, len(samples)


def compare(side: str, found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Raise where probabilities (""), the loss or gradients differ."""
    if found.keys() != expected.keys():
        raise eb.EdBatchError(f"{side}: differs in {sorted(found.keys() ^ expected.keys())}")
    for name, value in expected.items():
        most = VALUES if not name else GRADIENTS * max(float(np.abs(value).max(initial=0)), 1e-6)
        off = np.abs(found[name] - value).max(initial=0) if found[name].shape == value.shape else np.inf
        if not off <= most:  # also where it is no number
            raise eb.EdBatchError(f"{side}: {name or 'probabilities'} differ by {off:.3g}, at most {most:.3g} expected")


def contest(
    name: str, hidden: int, batch: int, rounds: int, training: bool = False, adam: bool = False
) -> dict[str, float]:
    """Milliseconds of a mini-batch of the thread's processor time, by side; see `sides_of`."""
    sides, n = sides_of(name, hidden, batch, training, adam)
    fast = {side: run for side, run in sides.items() if side not in SLOW}
    runs = interleaved(fast, rounds, limit=20)
    runs |= interleaved({side: sides[side] for side in SLOW if side in sides}, 1 if batch > 8 else 2, warm_ups=0)
    return {side: runs[side].ms(n // batch) for side in sides}


def times(ms: dict[str, float]) -> dict[str, float]:
    """How many times as fast as PyTorch by hand EdBatch is, recorded and replayed."""
    hand = ms.get("pytorch by hand")
    return {"times": hand / ms["edbatch"], "times, replayed": hand / ms["edbatch replayed"]} if hand else {}
