"""ED-Batch's figure 8: where the time of a mini-batch goes."""

from __future__ import annotations

import statistics
from functools import partial

import edbatch as eb
from edbatch.experiments.charts import Stack
from edbatch.experiments.experiment import Experiment, Pivot, Point, Row, Setting, grid
from edbatch.experiments.measure import STAGES, interleaved
from edbatch.experiments.nine import NINE, split
from edbatch.experiments.papers import ED_BATCH

RUNS = {"learned": (True, None), "agenda": (True, "agenda"), "agenda, op by op": (False, "agenda")}
ROUNDS = 15
QUICK = ("tagger", "tree-lstm", "lattice-lstm")


def points(setting: Setting) -> list[Point]:
    """The nine."""
    return grid(workload=QUICK if setting.quick else NINE)


def measure(setting: Setting, point: Point) -> list[Row]:
    """One workload: with the learned policy, with DyNet's rule, and with that rule op by op, as DyNet itself runs."""
    hidden, size = (64, 32) if setting.quick else (128, 64)
    found = split(point["workload"], setting, hidden, size)
    policies = {}
    for name, (cells, rule) in RUNS.items():
        with eb.options(cells=cells):
            policies[name] = found.policy() if rule is None else eb.get_policy(rule)

    def run(name: str) -> dict[str, float]:
        with eb.options(cells=RUNS[name][0]):
            of = [found.mini_batches.stages(number, policies[name]) for number in found.held_out]
        return {stage: 1e3 * statistics.fmean(one[stage] for one in of) for stage in STAGES}

    runs = interleaved({name: partial(run, name) for name in RUNS}, ROUNDS, limit=setting.limit)
    rows: list[Row] = []
    for name in RUNS:
        of_each = zip(*(runs[name].figures[stage] for stage in STAGES), strict=True)
        fastest = min(of_each, key=sum)
        rows += [{"run": name, "side": stage, "ms": ms} for stage, ms in zip(STAGES, fastest, strict=True)]
    return rows


EXPERIMENT = Experiment(
    name="stages",
    paper=ED_BATCH,
    place="figure 8",
    shows="Milliseconds of a mini-batch by stage in the fastest run, model size 128, batch size 64 (quick: 64 and 32).",
    points=points,
    measure=measure,
    charts=[Stack("run", "ms", panel="workload", title="ms a mini-batch")],
    pivot=Pivot(("workload", "run"), "ms"),
    remark="The paper prints no numbers of figure 8; its text says that construction and scheduling take about as long "
    'as in DyNet with its cells ("agenda"), and that execution is what is saved. Vanilla DyNet runs op by op.',
)
