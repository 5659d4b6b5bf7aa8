"""The nine workloads of ED-Batch beside PyTorch at each point that something is asked of."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import geometric_mean, median
from typing import Any

from edbatch.base.later import Later
from edbatch.experiments.charts import Bars, Rows
from edbatch.experiments.contest import NOT_COMPILED, missing, rates
from edbatch.experiments.experiment import Experiment, Pivot, Point, Row, Setting, grid
from edbatch.experiments.measure import Runs, interleaved
from edbatch.experiments.nine import LATTICES, NINE
from edbatch.experiments.papers import ED_BATCH

contests = Later("edbatch.experiments.peers")

BATCHES, HIDDENS, MODES = (8, 64, 256), (64, 256), ("forward", "training")
QUICK, QUICK_BATCHES, QUICK_HIDDENS = ("tagger", "tree-lstm", "lattice-lstm"), (8, 64), (64,)
COMPILED = (64, 64)  # hidden and batch size of the points at which `torch.compile` competes: it takes minutes
LARGEST = {("mv-rnn", 256): 64}  # batch size: more takes gigabytes of each side
SLOW = ("edbatch unbatched", "pytorch per sample", "pytorch per sample compiled")  # which a round or two tell enough of
ASKED = {64: 2.0, 256: 1.3}  # times PyTorch by hand, by size of states
ASKED_OF_LATTICES = 10.0  # samples a second, batch 64 over batch 1
HAND, OURS = "pytorch by hand", ("edbatch", "edbatch replayed")


def points(setting: Setting) -> list[Point]:
    """The nine by mode, size and batch size; lattices one by one, too."""
    if setting.quick:
        return grid(mode=MODES[:1], hidden=QUICK_HIDDENS, workload=QUICK, batch=QUICK_BATCHES)
    found = grid(mode=MODES, hidden=HIDDENS, workload=LATTICES, batch=(1,))
    found += grid(mode=MODES, hidden=HIDDENS, workload=NINE, batch=BATCHES)
    return [point for point in found if point["batch"] <= LARGEST.get((point["workload"], point["hidden"]), 256)]


def measure(setting: Setting, point: Point) -> list[Row]:
    """All sides of one point."""
    compiled = (point["hidden"], point["batch"]) == COMPILED and not setting.quick
    found = contests.contest(
        point["workload"], point["hidden"], point["batch"], data=setting.folder,
        training=point["mode"] == "training", compiled=compiled,
    )  # fmt: skip
    found.check()
    slow = {name: side for name, side in found.sides.items() if name in SLOW}
    fast = {name: side for name, side in found.sides.items() if name not in SLOW}
    runs: dict[str, Runs] = interleaved(fast, setting.rounds, limit=setting.limit)
    runs |= interleaved(slow, 1 if point["batch"] > 8 else 2, warm_ups=0)
    return [*beside_by_hand(rates(runs, found.samples)), *missing(absent(found.missing, compiled))]


def absent(sides: dict[str, str], compiled: bool = False) -> dict[str, str]:
    """Why there are no such sides; `compiled`: whether it was tried to compile what can be."""
    return {name: NOT_COMPILED if name.endswith("compiled") and not compiled else why for name, why in sides.items()}


def beside_by_hand(rows: list[Row]) -> list[Row]:
    """Rows of one point, EdBatch's with how many times as fast as the fastest by hand it is."""
    hand = max((row["samples/s"] for row in rows if row["side"].startswith(HAND)), default=None)
    return [row | {"times": row["samples/s"] / hand} if hand and row["side"] in OURS else row for row in rows]


def by_point(rows: Rows) -> Iterator[tuple[Row, dict[str, float]]]:
    """Points, and the samples a second of all sides."""
    found: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in rows:
        if row.get("samples/s") is not None:
            key = tuple(row[name] for name in ("mode", "hidden", "workload", "batch"))
            found.setdefault(key, {})[row["side"]] = row["samples/s"]
    for (mode, hidden, workload, batch), sides in found.items():
        yield {"mode": mode, "hidden": hidden, "workload": workload, "batch": batch}, sides


def means(rows: Rows) -> Rows:
    """Geometric means over workloads, by mode, size and batch size."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        if row.get("times") is not None and row["batch"] > 1:
            found.setdefault((row["mode"], row["hidden"], row["batch"], row["side"]), []).append(row["times"])
    return [
        {"of": f"{mode}, hidden {hidden}", "batch": batch, "side": side, "times": geometric_mean(values)}
        for (mode, hidden, batch, side), values in found.items()
    ]


def figures(rows: Rows) -> Rows:
    """What was asked for, and what was measured."""
    found: list[Row] = []
    ratios = [row for row in rows if row.get("times") is not None and row["batch"] > 1]
    for mode, hidden, side in dict.fromkeys((row["mode"], row["hidden"], row["side"]) for row in ratios):
        of = [row for row in ratios if (row["mode"], row["hidden"], row["side"]) == (mode, hidden, side)]
        least = min(of, key=lambda row: row["times"])
        found.append({
            "figure": f"{side}, {mode}, hidden {hidden}: times PyTorch by hand, geometric mean",
            "measured": geometric_mean([row["times"] for row in of]),
            "asked": ASKED.get(hidden),
            "median": median(row["times"] for row in of),
            "least": f"{least['times']:.2f} ({least['workload']}, batch {least['batch']})",
        })  # fmt: skip
    peers = list(dict.fromkeys(name for _, sides in by_point(rows) for name in sides if name not in OURS))
    who = "a peer" if len(peers) > 1 else f"{' '.join(peers)}, the only peer here,"
    for side in OURS:
        among = [
            sides[side] / max(rate for name, rate in sides.items() if name not in OURS)
            for point, sides in by_point(rows)
            if point["batch"] > 1 and not sides.keys() <= set(OURS)
        ]
        slower = sum(ratio < 1 for ratio in among)
        found.append(
            {"figure": f"{side}: points of {len(among)} where {who} is faster", "measured": slower, "asked": 0}
        )
    alone = {(*point.values(),): sides["edbatch"] for point, sides in by_point(rows) if point["workload"] in LATTICES}
    for (mode, hidden, workload, batch), rate in alone.items():
        if batch == 1 and (mode, hidden, workload, 64) in alone:
            gain = alone[mode, hidden, workload, 64] / rate
            name = f"{workload}, {mode}, hidden {hidden}: batch 64 over batch 1"
            found.append({"figure": name, "measured": gain, "asked": ASKED_OF_LATTICES})
    return found


EXPERIMENT = Experiment(
    name="peers",
    paper=ED_BATCH,
    place="its nine workloads beside PyTorch",
    shows="Samples a second of the thread's processor time: forward to all probabilities, and steps of training.",
    points=points,
    measure=measure,
    charts=[Bars("batch", "times", panel="of", title="times PyTorch by hand, geometric mean", of=means)],
    pivot=Pivot(("mode", "hidden", "workload", "batch"), "samples/s"),
    figures=figures,
    remark="What PyTorch by hand knows of a sample is found before the clock runs, which EdBatch's replay corresponds "
    "to; EdBatch otherwise records each sample anew. Sides are checked for the same values and gradients first.",
)
