"""What all experiments have in common but the clock: their command line, tables, JSON, a picture."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tabulate import tabulate
from threadpoolctl import threadpool_info

from edbatch.compiling.compiled import at_once
from edbatch.runtime.plan_cache import afresh
from scripts import data_folder

Rows = Sequence[Mapping[str, Any]]
Tables = dict[str, Rows]  # by title


class Chart(NamedTuple):
    """How every table that has its columns is drawn: a line for each column, or bars, where x are names.

    Attributes:
        x: a column.
        ys: how the columns begin that are drawn over it.
        panel: a column whose values have panels of their own; "": one panel.
    """

    x: str
    ys: tuple[str, ...]
    panel: str = ""


def command(
    doc: str | None,
    tables: Callable[[argparse.Namespace], Tables],
    rounds: int = 9,
    remembers: bool = False,
    chart: Chart | None = None,
    **options: Any,
) -> Callable[..., Tables]:
    """The `main` of an experiment: it prints all tables, and returns them.

    Args:
        doc: the module's; its first line is the help.
        tables: everything that is measured, from the command line.
        rounds: that a median is taken over, unless the command line says so.
        remembers: whether plans of small graphs are kept, as they are in programs; else those that are measured again
            and again stand for new ones, which have none.
        chart: how it is drawn; None: not at all.
        options: by name, what `argparse` is told of options besides `--json` and `--rounds`; tuples are values that the
            command line may change.
    """

    def main(arguments: Sequence[str] | None = None) -> Tables:
        parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
        if chart:
            parser.add_argument("--png", type=Path, metavar="FILE", help="draw it, with Matplotlib")
        help = f"runs that a median is taken over (default: {rounds})"
        parser.add_argument("--rounds", type=int, default=rounds, help=help)
        for name, how in options.items():
            how = values_of(how) if isinstance(how, tuple) else how
            parser.add_argument(f"--{name}", **how)
        given = parser.parse_args(arguments)
        with nullcontext() if remembers else afresh(), at_once():
            found = tables(given)
        finish(found, given.json)
        if chart and given.png:
            draw(found, chart, given.png)
        return found

    return main


def values_of(default: tuple[Any, ...]) -> dict[str, Any]:
    """What `argparse` is told of an option with values: integers may be any, names some of these."""
    kind = type(default[0])
    choices = default if kind is str else None
    return {"nargs": "+", "type": kind, "choices": choices, "default": default, "help": f"default: {default}"}


def finish(tables: Tables, as_json: bool) -> None:
    """Print everything."""
    if as_json:
        print(json.dumps(tables | {"machine": machine()}, indent=2))
        return
    for title, rows in tables.items():
        print(f"\n### {title}\n")
        print(tabulate(rows, headers="keys", tablefmt="github", floatfmt=".3g"))
    print("\n" + tabulate(machine().items(), tablefmt="plain"))


def machine() -> dict[str, Any]:
    """Processor, cores, versions, and what the BLAS says of itself."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        name = models[0].split(":")[1].strip() if models else name
    np.dot(np.ones((2, 2)), np.ones((2, 2)))
    blas = [f"{pool['internal_api']} {pool['version']}, {pool.get('architecture')}, {pool['num_threads']} thread(s)"
            for pool in threadpool_info() if pool["user_api"] == "blas"]  # fmt: skip
    found = {"processor": name, "cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__}
    for package in ("torch", "cupy-cuda12x", "cupy-cuda13x"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found | {"blas": blas}


def draw(tables: Tables, chart: Chart, path: Path) -> None:
    """Draw what has the columns of a chart."""
    from matplotlib.figure import Figure

    panels: dict[str, list[Mapping[str, Any]]] = {}
    for title, rows in tables.items():
        for row in rows:
            if chart.x in row and any(name.startswith(chart.ys) for name in row):
                panels.setdefault(f"{title} {row.get(chart.panel, '')}", []).append(row)
    across = min(3, len(panels))
    figure = Figure(figsize=(5 * across, 3.5 * -(-len(panels) // across)), layout="constrained")
    for number, (title, rows) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(-(-len(panels) // across), across, number)
        axes.set(xlabel=chart.x, yscale="log")
        axes.set_title(title, fontsize=7, wrap=True)
        sides = dict.fromkeys(name for row in rows for name in row if name.startswith(chart.ys))
        for at, side in enumerate(sides):
            points = {row[chart.x]: row[side] for row in rows if row.get(side)}
            if isinstance(rows[0][chart.x], str):
                width = 0.8 / len(sides)
                axes.bar([place + at * width for place in range(len(points))], list(points.values()), width, label=side)
                axes.set_xticks(range(len(points)), list(points), rotation=30, ha="right", fontsize=6)
            else:
                axes.plot(list(points), list(points.values()), marker="o", label=side)
                axes.set_xscale("log", base=2)
        axes.legend(fontsize=6)
    figure.savefig(path)


def source() -> str:
    """What samples are, for the title of a table."""
    return "made-up data" if data_folder() is None else "real data"
