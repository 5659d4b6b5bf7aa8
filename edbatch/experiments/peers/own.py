"""EdBatch's side of what is compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.experiments.peers.tasks import Task

LR = 1e-5  # so small that many steps on the same samples stay what training is


class Own:
    """EdBatch's side: everything from samples on, in Python as a user writes it.

    Args:
        task: what to run.
        hidden: size of states.
        device: where.
        precision: of matrix products.
        optimizer: made from the model.
        replays: whether samples are recorded once, and replayed.
        policy: by its name; None: what a graph has if nobody says.
        seed: of the parameters.
    """

    def __init__(
        self, task: Task, hidden: int, device: str = "cpu", precision: str = "float32",
        optimizer: Callable[[eb.ParameterCollection], eb.training.Trainer] = lambda model: eb.SGD(model, lr=LR),
        replays: bool = False, policy: str | None = None, seed: int = 0,
    ) -> None:  # fmt: skip
        self.device, self.precision, self.policy = device, precision, policy
        with eb.device(device):
            self.model = eb.ParameterCollection(seed=seed)
            self.network = task.network(self.model, hidden)
            self.trainer = optimizer(self.model)
        self._loss_of: Any = eb.replay(task.loss) if replays else task.loss
        self._probabilities_of: Any = eb.replay(task.probabilities) if replays else task.probabilities

    def numbers(self) -> AbstractContextManager[Any]:
        """The precision in force; float32 is the default."""
        return nullcontext() if self.precision == "float32" else eb.options(precision=self.precision)

    def forward(self, samples: Sequence[Any]) -> eb.Graph:
        """Probabilities at every place, enqueued."""
        with eb.device(self.device), self.numbers():
            graph = self.recorded(samples)
            graph.run()
        return graph

    def recorded(self, samples: Sequence[Any]) -> eb.Graph:
        """Probabilities at every place; not run yet."""
        with eb.Graph(policy=self.policy) as graph:
            for sample in samples:
                self._probabilities_of(self.network, sample)
        return graph

    def values(self, samples: Sequence[Any]) -> np.ndarray:
        """Probabilities [places, labels], sample by sample."""
        with eb.device(self.device), self.numbers(), eb.Graph(policy=self.policy):
            of_samples = [self._probabilities_of(self.network, sample) for sample in samples]
            return np.stack(eb.forward([p for of_sample in of_samples for p in of_sample]))

    def gradients(self, samples: Sequence[Any]) -> dict[str, np.ndarray]:
        """By name, with underscores for points; of tables the rows that were looked up, and which these are."""
        with eb.device(self.device), self.numbers():
            self.loss(samples).backward()
        found = {}
        for parameter in self.model:
            name = parameter.name.replace(".", "_")
            sparse = parameter.sparse_grad() if isinstance(parameter, eb.LookupParameters) else None
            found[name] = parameter.grad() if sparse is None else sparse[1]
            if sparse is not None:
                found[f"{name}, rows"] = sparse[0]
        self.model.zero_grad()
        return found

    def loss(self, samples: Sequence[Any]) -> eb.Expression:
        """The sum over a mini-batch; not run yet."""
        with eb.Graph(policy=self.policy):
            return eb.sum([self._loss_of(self.network, sample) for sample in samples])

    def step(self, samples: Sequence[Any]) -> eb.Graph:
        """Forward, backward, update, enqueued."""
        with eb.device(self.device), self.numbers():
            loss = self.loss(samples)
            loss.backward()
            self.trainer.update()
        assert isinstance(loss.graph, eb.Graph)
        return loss.graph
