"""Suarez and Zhu's figure 3: a layer of experts, of which each sample asks one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.experiments import torch_forms
from edbatch.experiments.charts import Grid
from edbatch.experiments.contest import agree
from edbatch.experiments.experiment import Experiment, Pivot, Point, Row, Setting, grid
from edbatch.experiments.measure import interleaved
from edbatch.experiments.papers import SUAREZ_ZHU
from edbatch.models import MixtureOfExperts

SIZE, ROUNDS = 256, 15
SIZES = (1, 10, 100, 1000, 10_000)
THEIRS: dict[int, tuple[float, ...]] = {  # by batch size, over numbers of experts
    10_000: (1190, 699, 86.2, 9.43, 1.00),
    1000: (676, 87.4, 9.40, 1.41, 1.00),
    100: (89.0, 9.80, 1.56, 1.00, 1.00),
    10: (10.7, 1.65, 1.33, 0.99, 1.03),
    1: (1.79, 0.86, 1.22, 0.98, 1.01),
}
TIMES = "execution, times"
COMPARED = {  # by name: who is divided by whom
    "EdBatch over itself unbatched": ("sufficient", "none"),
    "EdBatch over PyTorch one by one": ("sufficient", "one by one"),
    "PyTorch by hand over one by one": ("by hand", "one by one"),
}


class Layer:
    """Experts, samples, and which expert each asks."""

    def __init__(self, experts: int, batch: int) -> None:
        random = np.random.default_rng(0)
        self.layer = MixtureOfExperts(eb.ParameterCollection(seed=0), experts, SIZE, SIZE)
        self.asked = random.integers(experts, size=batch)
        self.xs = random.standard_normal((batch, SIZE)).astype(np.float32)

    def run(self, policy: str) -> tuple[eb.Graph, Any]:
        """The graph after it has run, and the outputs."""
        with eb.Graph(policy=policy) as graph:
            experts = [self.layer.experts[number] for number in self.asked.tolist()]
            ys = [expert.answer(x) for expert, x in zip(experts, eb.array(self.xs), strict=True)]
            graph.run()
        return graph, ys

    def execution(self, policy: str) -> dict[str, float]:
        """Seconds."""
        return {"execution": self.run(policy)[0].report().seconds["execution"]}

    def in_torch(self) -> dict[str, Callable[[], Any]]:
        """One sample after the other; and those of an expert together, as the paper has it."""
        torch, linear = torch_forms.torch, torch_forms.torch.nn.functional.linear
        known = {number: self.layer.experts[number] for number in set(self.asked.tolist())}
        experts = {number: (torch_forms.copied(one.W), torch_forms.copied(one.b)) for number, one in known.items()}
        xs, asked = torch.tensor(self.xs), self.asked.tolist()
        groups = [(torch.tensor(np.flatnonzero(self.asked == number)), *of) for number, of in experts.items()]

        def one_by_one() -> Any:
            return [torch.tanh(linear(x, *experts[number])) for x, number in zip(xs, asked, strict=True)]

        def by_hand() -> Any:
            ys = torch.empty_like(xs)
            for rows, W, b in groups:
                ys[rows] = torch.tanh(linear(xs[rows], W, b))
            return ys

        return {"one by one": one_by_one, "by hand": by_hand}


def points(setting: Setting) -> list[Point]:
    """Experts by samples; 10,000 experts would be 2.6 GB of weights."""
    return grid(experts=SIZES[:3] if setting.quick else SIZES[:4], batch=SIZES[: 4 if setting.quick else 5])


def measure(setting: Setting, point: Point) -> list[Row]:
    """One mini-batch: each sample asks an expert drawn for it; execution alone is what the paper measures."""
    layer = Layer(point["experts"], point["batch"])
    sides: dict[str, Callable[[], Any]] = {name: partial(layer.execution, name) for name in ("none", "sufficient")}
    outputs: dict[str, Any] = {name: np.array(eb.forward(layer.run(name)[1])) for name in sides}
    others = layer.in_torch() if torch_forms.available() else {}
    outputs |= {name: np.array([y.numpy() for y in other()]) for name, other in others.items()}
    agree(outputs, "the outputs")
    runs = interleaved(sides | others, ROUNDS, limit=setting.limit)
    # The least of many runs: most take some microseconds, by the clock.
    seconds = {name: min(runs[name].figures["execution"]) for name in sides}
    seconds |= {name: min(runs[name].wall) for name in others}
    return [
        {"side": name, TIMES: seconds[over] / seconds[of]}
        if {of, over} <= seconds.keys()
        else {"side": name, "missing": torch_forms.MISSING}
        for name, (of, over) in COMPARED.items()
    ]


EXPERIMENT = Experiment(
    name="moe",
    paper=SUAREZ_ZHU,
    place="figure 3",
    shows=f"Experts of {SIZE} x {SIZE}: how many times as fast all samples of an expert are together.",
    points=points,
    measure=measure,
    charts=[Grid("experts", TIMES, panel="side", side="batch")],
    theirs=[
        {"experts": experts, "batch": batch, "side": "Suarez & Zhu", TIMES: times}
        for at, experts in enumerate(SIZES)
        for batch, times in (
            (batch, row[at]) for batch, row in sorted(THEIRS.items())
        )
    ],
    pivot=Pivot(("experts", "batch"), TIMES),
    remark="The paper's experts have a hidden layer of 256 and as many outputs as there are experts, these have one "
    "layer; its numbers are PyTorch by hand over one by one, on a GPU, which one sample leaves idle. EdBatch unbatched "
    "has no Python between two samples. 10,000 experts are not measured: 2.6 GB of weights.",
)  # fmt: skip
