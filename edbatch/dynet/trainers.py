"""Trainers with DyNet's formulas: what an update does to one entry of a parameter."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import edbatch as eb
from edbatch.dynet.checked import number
from edbatch.dynet.collection import ParameterCollection
from edbatch.dynet.implicit import DynetTypeError
from edbatch.errors import shown
from edbatch.training.rule import Rule
from edbatch.training.trainer import Trainer as Core


@dataclass(eq=False, kw_only=True)
class _Core(Core):
    """What updates: EdBatch's trainer, with a rule and constants of DyNet's."""

    of: Any = None
    _cure = "Call reset_gradient() of the collection before the loss that its trainer is to apply goes back"

    @property
    def _name(self) -> str:
        return str(self.of.whoami())

    def constants(self, lr: float, updates: int) -> dict[str, float]:
        """The rule's constants at the update that comes; it counts for all parameters."""
        found: dict[str, float] = self.of._constants(self.of._updates + 1)
        return {"lr": self.of._rate(), **found}


class Trainer:
    """Updates the parameters of a collection by their gradients; the base of all trainers.

    Gradients are clipped to a norm of 5, parameters without a gradient are updated by one of zero, and an update
    without any is no error.

    Args:
        m: the collection.
        learning_rate: may be set between updates.

    Attributes:
        learning_rate: of the next update.
    """

    rule: ClassVar[Rule]

    def __init__(self, m: ParameterCollection, learning_rate: float) -> None:
        if not isinstance(m, ParameterCollection):
            raise DynetTypeError(f"{self.whoami()}: expected a ParameterCollection, got {shown(m)}")
        self.learning_rate = number(f"{self.whoami()}: learning_rate", learning_rate)
        self._model = m
        self._threshold = 5.0
        self._sparse = True
        self._updates = 0
        self._since, self._clipped = 0, 0
        self._core: _Core | None = None

    def _constants(self, update: int) -> dict[str, float]:
        """The rule's constants but the rate, at an update, which counts from 1."""
        return {}

    def _rate(self) -> float:
        return self.learning_rate

    def update(self) -> None:
        """Update all parameters, and forget their gradients."""
        self._update(list(self._model))

    def update_subset(self, updated_params: Sequence[int], updated_lookups: Sequence[int]) -> None:
        """Update the parameters and tables with these numbers, which is what DyNet says of it, but does nothing there.

        Gradients are clipped by the norm of those that are updated; gradients of others stay.

        Args:
            updated_params: places in `parameters_list()`.
            updated_lookups: places in `lookup_parameters_list()`.
        """
        dense, tables = self._model.parameters_list(), self._model.lookup_parameters_list()
        self._update([*(dense[one] for one in updated_params), *(tables[one] for one in updated_lookups)])

    def _update(self, parameters: list[Any]) -> None:
        found = []
        for x in parameters:
            if not x.is_updated():
                continue
            if not self._sparse if isinstance(x, eb.LookupParameters) else not x.has_grad:
                x.accumulator()  # zeros are a gradient, too
            if x.has_grad:
                found.append(x)
        if found:
            core = self._core_of(found)
            core.update()
            self._clipped += bool(core.clip and core.gradient_norm > core.clip)
        self._updates += 1
        self._since += 1
        lam = self._model.get_weight_decay()
        if lam:
            for x in parameters:
                x.scale(1.0 - lam)

    def _core_of(self, parameters: list[Any]) -> _Core:
        """What updates these; it remembers what it remembers of all."""
        core = self._core
        if core is None:
            core = self._core = type(f"_{type(self).__name__}", (_Core,), {"rule": self.rule})(parameters, of=self)
        core.groups = [{"params": parameters}]
        core.clip = self._threshold if self._threshold > 0 else None
        return core

    def restart(self, learning_rate: float | None = None) -> None:
        """Forget what is remembered of all parameters; Adam's count of updates goes on, as in DyNet."""
        self._core = None
        if learning_rate is not None:
            self.set_learning_rate(learning_rate)

    def set_learning_rate(self, learning_rate: float) -> None:
        """Set the learning rate."""
        self.learning_rate = number("set_learning_rate: learning_rate", learning_rate)

    def set_clip_threshold(self, thr: float) -> None:
        """Scale gradients so that their norm is at most this; 0: never."""
        self._threshold = max(0.0, float(thr))

    def get_clip_threshold(self) -> float:
        """What `set_clip_threshold` set; 5 at first."""
        return self._threshold

    def set_sparse_updates(self, su: bool) -> None:
        """Whether only the rows of a table are updated that were looked up."""
        self._sparse = bool(su)

    def update_epoch(self, r: float = 1.0) -> None:
        """Refuse: learning rates are set between epochs."""
        raise DeprecationWarning(
            "Trainer.update_epoch() is deprecated. Use Trainer.learning_rate attributes to update the learning rate."
        )

    def status(self) -> None:
        """Print the learning rate, the number of updates and of clipped ones since the last call."""
        print(f"[lr={self.learning_rate} clips={self._clipped} updates={self._since}] ", end="", file=sys.stderr)
        self._since = self._clipped = 0

    def whoami(self) -> str:
        """Its name."""
        return type(self).__name__


class SimpleSGDTrainer(Trainer):
    """p -= lr g."""

    rule = Rule((), ("scale", "lr"), "p = p - lr * (scale * g)")

    def __init__(self, m: ParameterCollection, learning_rate: float = 0.1) -> None:
        super().__init__(m, learning_rate)


class CyclicalSGDTrainer(SimpleSGDTrainer):
    """`SimpleSGDTrainer` with a rate that goes up and down between two (Smith 2015)."""

    def __init__(
        self, m: ParameterCollection, learning_rate_min: float = 0.01, learning_rate_max: float = 0.1,
        step_size: float = 2000, gamma: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(m, learning_rate_min)
        self._range, self._step_size, self._gamma = (learning_rate_min, learning_rate_max), step_size, gamma
        self._iteration = 0

    def _update(self, parameters: list[Any]) -> None:
        super()._update(parameters)
        low, high = self._range
        cycle = math.floor(1 + self._iteration / (2 * self._step_size))
        x = abs(self._iteration / self._step_size - 2 * cycle + 1)
        rise = 1 - x
        self.learning_rate = low + ((high - low) * rise * self._gamma**self._iteration if rise > 0 else 0)
        self._iteration += 1


class MomentumSGDTrainer(Trainer):
    """v = mom v - lr g, p += v."""

    rule = Rule(
        ("velocity",), ("scale", "lr", "mom"), "velocity = mom * velocity - lr * (scale * g)\np = p + velocity"
    )  # fmt: skip

    def __init__(self, m: ParameterCollection, learning_rate: float = 0.01, mom: float = 0.9) -> None:
        super().__init__(m, learning_rate)
        self._mom = mom

    def _constants(self, update: int) -> dict[str, float]:
        return {"mom": self._mom}


class AdagradTrainer(Trainer):
    """s += g², p -= lr g / √(s + eps)."""

    rule = Rule(
        ("squares",),
        ("scale", "lr", "eps"),
        "d = scale * g\nsquares = squares + d * d\np = p - lr * d / sqrt(squares + eps)",
    )

    def __init__(self, m: ParameterCollection, learning_rate: float = 0.1, eps: float = 1e-20) -> None:
        super().__init__(m, learning_rate)
        self._eps = eps

    def _constants(self, update: int) -> dict[str, float]:
        return {"eps": self._eps}


class AdadeltaTrainer(Trainer):
    """Steps of the size of the last ones, g √(d + eps) / √(s + eps); `learning_rate` is no matter, as in DyNet."""

    rule = Rule(
        ("squares", "steps"),
        ("scale", "lr", "eps", "rho"),
        """
d = scale * g
squares = rho * squares + (1 - rho) * d * d
step = lr * d * sqrt(steps + eps) / sqrt(squares + eps)
steps = rho * steps + (1 - rho) * step * step
p = p - step
""",
    )

    def __init__(self, m: ParameterCollection, eps: float = 1e-6, rho: float = 0.95) -> None:
        super().__init__(m, 1.0)
        self._eps, self._rho = eps, rho

    def _rate(self) -> float:
        return 1.0

    def _constants(self, update: int) -> dict[str, float]:
        return {"eps": self._eps, "rho": self._rho}


class RMSPropTrainer(Trainer):
    """s = rho s + (1 - rho) g², p -= lr g / √(s + eps)."""

    rule = Rule(
        ("squares",),
        ("scale", "lr", "eps", "rho"),
        """
d = scale * g
squares = rho * squares + (1 - rho) * d * d
p = p - lr * d / sqrt(squares + eps)
""",
    )

    def __init__(
        self, m: ParameterCollection, learning_rate: float = 0.001, eps: float = 1e-8, rho: float = 0.9
    ) -> None:
        super().__init__(m, learning_rate)
        self._eps, self._rho = eps, rho

    def _constants(self, update: int) -> dict[str, float]:
        return {"eps": self._eps, "rho": self._rho}


class AdamTrainer(Trainer):
    """Adam, eps outside of the bias correction: p -= lr √(1 - β₂ᵗ) / (1 - β₁ᵗ) m / (√v + eps)."""

    rule = Rule(
        ("mean", "squares"),
        ("scale", "lr", "first", "second", "eps", "correction"),
        """
d = scale * g
mean = first * mean + (1 - first) * d
squares = second * squares + (1 - second) * d * d
p = p - lr * correction * mean / (sqrt(squares) + eps)
""",
    )

    def __init__(
        self,
        m: ParameterCollection,
        alpha: float = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        eps: float = 1e-8,
    ) -> None:
        super().__init__(m, alpha)
        self._betas, self._eps = (beta_1, beta_2), eps

    def _constants(self, update: int) -> dict[str, float]:
        first, second = self._betas
        correction = math.sqrt(1 - second**update) / (1 - first**update)
        return {"first": first, "second": second, "eps": self._eps, "correction": correction}


class AmsgradTrainer(AdamTrainer):
    """`AdamTrainer` with the largest second moment so far."""

    rule = Rule(
        ("mean", "squares", "largest"),
        ("scale", "lr", "first", "second", "eps", "correction"),
        """
d = scale * g
mean = first * mean + (1 - first) * d
squares = second * squares + (1 - second) * d * d
largest = maximum(largest, squares)
p = p - lr * correction * mean / (sqrt(largest) + eps)
""",
    )
