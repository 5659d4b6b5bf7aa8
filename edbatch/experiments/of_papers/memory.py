"""ED-Batch's table 2: how cells reach memory with and without a planned layout, and their latency."""

from __future__ import annotations

from edbatch.experiments.cell_costs import CALLS, SIZE, latency, memory_kernels
from edbatch.experiments.charts import Bars
from edbatch.experiments.experiment import Experiment, Point, Row, Setting, grid
from edbatch.experiments.paper_cells import CASES
from edbatch.experiments.papers import ED_BATCH

BY_NAME = {case.name: case for case in CASES}
LATENCIES = (  # milliseconds, by cell: with DyNet's allocation, and with a PQ tree
    (0.11, 0.07), (0.2, 0.13), (0.08, 0.08), (0.24, 0.15), (0.09, 0.07), (0.19, 0.12), (0.12, 0.09),
)  # fmt: skip


def points(setting: Setting) -> list[Point]:
    """The seven cells."""
    return grid(cell=list(BY_NAME))


def measure(setting: Setting, point: Point) -> list[Row]:
    """One cell, under every layout; latency is of the planned one, beside the same written by hand in NumPy."""
    case = BY_NAME[point["cell"]]
    times = latency(case, setting.rounds)
    rows = [
        {"side": name, "memory kernels": kernels, "kB moved": size}
        for name, (kernels, size) in memory_kernels(case).items()
    ]
    rows[0]["latency, us"] = times["ours"]
    return [*rows, {"side": "by hand, NumPy", "latency, us": times["by hand"]}]


EXPERIMENT = Experiment(
    name="memory",
    paper=ED_BATCH,
    place="table 2",
    shows=f"Memory kernels, kilobytes moved and latency of a batch of {CALLS} calls of a cell, size {SIZE}.",
    points=points,
    measure=measure,
    charts=[
        Bars("cell", "memory kernels", wide=True),
        Bars("cell", "kB moved", wide=True),
        Bars("cell", "latency, us", log=True, wide=True),
    ],
    theirs=[
        {"cell": case.name, "side": side, "memory kernels": case.kernels[at], "kB moved": case.kilobytes[at],
         "latency, us": 1e3 * latencies[at]}
        for case, latencies in zip(CASES, LATENCIES, strict=True)
        for at, side in enumerate(("DyNet's allocation", "PQ tree"))
    ],
    remark="planned: the compiler's layout; as written: the planned batches with every "
    "variable at its place in the code; copies run: what the compiled program does copy. A memory kernel is a "
    "copy that computes nothing; one variable for a whole batch is a broadcast and counts nothing (the paper counts "
    "it, and has nothing else left). The paper's latencies are those of its own kernels.",
)  # fmt: skip
