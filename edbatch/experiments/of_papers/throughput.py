"""ED-Batch's figure 6: samples a second, by batch size and model size, beside PyTorch."""

from __future__ import annotations

from edbatch.experiments.charts import Lines, Rows
from edbatch.experiments.contest import contested
from edbatch.experiments.experiment import Experiment, Pivot, Point, Row, Setting, grid
from edbatch.experiments.nine import LATTICES, NINE
from edbatch.experiments.papers import ED_BATCH

BATCHES, HIDDENS = (1, 8, 32, 64, 128, 256), (32, 64, 128, 256, 512)
QUICK, QUICK_BATCHES, QUICK_HIDDENS = ("tagger", "tree-lstm", "lattice-lstm"), (1, 64), (64,)


def points(setting: Setting) -> list[Point]:
    """The nine, by size and batch size."""
    if setting.quick:
        return grid(workload=QUICK, hidden=QUICK_HIDDENS, batch=QUICK_BATCHES)
    return grid(workload=NINE, hidden=HIDDENS, batch=BATCHES)


def measure(setting: Setting, point: Point) -> list[Row]:
    """Forward runs of one workload, by EdBatch and its peers."""
    return contested(point["workload"], point["hidden"], point["batch"], setting, training=False)


def best(rows: Rows) -> Rows:
    """Over batch sizes, as the paper draws it; of one size there is nothing to draw."""
    found: dict[tuple[str, ...], Row] = {}
    for row in rows:
        key = tuple(str(row[name]) for name in ("workload", "hidden", "side"))
        if key not in found or row["samples/s"] > found[key]["samples/s"]:
            found[key] = row
    return list(found.values()) if len({row["hidden"] for row in rows}) > 1 else []


def middle(rows: Rows) -> Rows:
    """At size 128, or the one that there is."""
    hiddens = {row["hidden"] for row in rows}
    return [row for row in rows if row["hidden"] == (128 if 128 in hiddens else max(hiddens))]


EXPERIMENT = Experiment(
    name="throughput",
    paper=ED_BATCH,
    place="figure 6",
    shows="Samples a second, forward to all probabilities, of the best batch size by model size, and by batch size at "
    "model size 128 (quick: 64).",
    points=points,
    measure=measure,
    charts=[
        Lines("hidden", "samples/s", panel="workload", log=True, title="samples/s, best batch", of=best),
        Lines("batch", "samples/s", panel="workload", log=True, of=middle),
    ],
    theirs=[
        {"workload": name, "side": "ED-Batch", "times DyNet with Cavs's cells, CPU": times}
        for name, times in (
            ("tagger", "1.20"), ("encoder-decoder", "1.11"), ("tree-lstm", "1.63"), ("tree-gru", "1.46"),
            *((name, "1.32 to 2.97") for name in LATTICES),
        )
    ],
    pivot=Pivot(("workload", "hidden", "batch"), "samples/s"),
    remark="Of figure 6 the paper prints no numbers; these are from its text, means over model sizes. Per second of "
    "the thread's processor time. What goes through torch.compile is left out here, for it takes minutes a point.",
)  # fmt: skip
