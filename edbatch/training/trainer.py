"""What all optimizers do: check gradients, clip them, update, and remember."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np

from edbatch.errors import EdBatchError, EdBatchWarning
from edbatch.exclusive import Whole, exclusive
from edbatch.graph.collection import ParameterCollection
from edbatch.graph.parameters import Parameter
from edbatch.kernels.rule import Rule
from edbatch.training.arrays import is_finite, norm, read, write
from edbatch.training.numbers import check_number
from edbatch.training.schedules import Schedule
from edbatch.training.storage import Storage, by_storage, is_whole, owner_of


@dataclass(eq=False)
class Trainer:
    """Updates the parameters of a model by their gradients; the base of all optimizers.

    An optimizer declares its hyper-parameters, its rule for one entry of a parameter (with what is remembered of it),
    and the rule's constants. Formulas, defaults and the place of every epsilon are PyTorch's.

    A parameter without a gradient is left as it is and its updates are not counted, as in PyTorch. The same holds for
    each row of a look-up table: a row that was not looked up gets no weight decay, and what is remembered of it neither
    decays nor moves it. (PyTorch's `SparseAdam`, for all optimizers: an update costs what the rows that were looked up
    cost, not what the table does.) Bias corrections go by the number of updates of the table.

    Args:
        model: parameters may be added to it later.
        lr: the learning rate, or a function of the number of updates so far, see `eb.schedules`.
        weight_decay: times the parameter, is added to its gradient (`AdamW`: shrinks the parameter instead).
        clip: gradients are scaled so that the norm of all of them together is at most this.
        on_bad_gradient: what to do about NaN and infinite gradients. "raise": an error that names the parameters; the
            gradients are still there to look at. "skip": forget the gradients, update nothing, count it in `skipped`,
            and warn the first time.

    Attributes:
        steps: the number of updates made.
        skipped: the number of updates that bad gradients prevented.
        gradient_norm: the norm of all gradients at the last update, before they were clipped.

    Raises:
        EdBatchError: the model has no parameters, or a hyper-parameter is out of range.
    """

    model: ParameterCollection
    lr: float | Schedule = 0.01
    _: KW_ONLY
    weight_decay: float = 0.0
    clip: float | None = None
    on_bad_gradient: Literal["raise", "skip"] = "raise"

    rule: ClassVar[Rule]  # its first constant is what gradients are scaled by

    def __post_init__(self) -> None:
        self.steps = 0
        self.skipped = 0
        self.gradient_norm = 0.0
        self._updates: dict[Parameter, int] = {}  # of each parameter that had some
        self._storages: dict[Parameter, Storage] = {}  # by owner
        if not isinstance(self.model, ParameterCollection) or not len(self.model):
            raise EdBatchError(f"{self._name}: expected a model with parameters, got {self.model!r}")
        if not callable(self.lr):
            check_number(self._name, "lr", self.lr)
        check_number(self._name, "weight_decay", self.weight_decay)
        if self.clip is not None:
            check_number(self._name, "clip", self.clip)
            if self.clip == 0:
                raise EdBatchError(f"{self._name}: clip=0; expected a positive number or None")
        if self.on_bad_gradient not in ("raise", "skip"):
            raise EdBatchError(f"{self._name}: on_bad_gradient={self.on_bad_gradient!r}; expected 'raise' or 'skip'")

    def constants(self, lr: float, updates: int) -> tuple[float, ...]:
        """The rule's constants but the first, at a parameter's update number `updates`, which counts from 1."""
        raise NotImplementedError

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next update.

        Raises:
            EdBatchError: the schedule gives no number, or a negative one.
        """
        lr = self.lr(self.steps) if callable(self.lr) else self.lr
        check_number(self._name, f"lr at step {self.steps}", lr)
        return float(lr)

    @exclusive
    def update(self) -> None:
        """Update all parameters that have gradients, and forget the gradients.

        An interrupt (Ctrl-C) waits until all of them are updated.

        Raises:
            EdBatchError: no parameter has a gradient, or some are NaN or infinite; nothing has been changed.
        """
        lr = self.learning_rate
        groups = by_storage(parameter for parameter in self.model if parameter.has_grad)
        if not groups:
            raise EdBatchError(f"{self._name}.update: no parameter has a gradient; call loss.backward() first")
        with self.model.device.backend.active():
            self.gradient_norm = norm(
                [one for owner, members in groups.items() for one in ([owner] if is_whole(owner, members) else members)]
            )
            if not math.isfinite(self.gradient_norm):
                self._refuse()
                return
            # The small number is PyTorch's (clip_grad_norm_).
            scale = 1.0 if self.clip is None else min(1.0, self.clip / (self.gradient_norm + 1e-6))
            counts = {member: self._updates.get(member, 0) + 1 for members in groups.values() for member in members}
            constants = {count: (scale, *self.constants(lr, count)) for count in set(counts.values())}
            with Whole():  # a second call would update once more what an interrupted first one has
                storages = [self._storage(owner) for owner in groups]
                for storage, (owner, members) in zip(storages, groups.items(), strict=True):
                    if is_whole(owner, members) and len({counts[member] for member in members}) == 1:
                        storage.apply(constants[counts[members[0]]])
                    else:
                        for member in members:
                            storage.apply_to_part(member, constants[counts[member]])
                self._updates.update(counts)
                self.steps += 1
                self.model.zero_grad()

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """What the trainer remembers, for `load_state`: copies of arrays by name, and numbers that JSON can hold.

        Hyper-parameters are not part of it: a run that goes on may change them.

        Example:
            >>> import edbatch as eb
            >>> model = eb.ParameterCollection()
            >>> W = model.add_parameters(2, name="W")
            >>> trainer = eb.Adam(model)
            >>> W.accumulator()[0][...] = 1
            >>> trainer.update()
            >>> arrays, numbers = trainer.state()
            >>> sorted(arrays)
            ['mean/W', 'mean_square/W']
            >>> numbers
            {'optimizer': 'Adam', 'steps': 1, 'skipped': 0, 'updates': {'W': 1}}
        """
        seen = [parameter for parameter in self.model if parameter in self._updates]
        with self.model.device.backend.active():
            arrays = {
                f"{slot}/{parameter.name}": read(parameter, self._storage(owner_of(parameter)).slot(number, parameter))
                for parameter in seen
                for number, slot in enumerate(self.rule.slots)
            }
        return arrays, {
            "optimizer": self._name,
            "steps": self.steps,
            "skipped": self.skipped,
            "updates": {parameter.name: self._updates[parameter] for parameter in seen},
        }

    def differences(self, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any]) -> dict[str, str]:
        """Why a saved state does not fit: by name of the array (or "optimizer", if nothing does) the reason."""
        if numbers.get("optimizer") != self._name:
            return {"optimizer": f"{numbers.get('optimizer')} in the file, {self._name} here"}
        if not _is_state(numbers):
            return {"optimizer": f"numbers {dict(numbers)!r} are not those of a trainer"}
        expected = {
            f"{slot}/{parameter.name}": parameter
            for parameter in self.model
            if parameter.name in numbers["updates"]
            for slot in self.rule.slots
        }
        found = {name: "not in the file" for name in expected if name not in arrays}
        for name, array in arrays.items():
            if name not in expected:
                found[name] = "in the file, but not here"
            elif (array.shape, array.dtype) != (expected[name].shape, expected[name].dtype):
                want = expected[name]
                found[name] = f"{array.dtype}{list(array.shape)} in the file, {want.dtype}{list(want.shape)} here"
        known = {parameter.name for parameter in self.model}
        for name in numbers["updates"].keys() - known:
            found.setdefault(f"updates/{name}", "in the file, but not here")
        return found

    def load_state(self, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any]) -> None:
        """Go on from a saved state; what does not fit, see `differences`, starts anew."""
        wrong = self.differences(arrays, numbers)
        with Whole():
            self._load(arrays, numbers, wrong)

    def _load(self, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any], wrong: Mapping[str, str]) -> None:
        self._updates.clear()
        self._storages.clear()
        self.steps = self.skipped = 0
        if "optimizer" in wrong:
            return
        self.steps, self.skipped = numbers["steps"], numbers["skipped"]
        for parameter in self.model:
            names = [f"{slot}/{parameter.name}" for slot in self.rule.slots]
            if parameter.name in numbers["updates"] and not any(name in wrong for name in names):
                self._updates[parameter] = numbers["updates"][parameter.name]
                with self.model.device.backend.active():
                    storage = self._storage(owner_of(parameter))
                    for number, name in enumerate(names):
                        write(parameter, storage.slot(number, parameter), arrays[name])

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are trainers of the copied model; its parameters are parts of no stack yet."""
        return _restored, (type(self), {field.name: getattr(self, field.name) for field in fields(self)}, *self.state())

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _storage(self, owner: Parameter) -> Storage:
        """The storage of an owner; parts that have become a stack since they were last seen bring what they had."""
        found = self._storages.get(owner)
        if found is None:
            found = self._storages[owner] = Storage(owner, self.rule)
            for spec in owner.parts:
                part = spec.parameter()
                if part is not None and (before := self._storages.pop(part, None)) is not None:
                    found.take_over(before)
        return found

    def _refuse(self) -> None:
        """A gradient is not finite: raise or skip."""
        bad = [repr(p.name) for p in self.model if p.has_grad and not is_finite(p)]
        names = ", ".join(bad[:5]) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
        message = f"{self._name}.update: NaN or infinite gradient of {names} after {self.steps} updates"
        if self.on_bad_gradient == "raise":
            raise EdBatchError(f"{message}; nothing was updated")
        self.skipped += 1
        self.model.zero_grad()
        if self.skipped == 1:
            warnings.warn(f"{message}; such updates are skipped (counted in `skipped`)", EdBatchWarning, stacklevel=3)


def _restored(
    kind: type[Trainer], arguments: Mapping[str, Any], arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any]
) -> Trainer:
    trainer = kind(**arguments)
    trainer.load_state(arrays, numbers)
    return trainer


def _is_state(numbers: Mapping[str, Any]) -> bool:
    updates = numbers.get("updates")
    if not isinstance(updates, dict):
        return False
    counts = [numbers.get("steps"), numbers.get("skipped"), *updates.values()]
    return all(type(count) is int and 0 <= count < 2**63 for count in counts)
