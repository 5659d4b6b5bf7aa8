"""CLEVR program executor: a neural module per function, put together as a program says (Johnson et al. 2017, "IEP")."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import edbatch as eb
from edbatch.models.arguments import checked
from edbatch.models.classifier import Classifier


class ModuleNetwork(Classifier):
    """Executes programs over features of a picture: each function is a network of two convolutions (section 3.2, and
    the paper's supplement: residual blocks), a classifier reads what the last one gives.

    Modules of one kind run together, over all programs and pictures: the workload of Suarez and Zhu (2019).

    Args:
        modules: the number of inputs of each function, by name: 0 (reads the picture), 1, 2, ...; see `modules_of`.
        features: channels of a picture's features.
        channels: channels between modules.
        side: height and width of the features.
        labels: number of answers.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.data.programs import random_programs
        >>> from edbatch.models import ModuleNetwork
        >>> programs = random_programs(4, seed=0)
        >>> modules = ModuleNetwork.modules_of(program.steps for program in programs)
        >>> network = ModuleNetwork(eb.ParameterCollection(seed=0), modules, features=3, channels=2, side=4, labels=5)
        >>> with eb.Graph():
        ...     scores = [network.scores(network.hidden(program.steps, eb.ones((3, 4, 4)))) for program in programs]
        >>> scores[0].shape
        (5,)
    """

    @checked
    def __init__(
        self, model: eb.ParameterCollection, modules: dict[str, int], features: int, channels: int, side: int,
        labels: int,
    ) -> None:  # fmt: skip
        self.stem = _Convolution(model, "stem", features, channels, 3)
        self.modules = {name: _Module(model, f"module.{name}", inputs, channels) for name, inputs in modules.items()}
        self.last = _Convolution(model, "last", channels, channels, 1)
        super().__init__(model, channels * (side // 2) ** 2, labels)

    @staticmethod
    def modules_of(programs: Iterable[Sequence[Any]]) -> dict[str, int]:
        """The functions of programs, each a list of `edbatch.data.programs.Step`, with their numbers of inputs."""
        return {step.module: len(step.inputs) for steps in programs for step in steps}

    def hidden(self, steps: Sequence[Any], picture: eb.Expression) -> eb.Expression:
        """The result of a program [channels * (side / 2)^2]; `scores` and `cross_entropy` go on from it.

        Args:
            steps: a list of `edbatch.data.programs.Step`, each after those it takes.
            picture: features [features, side, side].
        """
        seen = eb.relu(self.stem(picture))
        results: list[eb.Expression] = []
        for at, step in enumerate(steps):
            module = self.modules.get(step.module)
            if module is None:
                raise eb.EdBatchError(f"ModuleNetwork: step {at}: no module is named {step.module!r}")
            results.append(module.apply(*([results[one] for one in step.inputs] or [seen])))
        return self.read(results[-1])

    @eb.cell
    def read(self, result: eb.Expression) -> eb.Expression:
        """A vector of what the last module gives."""
        pooled = eb.max_pool2d(eb.relu(self.last(result)), 2)
        return eb.reshape(pooled, -1)


class _Convolution:
    """Keeps height and width."""

    def __init__(self, model: eb.ParameterCollection, name: str, inputs: int, outputs: int, size: int) -> None:
        self.weight = model.add_parameters((outputs, inputs, size, size), name=f"{name}.weight")
        self.bias = model.add_parameters((outputs,), name=f"{name}.bias")
        self.padding = size // 2

    def __call__(self, x: eb.Expression) -> eb.Expression:
        return eb.conv2d(x, self.weight, self.bias, padding=self.padding)


class _Module:
    """x -> relu(x + conv(relu(conv(x)))); a convolution brings several inputs together before."""

    def __init__(self, model: eb.ParameterCollection, name: str, inputs: int, channels: int) -> None:
        self.first = _Convolution(model, f"{name}.first", channels, channels, 3)
        self.second = _Convolution(model, f"{name}.second", channels, channels, 3)
        self.join = _Convolution(model, f"{name}.join", inputs * channels, channels, 1) if inputs > 1 else None

    @eb.cell
    def apply(self, *xs: eb.Expression) -> eb.Expression:
        (x,) = [eb.relu(self.join(eb.concatenate(list(xs))))] if self.join else xs
        return eb.relu(x + self.second(eb.relu(self.first(x))))
