"""Trainers with DyNet's formulas: what an update does to one entry of a parameter."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import edbatch as eb
from edbatch.dynet.collection import ParameterCollection
from edbatch.dynet.implicit import DynetTypeError
from edbatch.training.rule import Rule
from edbatch.training.trainer import Trainer as Core


@dataclass(eq=False, kw_only=True)
class _Core(Core):
    """What updates: EdBatch's trainer, with a rule and constants of DyNet's."""

    of: Any = None
    _cure = "Call reset_gradient() of the collection before the loss that its trainer is to apply goes back"

    def constants(self, lr: float, updates: int) -> dict[str, float]:
        """The rule's constants at the update that comes; it counts for all parameters."""
        found: dict[str, float] = self.of._constants()
        return {name: found[name] for name in self.rule.constants if name != "scale"}


class Trainer:
    """Updates the parameters of a collection by their gradients; the base of all trainers.

    Gradients are clipped to a norm of 5, parameters without a gradient are updated by one of zero, and an update
    without any is no error. Hyper-parameters are in `hyper`, with their defaults: the first is the learning rate, but
    for `AdadeltaTrainer`. `learning_rate` may be set between updates.
    """

    hyper: ClassVar[dict[str, float]]
    rule: ClassVar[Rule]

    def __init__(self, m: ParameterCollection, *given: float, **named: float) -> None:
        name = type(self).__name__
        if len(given) > len(self.hyper) or not named.keys() <= self.hyper.keys():
            raise DynetTypeError(f"{name}: expected a collection, {', '.join(self.hyper)}; got {given}, {named}")
        self._given = {**self.hyper, **dict(zip(self.hyper, given, strict=False)), **named}
        rate = next(iter(self.hyper))
        self.learning_rate = 1.0 if rate == "eps" else self._given[rate]
        self._model = m
        self._threshold = 5.0
        self._sparse = True
        self._updates = self._since = self._clipped = 0
        self._core: _Core | None = None

    def _constants(self) -> dict[str, float]:
        return {**self._given, "lr": self.learning_rate}  # of the next update, among others

    def update(self) -> None:
        """Update all parameters, and forget their gradients."""
        everything: list[Any] = list(self._model)
        found = []
        for x in everything:
            if not x.is_updated():
                continue
            if not self._sparse if isinstance(x, eb.LookupParameters) else not x.has_grad:
                x.accumulator()  # zeros are a gradient, too
            if x.has_grad:
                found.append(x)
        if found:
            core = self._core
            if core is None:
                core = self._core = type(type(self).__name__, (_Core,), {"rule": self.rule})(found, of=self)
            core.groups = [{"params": found}]
            core.clip = self._threshold or None
            core.update()
            self._clipped += bool(core.clip and core.gradient_norm > core.clip)
        self._updates += 1
        self._since += 1
        lam = self._model.get_weight_decay()
        if lam:
            for x in everything:
                x.set_value(x.as_array() * (1.0 - lam))

    def restart(self, learning_rate: float | None = None) -> None:
        """Forget what is remembered of all parameters; Adam's count of updates goes on, as in DyNet."""
        self._core = None
        if learning_rate is not None:
            self.learning_rate = learning_rate

    def set_clip_threshold(self, thr: float) -> None:
        """Scale gradients so that their norm is at most this; 0: never."""
        self._threshold = max(0.0, float(thr))

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


class SimpleSGDTrainer(Trainer):
    """p -= lr g."""

    hyper: ClassVar = {"learning_rate": 0.1}
    rule = Rule((), ("scale", "lr"), "p = p - lr * (scale * g)")


class MomentumSGDTrainer(Trainer):
    """v = mom v - lr g, p += v."""

    hyper: ClassVar = {"learning_rate": 0.01, "mom": 0.9}
    rule = Rule(("v",), ("scale", "lr", "mom"), "v = mom * v - lr * (scale * g)\np = p + v")


class AdagradTrainer(Trainer):
    """s += g², p -= lr g / √(s + eps)."""

    hyper: ClassVar = {"learning_rate": 0.1, "eps": 1e-20}
    rule = Rule(("s",), ("scale", "lr", "eps"), "d = scale * g\ns = s + d * d\np = p - lr * d / sqrt(s + eps)")


class AdadeltaTrainer(Trainer):
    """Steps of the size of the last ones, g √(d + eps) / √(s + eps); `learning_rate` is no matter, as in DyNet."""

    hyper: ClassVar = {"eps": 1e-6, "rho": 0.95}
    rule = Rule(
        ("squares", "steps"),
        ("scale", "eps", "rho"),
        """
d = scale * g
squares = rho * squares + (1 - rho) * d * d
step = d * sqrt(steps + eps) / sqrt(squares + eps)
steps = rho * steps + (1 - rho) * step * step
p = p - step
""",
    )


class RMSPropTrainer(Trainer):
    """s = rho s + (1 - rho) g², p -= lr g / √(s + eps)."""

    hyper: ClassVar = {"learning_rate": 0.001, "eps": 1e-8, "rho": 0.9}
    rule = Rule(
        ("s",),
        ("scale", "lr", "eps", "rho"),
        "d = scale * g\ns = rho * s + (1 - rho) * d * d\np = p - lr * d / sqrt(s + eps)",
    )


_MOMENTS = """
d = scale * g
mean = beta_1 * mean + (1 - beta_1) * d
squares = beta_2 * squares + (1 - beta_2) * d * d
"""


class AdamTrainer(Trainer):
    """Adam, eps outside of the bias correction: p -= lr √(1 - β₂ᵗ) / (1 - β₁ᵗ) m / (√v + eps)."""

    hyper: ClassVar = {"alpha": 0.001, "beta_1": 0.9, "beta_2": 0.999, "eps": 1e-8}
    rule = Rule(
        ("mean", "squares"),
        ("scale", "lr", "beta_1", "beta_2", "eps", "correction"),
        _MOMENTS + "p = p - lr * correction * mean / (sqrt(squares) + eps)",
    )

    def _constants(self) -> dict[str, float]:
        found, t = super()._constants(), self._updates + 1
        return {**found, "correction": math.sqrt(1 - found["beta_2"] ** t) / (1 - found["beta_1"] ** t)}


class AmsgradTrainer(AdamTrainer):
    """`AdamTrainer` with the largest second moment so far."""

    rule = Rule(
        ("mean", "squares", "largest"),
        AdamTrainer.rule.constants,
        _MOMENTS + "largest = maximum(largest, squares)\np = p - lr * correction * mean / (sqrt(largest) + eps)",
    )
