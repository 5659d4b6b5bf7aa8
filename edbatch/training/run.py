"""A training run that goes on where it stopped: mini-batches in a seeded order, evaluation, checkpoints, the curve.

It is a loop around the public API and no framework: what a loss is, what is measured, when to stop and what to print
stay in the caller's code. Whoever wants another loop writes it with `model.save` and `model.load`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np

from edbatch.base.files import checked_path
from edbatch.base.lazy import LazyModule
from edbatch.base.locking import signals_deferred
from edbatch.base.numbers import checked_integer
from edbatch.errors import EdBatchError, checked_flag, shown
from edbatch.graph import draws
from edbatch.graph.expression import Expression
from edbatch.graph.model.checkpoint import saved_metadata
from edbatch.graph.model.collection import ParameterCollection
from edbatch.graph.options import options
from edbatch.policy.heuristics import DEFAULT
from edbatch.policy.policy import Policy
from edbatch.runtime.graph import Graph
from edbatch.training.curve import OWN, Curve, conditions, warn_of_changes
from edbatch.training.mini_batch import Losses, total_of
from edbatch.training.trainer import Trainer

tqdm = LazyModule("tqdm")


class Doing(NamedTuple):
    """How a run does what it consists of, where mini-batches are done elsewhere, as by `edbatch.distributed`.

    Attributes:
        steps: from mini-batches, as numbers of their samples, the loss of each, given when it is done: when `step` and
            `curve` have it too and, where `save_every` asks for a checkpoint and at the end, model and trainer are what
            they are after it.
        evaluate: as of `Run`.
    """

    steps: Callable[[list[list[int]]], Generator[float]]
    evaluate: Callable[[], Mapping[str, float]]


@dataclass(eq=False)
class Run:
    """Training in epochs that a kill cannot harm: started again, it goes on, and its curve is what it would have been.

    Everything lives in one folder. `checkpoint.safetensors` is the state of the run: parameters, what the trainer
    remembers, what dropout will draw, mini-batches done and the curve so far. It is replaced in one step, every
    `save_every` mini-batches and after every epoch. `curve.json` is the curve alone, for other programs. To make a run
    is to load its checkpoint, if there is one, into the model and the trainer; hyper-parameters stay those of the
    trainer.

    The order of the samples follows from the seed and the epoch, so a run that was killed computes the same numbers to
    the last bit as one that was not, on the same machine. What the last bits depend on is in the checkpoint - BLAS and
    the processor that it computes for, device, dtype, policy - and a run that goes on under another warns. Gradients
    are those of the mini-batch alone: what is left over from before, or comes in `evaluate`, is forgotten.

    Args:
        folder: of the run; made if it is not there.
        model: what is saved, and loaded.
        trainer: updates the model, once per mini-batch.
        losses: from a list of samples their losses, recorded in the graph that is current: expressions of shape (), in
            a list or an array, as many as there are things to predict, or one. Their sum is minimised; the curve has
            their mean.
        data: the samples to learn from.
        batch_size: samples of a mini-batch; the last of an epoch may have fewer.
        seed: of the order of the samples.
        evaluate: figures by name, measured after every epoch with dropout off; of any name but "epoch" and "loss".
        settings: what else the curve depends on, as JSON can hold it: a run that began with others is refused, as one
            with another `batch_size`, `seed` or number of samples is.
        save_every: mini-batches from one checkpoint to the next.
        policy: as of `edbatch.Graph`.
        progress: show a progress bar; None shows it on a terminal.

    Attributes:
        step: mini-batches done.
        curve: the mean loss of every mini-batch, and the figures of every epoch; see `Curve`.

    Raises:
        EdBatchError: an argument is of another kind, a number is out of range, there is no data, the folder cannot be
            made, or the checkpoint in it is damaged, does not fit, or belongs to a run with other settings. Of what
            does not fit, nothing is loaded.

    Example:
        >>> import edbatch as eb, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> def start():
        ...     model = eb.ParameterCollection(seed=0)
        ...     w = model.add_parameters(1, name="w")
        ...     def losses(samples):
        ...         return [eb.sum(eb.square(w * x - y)) for x, y in samples]
        ...     data = [(x, 2.0 * x) for x in (1.0, 2.0, 3.0, 4.0)]
        ...     return eb.Run(folder, model, eb.SGD(model, lr=0.01), losses, data, batch_size=2,
        ...                   evaluate=lambda: {"w": w.value()[0]})
        >>> for figures in start().epochs(2):
        ...     print(", ".join(f"{name} {value:.3g}" for name, value in figures.items()))
        epoch 1, loss 22.8, w 1.04
        epoch 2, loss 5.22, w 1.53
        >>> run = start()  # in another process, say
        >>> run.step, [figures["epoch"] for figures in run.epochs(3)]
        (4, [3])
    """

    folder: str | os.PathLike[str]
    model: ParameterCollection
    trainer: Trainer
    losses: Losses
    data: Sequence[Any]
    _: KW_ONLY
    batch_size: int = 25
    seed: int = 0
    evaluate: Callable[[], Mapping[str, float]] | None = None
    settings: Mapping[str, Any] | None = None
    save_every: int = 200
    policy: str | os.PathLike[str] | Policy | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        for name in ("batch_size", "save_every"):
            setattr(self, name, checked_integer("Run", name, getattr(self, name)))
        self.seed = draws.checked_seed("Run: seed", self.seed)
        indexed = hasattr(self.data, "__len__") and hasattr(self.data, "__getitem__")
        if not indexed or isinstance(self.data, Mapping | str | bytes):  # a name of a file is no list of letters
            raise EdBatchError(f"Run: data: expected a list of samples, got {type(self.data).__name__}")
        if getattr(self.data, "shape", None) == () or not len(self.data):
            raise EdBatchError("Run: data: expected samples, got none")
        for name, of in {"model": ParameterCollection, "trainer": Trainer}.items():
            if not isinstance(getattr(self, name), of):
                raise EdBatchError(f"Run: {name}: expected a {of.__name__}, got {shown(getattr(self, name))}")
        for name in ("losses",) if self.evaluate is None else ("losses", "evaluate"):
            if not callable(getattr(self, name)):
                raise EdBatchError(f"Run: {name}: expected a function, got {type(getattr(self, name)).__name__}")
        if self.progress is not None:
            self.progress = checked_flag("Run: progress", self.progress)
        self.step = 0
        self._drawn: dict[str, int] | None = None  # what dropout had drawn before the mini-batch that is being done
        self._is_to_save = False  # an epoch that has ended
        self._iteration: object = None  # of the last call of `epochs` that has begun
        self._conditions: dict[str, str] = {}  # of the mini-batches that were done
        self._settings = self._checked_settings()
        self.curve = Curve(self.steps_per_epoch)
        place = checked_path(self.folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EdBatchError(f"{place}: cannot be created ({error.strerror or error})") from error
        self._checkpoint, self._curve_file = place / "checkpoint.safetensors", place / "curve.json"
        if os.path.exists(self._checkpoint):
            self._load()

    @property
    def steps_per_epoch(self) -> int:
        """Mini-batches of an epoch."""
        return -(-len(self.data) // self.batch_size)

    def epochs(self, number: int) -> Iterator[dict[str, Any]]:
        """Train until so many epochs are done; give the figures of each that ends: its loss, and what is measured.

        What is given has been saved: the caller may print it, draw `run.curve`, or stop. After an error, or an
        interrupt, it may be called again, and goes on with the mini-batch that was not done. What an earlier call gave
        is over then: an iterator that another one has overtaken raises.

        Args:
            number: of epochs, those included that were done before.

        Raises:
            EdBatchError: the losses are no losses, a gradient is not finite, what is measured has a name that the run
                needs, a checkpoint cannot be written, or a later call has gone on with the run; the last checkpoint is
                intact.
        """
        return self.epochs_by(Doing(self._steps, self.evaluate or dict), number)

    def epochs_by(self, doing: Doing, number: int) -> Iterator[dict[str, Any]]:
        """As `epochs`, with mini-batches done elsewhere."""
        return self._epochs(checked_integer("Run", "epochs", number), doing)

    def _epochs(self, number: int, doing: Doing) -> Iterator[dict[str, Any]]:
        mine = self._iteration = object()
        if self.step < number * self.steps_per_epoch:
            self._settle()
        for epoch in range(len(self.curve.epochs) - self._is_to_save, number):
            if not self._is_to_save:  # as after an error, or an interrupt, while the last was
                self._train(epoch, doing)
                figures = self._evaluated(doing)
                with signals_deferred():
                    self.curve.end_epoch(figures)
                    self._is_to_save = True
            self._save()
            self.curve.write(self._curve_file, self._settings)
            self._is_to_save = False
            yield dict(self.curve.epochs[-1])
            if self._iteration is not mine:
                raise EdBatchError("Run.epochs: a later call continues this run; use the iterator that it returned")

    def _train(self, epoch: int, doing: Doing) -> None:
        n, size = self.steps_per_epoch, self.batch_size
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.data))
        disable = None if self.progress is None else not self.progress
        done = self.step - epoch * n
        left = [order[at : at + size].tolist() for at in range(done * size, len(order), size)]
        with (
            tqdm.tqdm(total=n, initial=done, desc=f"epoch {epoch + 1}", unit="mini-batch", disable=disable) as bar,
            closing(doing.steps(left)) as losses,
        ):
            for loss in losses:
                bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
                bar.update()
                if self.step % self.save_every == 0 and self.step % n:
                    self._save()

    def _steps(self, batches: list[list[int]]) -> Generator[float]:
        for numbers in batches:
            with (
                signals_deferred()
            ):  # a mini-batch that an error or an interrupt ended in its midst leaves nothing behind
                if self._drawn is not None:
                    draws.restore(self._drawn)
                self._drawn = draws.state()
            _, total, n = self._recorded([self.data[i] for i in numbers])
            self.trainer.zero_grad()  # a checkpoint has none: what came before must not enter
            total.backward()
            loss = float(total.value()) / n
            with signals_deferred():  # an interrupt comes before the step or after it
                self.trainer.update()
                self.curve.losses.append(loss)
                self.step += 1
                self._drawn = None
            yield loss

    def _recorded(self, batch: list[Any]) -> tuple[Graph, Expression, int]:
        """The graph of a mini-batch, not run yet; the sum of its losses; and how many there are."""
        with Graph(policy=self.policy, dtype=self.model.dtype) as graph:
            return graph, *total_of(self.losses, batch)

    def _settle(self) -> None:
        """Say so where mini-batches are now computed otherwise than before."""
        now = conditions(self.model, DEFAULT if self.policy is None else self.policy)
        if self._conditions:
            warn_of_changes(self._checkpoint, self._conditions, now)
        self._conditions = now

    def _evaluated(self, doing: Doing) -> dict[str, float]:
        with options(training=False):
            found = doing.evaluate()
        try:
            figures = {str(name): float(value) for name, value in found.items()}
        except (AttributeError, TypeError, ValueError, OverflowError):
            raise EdBatchError(f"Run: evaluate: expected numbers by name, got {shown(found)}") from None
        if taken := [name for name in OWN if name in figures]:
            raise EdBatchError(
                f"Run: evaluate: expected other names than the run's own {', '.join(OWN)}; got {taken[0]!r}"
            )
        return figures

    def _checked_settings(self) -> dict[str, Any]:
        """As a checkpoint gives them back."""
        own = {"samples": len(self.data), "batch_size": self.batch_size, "seed": self.seed}
        if not isinstance(self.settings, Mapping | None):
            raise EdBatchError(f"Run: settings: expected a dictionary, got {shown(self.settings)}")
        try:
            return dict(json.loads(json.dumps(dict(self.settings or {}) | own, allow_nan=False)))
        except (TypeError, ValueError, RuntimeError, RecursionError) as error:
            raise EdBatchError(f"Run: settings: expected what JSON can hold ({error})") from error

    def _save(self) -> None:
        metadata = {"settings": self._settings, "step": self.step, "curve": self.curve.state()}
        metadata["conditions"] = self._conditions
        self.model.save(self._checkpoint, trainer=self.trainer, metadata=metadata)

    def _load(self) -> None:
        """Go on from the checkpoint; its settings are compared first, for they say why a model would not fit."""
        path = self._checkpoint
        found = saved_metadata(path)
        try:
            began, step, curve = found["settings"], found["step"], found["curve"]
        except KeyError as name:
            raise EdBatchError(f"{path}: not a checkpoint of a training run (no {name})") from None
        differ = [
            f"{name} {began.get(name)}, now {self._settings.get(name)}"
            for name in {**began, **self._settings}
            if began.get(name) != self._settings.get(name)
        ]
        if differ:
            raise EdBatchError(f"{path}: this run began with {'; '.join(differ)}; expected the same, or another folder")
        self.model.load(path, trainer=self.trainer)
        self.step, self.curve.losses, self.curve.epochs = step, curve["loss"], curve["epochs"]
        self._conditions = found.get("conditions", {})  # what was saved by earlier versions has none
        if self.curve.epochs:
            self.curve.write(self._curve_file, self._settings)  # it may have been killed between checkpoint and curve
