"""What workers get, and say."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from edbatch.distributed.network import Network
from edbatch.graph import draws
from edbatch.graph.model.collection import ParameterCollection
from edbatch.policy.policy import Policy
from edbatch.training.mini_batch import Losses
from edbatch.training.trainer import Trainer


@dataclass
class Job:
    """What all workers get.

    Attributes:
        model, trainer, losses: as of `Run`.
        policy: that was learned, or loaded, once for all.
        mean: whether `losses` gives means over the samples.
        options: in force.
        network: what to wait in a reduction, beside what it takes.
        check_every: steps from one checksum of the parameters to the next.
        data: the samples, where workers read them; None: parts bring them.
        nodes: from a sample its size, where workers count; None: the nodes of its graph.
    """

    model: ParameterCollection
    trainer: Trainer
    losses: Losses
    policy: Policy | str | os.PathLike[str] | None
    mean: bool
    options: dict[str, Any]
    network: Network | None
    check_every: int
    data: Sequence[Any] | None = None
    nodes: Callable[[Any], int] | None = None


class State(NamedTuple):
    """Of a run: parameters by name, what the trainer remembers, and what dropout will draw."""

    parameters: dict[str, np.ndarray]
    trainer: tuple[dict[str, np.ndarray], dict[str, Any]]
    draws: dict[str, int]


class Part(NamedTuple):
    """What one worker does of a mini-batch: samples, their numbers in the data, and places in the mini-batch.

    Attributes:
        samples: None: the worker reads them.
        of: samples of the mini-batch.
    """

    samples: list[Any] | None
    numbers: list[int]
    places: list[int]
    of: int


class Done(NamedTuple):
    """A step.

    Attributes:
        loss: mean of the losses.
        bytes: sent to others.
        seconds, cpu_seconds: of this worker, since it was last asked.
        nodes: of its graph.
        checksum: of its parameters; None: not computed in this step.
    """

    loss: float
    bytes: int
    seconds: float
    cpu_seconds: float
    nodes: int
    checksum: int | None


def state_of(model: ParameterCollection, trainer: Trainer) -> State:
    """What a run is now."""
    return State({name: x.value() for name, x in model.items()}, trainer.state(), draws.state())


def take_state(model: ParameterCollection, trainer: Trainer, state: State) -> None:
    """Have a run be that."""
    for name, x in model.items():
        x.set_value(state.parameters[name])
    trainer.load_state(*state.trainer)
    draws.restore(state.draws)
