"""What was asked of EdBatch on a data-centre GPU, beside what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from typing import Any

from scripts.bench.report import figure
from scripts.gpu.points import OWN, PAPER, PER_SAMPLE

Row = dict[str, Any]


def figures(rows: Iterable[Row], batch: int = 64, hidden: int = 256) -> list[Row]:
    """Of rows of points.

    Args:
        rows: one per point and side, as `measure.run_point` gives them.
        batch, hidden: where the models are compared.
    """
    good = [row for row in rows if "error" not in row and row["precision"] == "float32"]
    found = list(_paper(good))
    for mode in ("forward", "training"):
        at = [row for row in good if (row["mode"], row["batch"], row["hidden"]) == (mode, batch, hidden)]
        place = f"{mode}, hidden {hidden}, batch {batch}"
        found += _ratios(at, place, ">= 1.5" if mode == "forward" else "")
        found += _host_and_device(at, place, 0 if mode == "forward" else "")
    return found


def _paper(rows: list[Row]) -> Iterator[Row]:
    """Latency of TreeLSTM against table 5 of the paper: at most a third."""
    own = {(row["batch"], row["hidden"]): row for row in rows
           if (row["model"], row["mode"], row["by"]) == ("TreeLSTM", "forward", OWN)}  # fmt: skip
    for (batch, hidden), ms in PAPER.items():
        if (batch, hidden) in own:
            name = f"TreeLSTM forward, hidden {hidden}, batch {batch}; the paper: {ms:.2f} ms"
            yield figure(name, own[batch, hidden]["ms"], f"<= {ms / 3:.3f}", "ms")


def _ratios(rows: list[Row], place: str, asked: str) -> Iterator[Row]:
    """Geometric means over the models; of each model, the fastest of PyTorch's sides that are compared."""
    others = [row for row in rows if row["by"] not in (OWN, PER_SAMPLE)]
    by_hand = [row for row in others if "CUDA graph" not in row["by"] and "compiled" not in row["by"]]
    sides = [
        ("the fastest by hand", by_hand, "ratio"),
        ("the fastest by hand, its preparation not counted", by_hand, "ratio prepared"),
        ("the fastest by hand, mini-batches in a row", by_hand, "ratio in a row"),
    ]
    if len(others) > len(by_hand):
        sides.append(("the fastest of all, compiled or captured before", others, "ratio prepared"))
    for name, compared, column in sides:
        smallest: dict[str, float] = {}
        for row in compared:
            if column in row:
                smallest[row["model"]] = min(row[column], smallest.get(row["model"], float("inf")))
        if smallest:
            what = f"{place}: against {name}, geometric mean of {', '.join(smallest)}"
            yield figure(
                what, statistics.geometric_mean(smallest.values()), asked if compared is by_hand else "", "times"
            )


def _host_and_device(rows: list[Row], place: str, waits: Any) -> Iterator[Row]:
    measured: dict[str, Row] = {}
    for row in rows:
        if row["by"] == OWN and "device ms" in row:
            measured.setdefault(row["model"], row)
    for model, row in measured.items():
        host, device = row["host ms"], row["device ms"]
        name = f"{model}, {place}: host {host:.3g} ms below device {device:.3g} ms"
        yield figure(name, "yes" if host < device else "no", "yes")
        yield figure(f"{model}, {place}: waits for the device", row["waits"], waits)
