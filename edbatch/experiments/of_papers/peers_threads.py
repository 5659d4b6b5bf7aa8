"""The nine workloads of ED-Batch beside PyTorch, all threads each."""

from __future__ import annotations

import os

from edbatch.experiments.charts import Bars
from edbatch.experiments.contest import missing
from edbatch.experiments.experiment import Experiment, Pivot, Point, Row, Setting, grid
from edbatch.experiments.measure import interleaved
from edbatch.experiments.nine import NINE
from edbatch.experiments.of_papers import peers
from edbatch.experiments.papers import ED_BATCH

THREADS = min(4, os.cpu_count() or 1)  # EdBatch computes with four at most


def points(setting: Setting) -> list[Point]:
    """The nine by mode and size, at one batch size."""
    if setting.quick:
        return grid(mode=peers.MODES[:1], hidden=peers.QUICK_HIDDENS, workload=("tree-lstm",), batch=(64,))
    return grid(mode=peers.MODES, hidden=peers.HIDDENS, workload=NINE, batch=(64,))


def measure(setting: Setting, point: Point) -> list[Row]:
    """All sides of one point but those that run one sample, or one operation, after the other."""
    found = peers.contests.contest(
        point["workload"], point["hidden"], point["batch"], data=setting.folder,
        training=point["mode"] == "training", threads=THREADS, compiled=False,
    )  # fmt: skip
    found.check()
    sides = {name: side for name, side in found.sides.items() if name not in peers.SLOW}
    runs = interleaved(sides, setting.rounds, limit=setting.limit)
    rows: list[Row] = [{"side": name, "samples/s": found.samples / min(of.wall)} for name, of in runs.items()]
    return [*peers.beside_by_hand(rows), *missing(peers.absent(found.missing))]


EXPERIMENT = Experiment(
    name="peers-threads",
    paper=ED_BATCH,
    place="its nine workloads beside PyTorch, all threads each",
    shows=f"Samples a second by the clock, {THREADS} threads each, batch size 64: the fastest of the rounds, since "
    "what else the machine does only adds to them.",
    points=points,
    measure=measure,
    charts=[Bars("workload", "times", panel="mode", title="times PyTorch by hand")],
    pivot=Pivot(("mode", "hidden", "workload", "batch"), "samples/s"),
    figures=peers.means,
    remark="The table of `peers` is with one thread each.",
)
