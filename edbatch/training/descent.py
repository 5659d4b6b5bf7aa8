"""Gradient descent, with and without momentum; and with a rate for every entry, from the squares of its gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass

from edbatch.errors import checked_flag
from edbatch.schedules import Schedule
from edbatch.training.rule import Rule
from edbatch.training.trainer import Trainer

GRADIENT_DESCENT = Rule(
    slots=(),
    constants=("scale", "lr", "decay"),
    body="""
d = scale * g + decay * p
p = p - lr * d
""",
)
MOMENTUM = Rule(
    slots=("velocity",),
    constants=("scale", "lr", "decay", "keep", "of_gradient", "of_velocity"),
    body="""
d = scale * g + decay * p
velocity = keep * velocity + d
p = p - lr * (of_gradient * d + of_velocity * velocity)
""",
)


def by_root_of(squares: str) -> Rule:
    """The rule whose slot has this name: every entry has a learning rate of lr / (√squares + eps)."""
    return Rule(
        slots=(squares,),
        constants=("scale", "lr", "decay", "keep", "add", "eps"),
        body=f"""
d = scale * g + decay * p
{squares} = keep * {squares} + add * d * d
p = p - lr * d / (sqrt({squares}) + eps)
""",
    )


ADADELTA = Rule(
    slots=("mean_square", "mean_square_step"),
    constants=("scale", "lr", "decay", "keep", "add", "eps"),
    body="""
d = scale * g + decay * p
mean_square = keep * mean_square + add * d * d
step = sqrt(mean_square_step + eps) / sqrt(mean_square + eps) * d
mean_square_step = keep * mean_square_step + add * step * step
p = p - lr * step
""",
)


@dataclass(eq=False)
class SGD(Trainer):
    """Stochastic gradient descent: p -= lr (g + weight_decay p). Arguments as of `Trainer`.

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection()
        >>> W = model.add_parameters(2, init=1.0)
        >>> trainer = eb.SGD(model, lr=0.1)
        >>> with eb.Graph(policy="critical-path"):
        ...     loss = eb.sum(eb.square(W))
        >>> loss.backward()
        >>> trainer.update()
        >>> W.value(), W.has_grad
        (array([0.8, 0.8], dtype=float32), False)
    """

    rule = GRADIENT_DESCENT


@dataclass(eq=False, kw_only=True)
class Momentum(Trainer):
    """Gradient descent with momentum: v = momentum v + g, p -= lr v; PyTorch's `SGD(momentum=...)`.

    Args:
        momentum: what is kept of the velocity v.
        nesterov: p -= lr (g + momentum v).

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection()
        >>> W = model.add_parameters(2, init=1.0)
        >>> trainer = eb.Momentum(model, lr=0.1, momentum=0.5)
        >>> for _ in range(2):
        ...     W.accumulator()[0][...] = 1  # as backward does
        ...     trainer.update()
        >>> W.value()  # 1 - 0.1 - 0.15
        array([0.75, 0.75], dtype=float32)
    """

    momentum: float = 0.9
    nesterov: bool = False

    rule = MOMENTUM
    below = Trainer.below | {"momentum": 1}

    def check(self) -> None:
        """Raise an `EdBatchError` unless all hyper-parameters are in range."""
        super().check()
        checked_flag(f"{self._name}: nesterov", self.nesterov)

    def constants(self, lr: float, updates: int) -> dict[str, float]:
        """lr, weight decay, momentum, and what gradient and velocity move."""
        of_gradient, of_velocity = (1.0, self.momentum) if self.nesterov else (0.0, 1.0)
        moves = {"of_gradient": of_gradient, "of_velocity": of_velocity}
        return super().constants(lr, updates) | {"keep": self.momentum} | moves


@dataclass(eq=False, kw_only=True)
class Adagrad(Trainer):
    """Adagrad (Duchi et al. 2011): s += g², p -= lr g / (√s + eps).

    Args:
        eps: keeps the first steps of small gradients small.

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection()
        >>> W = model.add_parameters(2, init=1.0)
        >>> trainer = eb.Adagrad(model, lr=0.5)
        >>> W.accumulator()[0][...] = 3  # as backward does
        >>> trainer.update()
        >>> W.value()
        array([0.5, 0.5], dtype=float32)
    """

    eps: float = 1e-10

    rule = by_root_of("sum_of_squares")
    below = Trainer.below | {"eps": math.inf}

    def constants(self, lr: float, updates: int) -> dict[str, float]:
        """lr, weight decay; all old and new squares count in full; eps."""
        return super().constants(lr, updates) | {"keep": 1.0, "add": 1.0, "eps": self.eps}


@dataclass(eq=False, kw_only=True)
class RMSProp(Trainer):
    """RMSProp (Tieleman and Hinton 2012): s = alpha s + (1 - alpha) g², p -= lr g / (√s + eps).

    PyTorch's with its defaults `momentum=0` and `centered=False`.

    Args:
        alpha: what is kept of the mean of squares s.
        eps: added to the root.

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection()
        >>> W = model.add_parameters(2, init=1.0)
        >>> trainer = eb.RMSProp(model, lr=0.25, alpha=0.75)
        >>> W.accumulator()[0][...] = 3  # as backward does
        >>> trainer.update()
        >>> W.value()
        array([0.5, 0.5], dtype=float32)
    """

    alpha: float = 0.99
    eps: float = 1e-8

    rule = by_root_of("mean_square")
    below = Trainer.below | {"alpha": 1, "eps": math.inf}

    def constants(self, lr: float, updates: int) -> dict[str, float]:
        """lr, weight decay, how much old and new squares count, eps."""
        return super().constants(lr, updates) | {"keep": self.alpha, "add": 1 - self.alpha, "eps": self.eps}


@dataclass(eq=False)
class Adadelta(Trainer):
    """Adadelta (Zeiler 2012): s = rho s + (1 - rho) g², step = g √(u + eps) / √(s + eps), u = rho u + (1 - rho) step²,
    p -= lr step.

    Args:
        rho: what is kept of the means of squares s and u.
        eps: added to both under the root.

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection()
        >>> W = model.add_parameters(2, init=1.0)
        >>> trainer = eb.Adadelta(model, rho=0.75, eps=1e-4)
        >>> W.accumulator()[0][...] = 2  # as backward does
        >>> trainer.update()
        >>> W.value().round(2)  # the first step is about √(eps / (1 - rho))
        array([0.98, 0.98], dtype=float32)
    """

    lr: float | Schedule = 1.0
    rho: float = 0.9
    eps: float = 1e-6

    rule = ADADELTA
    below = Trainer.below | {"rho": 1, "eps": math.inf}

    def constants(self, lr: float, updates: int) -> dict[str, float]:
        """lr, weight decay, how much old and new squares count, eps."""
        return super().constants(lr, updates) | {"keep": self.rho, "add": 1 - self.rho, "eps": self.eps}
