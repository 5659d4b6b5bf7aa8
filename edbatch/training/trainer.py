"""What all optimizers do: check gradients, clip them, update, and remember."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from operator import attrgetter, is_
from typing import Any, ClassVar, Literal, Self

import numpy as np

from edbatch.base.locking import allow_reentry, signals_deferred, synchronized
from edbatch.base.numbers import checked_integer, checked_real
from edbatch.base.stopwatch import Clock
from edbatch.errors import EdBatchError, shown, warn
from edbatch.graph.hints import TRAINER, explaining, with_hints
from edbatch.graph.model.parameters import Parameter, read_only
from edbatch.graph.model.writes import note_write
from edbatch.graph.options import current_options
from edbatch.schedules import Schedule
from edbatch.training.arrays import is_finite
from edbatch.training.due import Due
from edbatch.training.groups import Group, Trained, group_of_each, groups_of, parameters_of
from edbatch.training.rule import Rule
from edbatch.training.storage import Storage, owner_of


@with_hints(TRAINER)
@dataclass(eq=False)
class Trainer:
    """Updates the parameters of a model by their gradients; the base of all optimizers.

    An optimizer declares its hyper-parameters, its rule for one entry of a parameter (with what is remembered of it),
    and the rule's constants. Formulas, defaults and the place of every epsilon are PyTorch's.

    A parameter without a gradient is left as it is and its updates are not counted, as in PyTorch. The same holds for
    each row of a look-up table: a row that was not looked up gets no weight decay, and what is remembered of it neither
    decays nor moves it. (The rows of PyTorch's `SparseAdam`, for all optimizers, by the formula of each: an update
    costs what the rows that were looked up cost, not what the table does.) Bias corrections go by the number of updates
    of the table.

    An update applies and forgets the gradients of its own parameters, whichever thread they came from, and no others.
    Gradients add up over calls of `backward` until then. So where two trainers update two parts of what one loss
    depends on, as in a GAN, call `zero_grad()` of a trainer before its own loss goes back: the other's loss has left
    gradients. An update by such leftovers warns once.

    Several threads may go back through graphs of one model; the updates of one trainer belong to one thread, after all
    of them.

    Args:
        model: what is updated: a collection (parameters may be added to it later), a part of one (`model.sub("head")`),
            parameters, or groups as in PyTorch: a list of `{"params": ..., "lr": 1e-4}`, in which each may set any
            hyper-parameter but `clip` and `on_bad_gradient`, and schedules count all updates. Frozen parameters are
            left out.
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
        groups: what was given, as groups: `trainer.groups[0]["lr"] = 1e-5` changes one.

    Raises:
        EdBatchError: the model has no parameters, or a hyper-parameter is out of range.

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection()
        >>> W, b = model.add_parameters((1, 2), init=1.0), model.add_parameters(1, init=1.0)
        >>> trainer = eb.SGD([{"params": W}, {"params": b, "lr": 0.25}], lr=0.5)
        >>> with eb.Graph(policy="critical-path"):
        ...     loss = eb.sum(W @ eb.ones(2) + b)
        >>> loss.backward()
        >>> trainer.update()
        >>> W.value(), b.value()
        (array([[0.5, 0.5]], dtype=float32), array([0.75], dtype=float32))
    """

    model: Trained
    lr: float | Schedule = 0.01
    _: KW_ONLY
    weight_decay: float = 0.0
    clip: float | None = None
    on_bad_gradient: Literal["raise", "skip"] = "raise"

    rule: ClassVar[Rule]  # its constant "scale" is what gradients are scaled by
    #: What to do about gradients that are left over.
    _cure: ClassVar[str] = (
        "Call zero_grad() of this trainer before the loss that it is to apply goes back (or freeze() its parameters "
        "while the other loss does), as in PyTorch"
    )
    #: The hyper-parameters that are numbers from 0 on, and what each is below.
    below: ClassVar[dict[str, float]] = {"weight_decay": math.inf}

    def __post_init__(self) -> None:
        self.steps = 0
        self.skipped = 0
        self.gradient_norm = 0.0
        self._updates: dict[Parameter, int] = {}  # of each parameter that had some
        self._storages: dict[Parameter, Storage] = {}  # by owner
        self._due: Due | None = None  # at the last update
        self._told = False  # of leftovers
        self._grouped: tuple[list[list[Parameter]], dict[Parameter, int]] = [], {}  # what is in each group, and back
        allowed = [field.name for field in fields(self) if field.name not in ("model", "clip", "on_bad_gradient")]
        self.groups: list[Group] = groups_of(self._name, self.model, allowed)
        self._group_of()
        self._fields = attrgetter(*[field.name for field in fields(self)])
        self._checked_fields: tuple[Any, ...] | None = None  # hyper-parameters, as they were when they were checked
        self._ignores_decay = False
        self._checked()
        self._ignores_decay, self._checked_fields = not self._decays(), None
        self._checked()

    def check(self) -> None:
        """Make all hyper-parameters that are numbers Python's; an `EdBatchError` unless they are in range."""
        if not callable(self.lr):
            self.lr = checked_real(self._name, "lr", self.lr)
        self.steps = checked_integer(self._name, "steps", self.steps, least=0)
        for name, below in self.below.items():
            setattr(self, name, checked_real(self._name, name, getattr(self, name), below))
        if self.weight_decay and self._ignores_decay:
            raise EdBatchError(f"{self._name}: weight_decay={self.weight_decay}; expected 0, its rule applies none")
        if self.clip is not None:
            self.clip = checked_real(self._name, "clip", self.clip)
            if self.clip == 0:
                raise EdBatchError(f"{self._name}: clip=0; expected a positive number or None")
        found: Any = self.on_bad_gradient
        if not isinstance(found, str) or found not in ("raise", "skip"):
            raise EdBatchError(f"{self._name}: on_bad_gradient={shown(found)}; expected 'raise' or 'skip'")

    def constants(self, lr: float, updates: int) -> dict[str, float]:
        """The rule's constants but "scale", by name, at a parameter's update number `updates`, which counts from 1.

        Those of a rule that has no others: lr and weight decay.
        """
        return {"lr": lr, "decay": self.weight_decay}

    def _constants_of(self, lr: float, updates: int, scale: float) -> list[float]:
        """All constants in the rule's order; errors as of `Rule.ordered`."""
        return self.rule.ordered(self._name, scale, self.constants(lr, updates))

    def _decays(self) -> bool:
        """Whether weight decay makes a difference to the rule."""
        found = [self._with({"weight_decay": decay})._constants_of(1.0, 1, 1.0) for decay in (0.0, 0.5)]
        return found[0] != found[1]

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next update.

        Raises:
            EdBatchError: the schedule gives no number, or a negative one.
        """
        lr = self.lr
        if callable(lr):
            with allow_reentry():
                lr = lr(self.steps)
        return checked_real(self._name, f"lr at step {self.steps}", lr)

    @explaining
    @synchronized
    def zero_grad(self) -> None:
        """Forget the gradients of all parameters that this optimizer updates."""
        self._zero_grad()

    def _zero_grad(self) -> None:
        with signals_deferred():
            for parameter in self._group_of():
                parameter.zero_grad()

    @synchronized
    def update(self) -> None:
        """Update all parameters that have gradients, and forget the gradients of these parameters, and no others.

        An interrupt (Ctrl-C) waits until all of them are updated.

        Raises:
            EdBatchError: no parameter has a gradient, some are NaN or infinite, or a hyper-parameter is out of range or
                too large for a parameter's dtype; nothing has been changed.
        """
        clock = Clock({})
        group_of = self._group_of()
        optimizers = self._checked()
        rates = [x.lr if x.lr.__class__ is float else x.learning_rate for x in optimizers]
        with next(iter(group_of)).device.backend.active(current_options()):
            due = self._due_of(group_of)
            self.gradient_norm = due.norm()
            if not math.isfinite(self.gradient_norm):
                self._refuse()
                return
            # The small number is PyTorch's (clip_grad_norm_).
            scale = 1.0 if self.clip is None else min(1.0, self.clip / (self.gradient_norm + 1e-6))
            updates = self._updates
            constants = {
                one: optimizers[group]._constants_of(rates[group], updates.get(one, 0) + 1, scale)
                for one, group in due.alike.items()
            }
            due.give_constants(f"{self._name}.update", constants)
            self._tell_leftovers(due.parameters)
            with signals_deferred():  # a second call would update once more what an interrupted first one has
                due.update()
                note_write(due.parameters)
                self.steps += 1
                for parameter in due.parameters:
                    updates[parameter] = updates.get(parameter, 0) + 1
        clock.stop("update")
        graphs: dict[int, dict[str, float]] = {}
        for parameter in due.parameters:
            if (source := parameter.source) is not None:
                source.is_applied = True
                graphs[id(source.seconds)] = source.seconds
        for seconds in graphs.values():  # evenly
            for stage, spent in clock.seconds.items():
                seconds[stage] = seconds.get(stage, 0.0) + spent / len(graphs)

    def _tell_leftovers(self, parameters: Iterable[Parameter]) -> None:
        """Warn, once, where another optimizer was updated between gradients that were added up, as in a GAN."""
        if self._told or not any(map(attrgetter("has_leftovers"), parameters)):
            return
        names = [repr(x.name) for x in parameters if x.has_leftovers]
        self._told = True
        warn(
            f"{self._name}.update: the gradient of {_listed(names)} is the sum of several backward passes, with an "
            "update by another trainer in between: an update clears the gradients of its own parameters only, so the "
            f"other trainer's loss has left gradients here. {self._cure}"
        )

    def _due_of(self, group_of: Mapping[Parameter, int]) -> Due:
        """What is to be updated, of all parameters and the numbers of their groups."""
        parameters = [parameter for parameter in group_of if parameter.has_grad]
        if not parameters:
            frozen = (
                "all are frozen"
                if all(x.frozen for x in group_of)
                else "call loss.backward() first; an update, by whatever thread, forgets the gradients it has applied"
            )
            raise EdBatchError(f"{self._name}.update: no parameter has a gradient; {frozen}")
        if self._due is None or not self._due.fits(parameters, group_of):
            with signals_deferred():  # parts that have become a stack hand over what is remembered of them
                self._due = Due(parameters, group_of, self._updates, self._storage)
        return self._due

    @synchronized
    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """What the trainer remembers, for `load_state`: arrays by name, and numbers that JSON can hold.

        The arrays are read-only copies. Hyper-parameters are not part of it: a run that goes on may change them.

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
        seen = [parameter for parameter in self._by_name().values() if parameter in self._updates]
        arrays = {}
        for parameter in seen:
            with parameter.device.backend.active():
                for number, slot in enumerate(self.rule.slots):
                    found = self._storage(owner_of(parameter)).slot(number, parameter)
                    arrays[f"{slot}/{parameter.name}"] = read_only(parameter.device.backend.to_host(found))
        return arrays, {
            "optimizer": self._name,
            "steps": self.steps,
            "skipped": self.skipped,
            "updates": {parameter.name: self._updates[parameter] for parameter in seen},
        }

    def differences(self, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any]) -> dict[str, str]:
        """Why a saved state does not fit: by name of the array (or "optimizer", if nothing does) the reason.

        Raises:
            EdBatchError: it is none: two dictionaries, as `state` gives them.
        """
        for name, given in (("arrays", arrays), ("numbers", numbers)):
            if not isinstance(given, Mapping):
                raise EdBatchError(f"{self._name}: a saved state: expected {name} by name, got {shown(given)}")
        if numbers.get("optimizer") != self._name:
            return {"optimizer": f"{numbers.get('optimizer')} in the file, {self._name} here"}
        if not _is_state(numbers):
            return {"optimizer": f"numbers {dict(numbers)!r} are not those of a trainer"}
        here = self._by_name()
        expected = {
            f"{slot}/{name}": parameter
            for name, parameter in here.items()
            if name in numbers["updates"]
            for slot in self.rule.slots
        }
        found = {name: "not in the file" for name in expected if name not in arrays}
        for name, array in arrays.items():
            if name not in expected:
                found[name] = "in the file, but not here"
            elif not isinstance(array, np.ndarray):
                found[name] = f"no array ({type(array).__name__})"
            elif (array.shape, array.dtype) != (expected[name].shape, expected[name].dtype):
                want = expected[name]
                found[name] = f"{array.dtype}{list(array.shape)} in the file, {want.dtype}{list(want.shape)} here"
        for name in numbers["updates"].keys() - here.keys():
            found.setdefault(f"updates/{name}", "in the file, but not here")
        return found

    @synchronized
    def load_state(self, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any]) -> None:
        """Go on from a saved state; what does not fit, see `differences`, starts anew.

        Raises:
            EdBatchError: it is no state; nothing has been changed.
        """
        wrong = self.differences(arrays, numbers)
        with signals_deferred():
            self._load(arrays, numbers, wrong)

    def _load(self, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any], wrong: Mapping[str, str]) -> None:
        self._updates.clear()
        self._storages.clear()
        self._due = None
        self.steps = self.skipped = 0
        if "optimizer" in wrong:
            return
        self.steps, self.skipped = numbers["steps"], numbers["skipped"]
        for parameter in self._by_name().values():
            names = [f"{slot}/{parameter.name}" for slot in self.rule.slots]
            if parameter.name in numbers["updates"] and not any(name in wrong for name in names):
                self._updates[parameter] = numbers["updates"][parameter.name]
                with parameter.device.backend.active():
                    storage = self._storage(owner_of(parameter))
                    for number, name in enumerate(names):
                        storage.slot(number, parameter)[...] = parameter.device.backend.from_host(arrays[name], "C")

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are trainers of the copied model; its parameters are parts of no stack yet."""
        arguments = {field.name: getattr(self, field.name) for field in fields(self)}
        arguments["model"] = (
            self.groups if len(self.groups) > 1 or len(self.groups[0]) > 1 else self.groups[0]["params"]
        )
        return _restored, (type(self), arguments, *self.state())

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _with(self, group: Group) -> Self:
        """The optimizer of a group: this one, with the group's hyper-parameters, if it has any."""
        if "params" in group and len(group) == 1:
            return self
        found = object.__new__(type(self))  # a copy would be a trainer with a state of its own
        vars(found).update(vars(self) | {name: value for name, value in group.items() if name != "params"})
        return found

    def _checked(self) -> list[Self]:
        """The optimizer of each group; hyper-parameters may have been set since the last update."""
        alone = len(self.groups) == 1 == len(self.groups[0]) and self.steps.__class__ is int and not self.steps >> 62
        if alone and self._checked_fields is not None and all(map(is_, self._fields(self), self._checked_fields)):
            return [self]
        optimizers = [self._with(group) for group in self.groups]
        for optimizer in optimizers:
            optimizer.check()
        self._checked_fields = self._fields(self)
        return optimizers

    def _group_of(self) -> dict[Parameter, int]:
        """Of all parameters the number of their group; collections may have grown, and groups may be others."""
        listed = [parameters_of(group) for group in self.groups]
        if listed != self._grouped[0]:
            self._grouped = listed, group_of_each(self._name, listed)
        return self._grouped[1]

    def _by_name(self) -> dict[str, Parameter]:
        """The parameters as states name them."""
        found: dict[str, Parameter] = {}
        for parameter in self._group_of():
            if found.setdefault(parameter.name, parameter) is not parameter:
                raise EdBatchError(
                    f"{self._name}: two parameters are named {parameter.name!r}, so their states would be the same; "
                    "expected unique names"
                )
        return found

    def _storage(self, owner: Parameter) -> Storage:
        """The storage of an owner; parts that have become a stack since they were last seen bring what they had."""
        found = self._storages.get(owner)
        if found is not None and not found.is_right:  # another's memory, which is elsewhere now
            moved = Storage(owner, self.rule)
            moved.take_over(found)
            found = self._storages[owner] = moved
        if found is None:
            found = self._storages[owner] = Storage(owner, self.rule)
            for spec in owner.parts:
                part = spec.parameter()
                if part is not None and (before := self._storages.pop(part, None)) is not None:
                    found.take_over(before)
        return found

    def _refuse(self) -> None:
        bad = [repr(p.name) for p in self._group_of() if p.has_grad and not is_finite(p)]
        message = f"{self._name}.update: NaN or infinite gradient of {_listed(bad)} after {self.steps} updates"
        if self.on_bad_gradient == "raise":
            raise EdBatchError(f"{message}; nothing was updated")
        self.skipped += 1
        self._zero_grad()
        if self.skipped == 1:
            warn(f"{message}; such updates are skipped (counted in `skipped`)")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


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
