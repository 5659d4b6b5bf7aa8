"""Adam and its kin."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from edbatch.base.numbers import checked_real
from edbatch.errors import EdBatchError, shown
from edbatch.schedules import Schedule
from edbatch.training.rule import Rule
from edbatch.training.trainer import Trainer

CONSTANTS = ("scale", "lr", "decay", "shrink", "keep", "add", "keep_square", "add_square", "correction", "eps")
MEANS = """
d = scale * g + decay * p
mean = keep * mean + add * d
mean_square = keep_square * mean_square + add_square * d * d
"""
# lr has the correction of the mean in it.
STEP = "p = shrink * p - lr * mean / (correction * sqrt({}) + eps)"
LARGEST = "largest_mean_square = maximum(mean_square, largest_mean_square)\n"
ADAM = Rule(("mean", "mean_square"), CONSTANTS, MEANS + STEP.format("mean_square"))
AMSGRAD = Rule((*ADAM.slots, "largest_mean_square"), CONSTANTS, MEANS + LARGEST + STEP.format("largest_mean_square"))


@dataclass(eq=False)
class Adam(Trainer):
    """Adam (Kingma and Ba 2015): m = β1 m + (1 - β1) g, v = β2 v + (1 - β2) g²,
    p -= lr m / (1 - β1^t) / (√(v / (1 - β2^t)) + eps).

    Args:
        betas: β1 and β2, what is kept of the means of gradients m and of their squares v.
        eps: added to the root.

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection()
        >>> W, embed = model.add_parameters(2, init=1.0), model.add_lookup_parameters((1000, 2), init=1.0)
        >>> trainer = eb.Adam(model, lr=0.25, clip=5.0)
        >>> with eb.Graph(policy="critical-path"):
        ...     loss = eb.sum(W * embed[7])
        >>> loss.backward()
        >>> trainer.update()  # of the table, only row 7
        >>> W.value(), embed.value()[[6, 7]]
        (array([0.75, 0.75], dtype=float32), array([[1.  , 1.  ], [0.75, 0.75]], dtype=float32))
    """

    lr: float | Schedule = 1e-3
    _: KW_ONLY
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    rule: ClassVar[Rule] = ADAM
    below = Trainer.below | {"eps": math.inf}

    def check(self) -> None:
        """As of `Trainer`; betas too."""
        super().check()
        if not isinstance(self.betas, tuple | list) or len(self.betas) != 2:
            raise EdBatchError(f"{self._name}: betas={shown(self.betas)}; expected two numbers")
        beta1, beta2 = (checked_real(self._name, "betas", beta, below=1) for beta in self.betas)
        self.betas = beta1, beta2

    def constants(self, lr: float, updates: int) -> dict[str, float]:
        """lr and corrections of this update, weight decay, how much old and new count, eps."""
        beta1, beta2 = self.betas
        return {
            "lr": lr / (1 - beta1**updates),
            "decay": self.weight_decay,
            "shrink": 1.0,
            "keep": beta1,
            "add": 1 - beta1,
            "keep_square": beta2,
            "add_square": 1 - beta2,
            "correction": 1 / math.sqrt(1 - beta2**updates),
            "eps": self.eps,
        }


@dataclass(eq=False)
class AdamW(Adam):
    """Adam whose weight decay is no part of the gradient (Loshchilov and Hutter 2019): p *= 1 - lr weight_decay first.

    Arguments as of `Adam`.

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection()
        >>> W = model.add_parameters(2, init=1.0)
        >>> trainer = eb.AdamW(model, lr=0.25, weight_decay=1.0)
        >>> W.accumulator()[0][...] = 3  # as backward does
        >>> trainer.update()
        >>> W.value().round(6)  # 1 * (1 - 0.25) - 0.25
        array([0.5, 0.5], dtype=float32)
    """

    weight_decay: float = 1e-2

    def constants(self, lr: float, updates: int) -> dict[str, float]:
        """Adam's; weight decay shrinks."""
        return super().constants(lr, updates) | {"decay": 0.0, "shrink": 1 - lr * self.weight_decay}


@dataclass(eq=False)
class AMSGrad(Adam):
    """Adam by the largest mean of squares so far (Reddi et al. 2018); PyTorch's `Adam(amsgrad=True)`.

    Arguments as of `Adam`.

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection()
        >>> W = model.add_parameters(2, init=1.0)
        >>> trainer = eb.AMSGrad(model, lr=0.25)
        >>> W.accumulator()[0][...] = 3  # as backward does
        >>> trainer.update()
        >>> W.value()
        array([0.75, 0.75], dtype=float32)
    """

    rule = AMSGRAD
