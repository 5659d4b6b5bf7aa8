"""Suarez and Zhu's figure 2: CLEVR's module network, by batch size, over one program after the other."""

from __future__ import annotations

from functools import partial
from time import thread_time
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.data.programs import read_programs
from edbatch.data.random_programs import random_programs
from edbatch.experiments.charts import Lines
from edbatch.experiments.contest import agree
from edbatch.experiments.experiment import Experiment, Point, Row, Setting, grid
from edbatch.experiments.measure import interleaved
from edbatch.experiments.papers import SUAREZ_ZHU
from edbatch.models import ModuleNetwork

ROUNDS = 9
BATCHES, QUICK_BATCHES = (1, 4, 16, 64, 256), (1, 8, 32)
SIZES = {"features": 64, "channels": 32, "side": 14, "labels": 28}  # of pictures' features, and of answers
QUICK_SIZES = {"features": 8, "channels": 8, "side": 6, "labels": 28}
FILE = "clevr/train.jsonl"


def points(setting: Setting) -> list[Point]:
    """By batch size."""
    return grid(batch=QUICK_BATCHES if setting.quick else BATCHES)


def measure(setting: Setting, point: Point) -> list[Row]:
    """One mini-batch: each rule beside no batching, in execution alone, to the values, and going back."""
    sizes, size = QUICK_SIZES if setting.quick else SIZES, point["batch"]
    real = setting.folder is not None and (setting.folder / FILE).is_file()
    # Programs come around again where there are fewer than are wanted; their pictures do not.
    known = read_programs(setting.folder / FILE)[:size] if real and setting.folder else random_programs(size, 0)
    programs = [known[at % len(known)] for at in range(size)]
    model = eb.ParameterCollection(seed=0)
    network = ModuleNetwork(model, ModuleNetwork.modules_of(program.steps for program in programs), **sizes)
    random = np.random.default_rng(0)
    pictures = random.standard_normal((size, sizes["features"], sizes["side"], sizes["side"])).astype(np.float32)

    def run(policy: Any) -> dict[str, float]:
        start = thread_time()
        with eb.Graph(policy=policy) as graph:
            losses = [
                network.cross_entropy(network.hidden(program.steps, eb.input(picture)), 0)
                for program, picture in zip(programs, pictures, strict=True)
            ]
            loss = eb.sum(losses)
        model.zero_grad()
        graph.run()
        forward = thread_time() - start
        execution = graph.report().seconds["execution"]
        start = thread_time()
        loss.backward()
        return {"execution": execution, "inference": forward, "backward": thread_time() - start,
                "loss": float(loss.value()), "batches": graph.report().batches}  # fmt: skip

    with eb.Graph() as graph:
        for program, picture in zip(programs, pictures, strict=True):
            network.cross_entropy(network.hidden(program.steps, eb.input(picture)), 0)
    policies: dict[str, Any] = {"unbatched": "none", "standard sort": "standard-sort", "improved sort": "improved-sort"}
    policies["learned"] = eb.learn([graph.typed_graph()], progress=False)
    sides = {name: partial(run, policy) for name, policy in policies.items()}
    agree({name: side()["loss"] for name, side in sides.items()}, "the loss")
    # The least of several runs: execution is measured by the clock.
    runs = interleaved(sides, ROUNDS, limit=setting.limit)
    found = {name: {part: min(values) for part, values in of.figures.items()} for name, of in runs.items()}
    alone = found.pop("unbatched")
    return [
        {"side": name, "batches": int(of["batches"])}
        | {f"{part}, times": alone[part] / of[part] for part in ("execution", "inference", "backward")}
        for name, of in found.items()
    ]


EXPERIMENT = Experiment(
    name="iep",
    paper=SUAREZ_ZHU,
    place="figure 2",
    shows="CLEVR's programs over pictures: how many times as fast as one module of one program after the other.",
    points=points,
    measure=measure,
    charts=[
        Lines("batch", f"{part}, times", title=f"{part}, times unbatched")
        for part in ("execution", "inference", "backward")
    ],
    theirs=[{"side": "improved sort", "execution, times": 14.0, "inference, times": 5.5, "backward, times": 2.0}],
    remark='The paper prints these three numbers, for the largest batch that its GPU held ("over 14 times"), and a '
    "curve without numbers. Here modules have 32 channels over 14 x 14 places (quick: 8 over 6 x 6), theirs have 128.",
)
