"""Learning curves: what a training run found out, as JSON and as a picture."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from edbatch.base.drawing import missing, write_figure
from edbatch.base.files import write_atomically
from edbatch.base.lazy import LazyModule
from edbatch.errors import EdBatchError, warn
from edbatch.graph.model.collection import ParameterCollection
from edbatch.policy.policy import Policy, get_policy

figures = LazyModule("matplotlib.figure")
blas_threads = LazyModule("edbatch.kernels.cpu.blas_threads")


MOST_INSIDE = 5  # figures whose legend leaves room for their curves
OWN = ("epoch", "loss")  # what every epoch has


@dataclass
class Curve:
    """The learning curve of a run.

    Args:
        steps_per_epoch: mini-batches of an epoch.
        losses: the mean loss of every mini-batch.
        epochs: of every epoch that has ended its number, its mean loss, and what was measured after it.

    Example:
        >>> curve = Curve(steps_per_epoch=2, losses=[3.0, 1.0])
        >>> curve.end_epoch({"accuracy": 0.5})
        >>> curve.epochs
        [{'epoch': 1, 'loss': 2.0, 'accuracy': 0.5}]
    """

    steps_per_epoch: int
    losses: list[float] = field(default_factory=list)
    epochs: list[dict[str, Any]] = field(default_factory=list)

    def end_epoch(self, figures: dict[str, float]) -> None:
        """Add the figures of the epoch that the last mini-batches were."""
        loss = float(np.mean(self.losses[-self.steps_per_epoch :]))
        self.epochs.append({"epoch": len(self.epochs) + 1, "loss": loss, **figures})

    def state(self) -> dict[str, Any]:
        """The lists, as JSON can hold them."""
        return {"loss": self.losses, "epochs": self.epochs}

    def write(self, path: str | os.PathLike[str], settings: dict[str, Any]) -> None:
        """As JSON, with the settings of the run; replaces the file in one step.

        JSON has no NaN and nothing infinite: such figures are null.
        """
        epochs = [{name: _finite(value) for name, value in epoch.items()} for epoch in self.epochs]
        found = {"settings": settings, "loss": list(map(_finite, self.losses)), "epochs": epochs}
        write_atomically(path, json.dumps(found, indent=1, allow_nan=False))

    def plot(self, path: str | os.PathLike[str], names: Sequence[str] | None = None) -> None:
        """As a PNG: the training loss of all mini-batches, smoothed, beside the figures of the epochs.

        Args:
            path: of the picture, which is replaced in one step: PNG, SVG or PDF, as the name ends.
            names: which figures; None: all that were measured.

        Raises:
            EdBatchError: Matplotlib is not installed (it comes with the extra `plot`), no epoch has ended, no epoch has
                a figure of that name, the name ends otherwise, or the file cannot be written.
        """
        try:
            figure = figures.Figure(figsize=(7, 2.8), dpi=80, layout="constrained")
        except ImportError as error:
            raise missing(path, error) from None
        if not self.epochs:
            raise EdBatchError(f"{path}: nothing to draw before the first epoch has ended")
        measured = dict.fromkeys(name for epoch in self.epochs for name in epoch if name not in OWN)
        if unknown := set(names or ()) - set(measured):
            raise EdBatchError(f"{path}: no figure is named {', '.join(sorted(unknown))}; there are {list(measured)}")
        chosen = list(measured if names is None else names)
        panels = list(figure.subplots(1, 2 if chosen else 1, squeeze=False)[0])
        window = max(1, self.steps_per_epoch // 10)
        smooth = np.convolve(self.losses, np.ones(window) / window, "valid")
        marker = "." if len(smooth) == 1 else ""  # a line has two ends
        panels[0].plot((np.arange(len(smooth)) + window) / self.steps_per_epoch, smooth, marker=marker)
        panels[0].set(xlabel="epoch", ylabel="training loss")
        for name in chosen:
            found = [x for x in self.epochs if name in x]
            panels[1].plot([x["epoch"] for x in found], [x[name] for x in found], marker=".", label=name)
        if chosen:
            panels[1].set(xlabel="epoch", ylabel="on dev")
        if len(chosen) > MOST_INSIDE:
            figure.legend(loc="outside right upper", fontsize="small")
        elif chosen:
            panels[1].legend()
        for axes in panels:
            axes.grid(alpha=0.3)
        write_figure(figure, path)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def conditions(model: ParameterCollection, policy: str | os.PathLike[str] | Policy) -> dict[str, str]:
    """Conditions that decide the last bits of a run's curve, beside its settings; other machines may have others.

    By name, as JSON can hold them; a policy that was learned, with a digest of what it chooses.
    """
    found: Any = get_policy(policy)
    name = getattr(found, "name", type(found).__name__)
    if hasattr(found, "table"):
        choices = [(row["state"], row["choice"]) for row in found.table()]
        name = f"{name} {blake2b(repr(choices).encode(), digest_size=4).hexdigest()}"
    kernels = blas_threads.blas_kernels()
    return {"BLAS": kernels, "device": model.device.name, "dtype": str(model.dtype), "policy": name}


def warn_of_changes(place: object, before: dict[str, str], now: dict[str, str]) -> None:
    """Say so where a run goes on under other conditions."""
    differ = [f"{name} {before.get(name)}, now {now[name]}" for name in now if before.get(name) != now[name]]
    if differ:
        warn(
            f"{place}: this run was computed with {'; '.join(differ)}; it continues, but the last bits of its curve "
            "may differ from those of a run under the same conditions"
        )
