"""Gradient descent, with and without momentum."""

from __future__ import annotations

from dataclasses import dataclass

from edbatch.errors import checked_flag
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

    def constants(self, lr: float, updates: int) -> dict[str, float]:
        """lr and weight decay."""
        return {"lr": lr, "decay": self.weight_decay}


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
        return {
            "lr": lr,
            "decay": self.weight_decay,
            "keep": self.momentum,
            "of_gradient": of_gradient,
            "of_velocity": of_velocity,
        }
