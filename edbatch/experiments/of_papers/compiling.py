"""ED-Batch's table 4: what compiling a cell takes."""

from __future__ import annotations

from edbatch.experiments.cell_costs import compile_seconds, kernel_seconds
from edbatch.experiments.charts import Bars
from edbatch.experiments.experiment import Experiment, Point, Row, Setting, grid
from edbatch.experiments.paper_cells import CASES
from edbatch.experiments.papers import ED_BATCH

BY_NAME = {case.name: case for case in CASES}


def points(setting: Setting) -> list[Point]:
    """The seven cells."""
    return grid(cell=list(BY_NAME))


def measure(setting: Setting, point: Point) -> list[Row]:
    """One cell, of fresh models; its kernels as if no process had compiled any before."""
    case = BY_NAME[point["cell"]]
    stages = {name: 1e3 * seconds for name, seconds in compile_seconds(case, setting.rounds).items()}
    kernels = 1e3 * kernel_seconds(case)
    return [{"side": "EdBatch", "ms": sum(stages.values()), **stages, "kernels, once a machine": kernels}]


EXPERIMENT = Experiment(
    name="compiling",
    paper=ED_BATCH,
    place="table 4",
    shows="Milliseconds of compiling a cell: batching inside it, and the layout of its variables.",
    points=points,
    measure=measure,
    charts=[Bars("cell", "ms", title="ms", wide=True)],
    theirs=[{"cell": case.name, "side": "ED-Batch", "ms": case.milliseconds} for case in CASES],
    remark="Kernels are compiled apart, by LLVM, and kept in the cache folder for all processes.",
)
