"""What all benchmarks have in common but the clock: their command line, tables, JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tabulate import tabulate

from edbatch.experiments.machine import machine
from edbatch.runtime.remembered import afresh
from scripts import data_folder

Rows = Sequence[Mapping[str, Any]]
Tables = dict[str, Rows]  # by title


def command(
    doc: str | None,
    tables: Callable[[argparse.Namespace], Tables],
    rounds: int = 9,
    remembers: bool = False,
    **options: Any,
) -> Callable[..., None]:
    """The `main` of a benchmark.

    Args:
        doc: the module's; its first line is the help.
        tables: everything that is measured, from the command line.
        rounds: that a median is taken over, unless the command line says so.
        remembers: whether plans of small graphs are kept, as they are in programs; else those that are measured again
            and again stand for new ones, which have none.
        options: by name, what `argparse` is told of options besides `--json` and `--rounds`; a tuple of integers are
            sizes that the command line may change.
    """

    def main(arguments: Sequence[str] | None = None) -> None:
        parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
        help = f"runs that a median is taken over (default: {rounds})"
        parser.add_argument("--rounds", type=int, default=rounds, help=help)
        for name, how in options.items():
            sizes = {"nargs": "+", "type": int, "default": how, "help": f"default: {how}"}
            parser.add_argument(f"--{name}", **(sizes if isinstance(how, tuple) else how))
        given = parser.parse_args(arguments)
        with nullcontext() if remembers else afresh():
            found = tables(given)
        finish(found, given.json)

    return main


def finish(tables: Tables, as_json: bool) -> None:
    """Print everything."""
    if as_json:
        print(json.dumps(tables | {"machine": machine()}, indent=2))
        return
    for title, rows in tables.items():
        show(title, rows)
    print("\n" + tabulate(machine().items(), tablefmt="plain"))


def show(title: str, rows: Rows) -> None:
    """A table, as Markdown."""
    print(f"\n### {title}\n")
    print(tabulate(rows, headers="keys", tablefmt="github", floatfmt=".3g"))


def figure(name: str, measured: float | str, asked: float | str, unit: str = "") -> dict[str, Any]:
    """One measured figure beside the one asked for."""
    return {"figure": name, "measured": measured, "asked": asked, "unit": unit}


def needed_folder() -> Path:
    """The folder with the data; the program ends if there is none."""
    folder = data_folder()
    if folder is None:
        sys.exit("EDBATCH_DATA names no folder with data; nothing was measured")
    return folder
