"""The points that `scripts.gpu.check` measures, the most important first."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

OWN = "EdBatch"
PER_SAMPLE = "PyTorch per sample"
COMPARED = 64, 256  # batch and hidden at which the models are compared
PAPER = {(10, 256): 2.78, (10, 512): 4.70, (20, 256): 3.52, (20, 512): 4.82}  # ms by batch and hidden: its table 5


@dataclass(frozen=True)
class Point:
    """What is measured at once, side by side.

    Attributes:
        model: name of the task.
        batch: samples of a mini-batch.
        hidden: size of states.
        training: forward, backward and update; else forward alone.
        precision: of matrix products.
        per_sample, graphed, compiled: which of PyTorch's sides there are beside those batched by hand.
    """

    model: str
    batch: int
    hidden: int
    training: bool = False
    precision: str = "float32"
    per_sample: bool = False
    graphed: bool = False
    compiled: bool = False

    @property
    def place(self) -> dict[str, Any]:
        """The first columns of its rows."""
        mode = "training" if self.training else "forward"
        return {"model": self.model, "mode": mode, "batch": self.batch, "hidden": self.hidden,
                "precision": self.precision}  # fmt: skip

    def __str__(self) -> str:
        extra = [name for name in ("per_sample", "graphed", "compiled") if getattr(self, name)]
        return " ".join(map(str, [*self.place.values(), *extra]))


def points(models: list[str], device: str, quick: bool = False) -> list[Point]:
    """All points, the most important first.

    CUDA graphs and `torch.compile` have points of their own: what fails there cannot spoil the times of others.
    """
    gpu = device != "cpu"
    if quick:  # every kind once
        found = [Point(model, 4, 16, training, per_sample=True) for training in (False, True) for model in models]
        if gpu:
            found += [Point(model, 4, 16, training, graphed=True) for training in (False, True) for model in models]
            found += [Point(models[0], 4, 16, training, precision) for precision in ("tf32", "bf16")
                      for training in (False, True)]  # fmt: skip
            found += [Point(models[0], 4, 16, training, compiled=True) for training in (False, True)]
        return [*found, *(Point("TreeLSTM", *at) for at in list(PAPER)[:1] if "TreeLSTM" in models)]
    ordered = [Point(model, *COMPARED, per_sample=True) for model in models]
    ordered += [Point("TreeLSTM", *at) for at in PAPER if "TreeLSTM" in models]
    ordered += [Point(model, *COMPARED, True, per_sample=True) for model in models]
    if gpu:
        ordered += [Point(model, *COMPARED, training, graphed=True) for training in (False, True) for model in models]
        ordered += [
            Point(model, *COMPARED, training, precision)
            for precision, training, model in product(("tf32", "bf16"), (False, True), models)
        ]
    ordered += [Point(model, *COMPARED, training, compiled=True) for training in (False, True) for model in models]
    # By batch and hidden: along both axes first, then the corners, then the rest.
    sweep = [
        (1, 256),
        (256, 256),
        (64, 1024),
        (64, 64),
        (64, 512),
        (16, 256),
        (4, 256),
        (256, 1024),
        (1, 64),
        (256, 64),
    ]
    sweep += [at for at in product((256, 16, 4, 1), (64, 512, 1024)) if at not in sweep]
    ordered += [
        Point(model, *at, training, per_sample=at[0] in (1, 16)) for at in sweep for training in (False, True)
        for model in models
    ]  # fmt: skip
    return ordered


def asked_for(point: Point) -> bool:
    """Whether one of the figures that were asked for is of it; see `scripts.gpu.figures`."""
    if point.training or point.precision != "float32" or point.graphed or point.compiled:
        return False
    at = point.batch, point.hidden
    return at == COMPARED or (point.model == "TreeLSTM" and at in PAPER)
