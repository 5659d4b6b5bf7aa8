"""Learning rates that change: small functions of the number of updates made so far.

Any callable of the step number does; these are the usual ones. `trainer.steps` is 0 before the first update.

Example:
    >>> import edbatch as eb
    >>> model = eb.ParameterCollection()
    >>> W = model.add_parameters(3)
    >>> trainer = eb.SGD(model, lr=eb.schedules.Exponential(0.1, factor=0.5))
    >>> trainer.learning_rate
    0.1
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from edbatch.base.numbers import checked_integer, checked_real
from edbatch.errors import EdBatchError, shown

Schedule = Callable[[int], float]


class _Checked:
    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            value: Any = getattr(self, field.name)
            if field.type == "int":
                value = checked_integer(
                    type(self).__name__, field.name, value, least=0 if field.name == "warmup" else 1
                )
            else:
                value = checked_real(type(self).__name__, field.name, value)
            object.__setattr__(self, field.name, value)


def _power(factor: float, exponent: int) -> float:
    """Infinite where Python has an error: the trainer then says of which step that is no learning rate."""
    try:
        return factor**exponent
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class Constant(_Checked):
    """Always `lr`."""

    lr: float

    def __call__(self, step: int) -> float:
        """The learning rate of a step."""
        return self.lr


@dataclass(frozen=True)
class Step(_Checked):
    """`lr`, times `factor` after every `every` steps.

    Example:
        >>> [Step(1.0, every=2, factor=0.5)(step) for step in range(5)]
        [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    lr: float
    every: int
    factor: float = 0.1

    def __call__(self, step: int) -> float:
        """The learning rate of a step."""
        return self.lr * _power(self.factor, step // self.every)


@dataclass(frozen=True)
class Exponential(_Checked):
    """`lr`, times `factor` after every step.

    Example:
        >>> [Exponential(1.0, factor=0.5)(step) for step in range(3)]
        [1.0, 0.5, 0.25]
    """

    lr: float
    factor: float

    def __call__(self, step: int) -> float:
        """The learning rate of a step."""
        return self.lr * _power(self.factor, step)


@dataclass(frozen=True)
class Cosine(_Checked):
    """Half a cosine from `lr` down to `final` over `steps` steps (Loshchilov and Hutter 2017), `final` after that.

    Example:
        >>> [round(Cosine(1.0, steps=4)(step), 3) for step in (0, 1, 2, 4, 9)]
        [1.0, 0.854, 0.5, 0.0, 0.0]
    """

    lr: float
    steps: int
    final: float = 0.0

    def __call__(self, step: int) -> float:
        """The learning rate of a step."""
        done = min(step / self.steps, 1.0)
        return self.final + (self.lr - self.final) * (1 + math.cos(math.pi * done)) / 2


@dataclass(frozen=True)
class WarmupLinear(_Checked):
    """Up to `lr` in `warmup` steps, then down in a straight line to 0 at step `steps`.

    Step `s` of the warm-up gets lr (s + 1) / warmup, so that the first update is not lost.

    Raises:
        EdBatchError: the warm-up does not end before the last step.

    Example:
        >>> [WarmupLinear(1.0, warmup=2, steps=6)(step) for step in range(8)]
        [0.5, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    """

    lr: float
    warmup: int
    steps: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.warmup >= self.steps:
            raise EdBatchError(
                f"WarmupLinear: warmup={shown(self.warmup)}; expected fewer than steps={shown(self.steps)}"
            )

    def __call__(self, step: int) -> float:
        """The learning rate of a step."""
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        return self.lr * max(0.0, (self.steps - step) / (self.steps - self.warmup))
