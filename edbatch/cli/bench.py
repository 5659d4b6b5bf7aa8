"""`edbatch bench`: the papers' tables and figures, measured anew."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from textwrap import fill

from edbatch.base.later import Later
from edbatch.cli.arguments import Commands, add_command, check_output
from edbatch.cli.output import print_table
from edbatch.errors import EdBatchError

drawing = Later("edbatch.experiments.drawing")
experiment = Later("edbatch.experiments.experiment")
machines = Later("edbatch.experiments.machine")
registry = Later("edbatch.experiments.registry")
running = Later("edbatch.experiments.running")
saved = Later("edbatch.experiments.saved")
text = Later("edbatch.experiments.text")

DESCRIPTION = """\
Measure a table or a figure of ED-Batch (ICML 2023), Cavs (ATC 2018), Recursion (EuroSys 2018) or Suarez and Zhu
(2019) on this machine, with one thread, and show it beside the paper's own numbers; --list says which there are.

What was measured is saved in the file of --json after every point. The same command goes on where it was interrupted.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "bench", run, "measure the papers' tables and figures", DESCRIPTION)
    parser.add_argument("names", metavar="NAME", nargs="*", help="an experiment, or all")
    parser.add_argument("--list", action="store_true", help="list the experiments, and measure nothing")
    parser.add_argument("--json", metavar="FILE", help="save what is measured; go on with what the file holds")
    parser.add_argument(
        "--png", metavar="FILE", help="draw it, with Matplotlib; of several, each as FILE with its name before the end"
    )
    parser.add_argument("--quick", action="store_true", help="fewer and smaller points: about 20 s an experiment")
    parser.add_argument(
        "--data", metavar="DIR", help="the folder with the data (default: EDBATCH_DATA, or made-up samples)"
    )


def run(arguments: argparse.Namespace) -> None:
    """List, or measure, print, draw.

    Raises:
        EdBatchError: there is no such experiment or folder, a file cannot be written or gone on from, what draws is
            not installed, or sides disagree in their numbers.
    """
    if arguments.list:
        _list()
        return
    names = list(registry.experiments()) if "all" in arguments.names else list(dict.fromkeys(arguments.names))
    if not names:
        raise EdBatchError("bench: expected an experiment, or all; --list says which there are")
    chosen = [registry.get_experiment(name) for name in names]
    for path in filter(None, (arguments.json, arguments.png)):
        check_output(path)
    if arguments.png:
        drawing.check_drawing(arguments.png)
    setting = experiment.Setting(arguments.quick, _folder(arguments.data))
    results = saved.Results(setting, arguments.json)
    source = "made-up samples" if setting.folder is None else f"data in {setting.folder}"
    print(f"on {source}{', quick' if setting.quick else ''}, one thread")
    for one in chosen:
        try:
            rows = running.run(one, setting, results)
        except KeyboardInterrupt:
            if arguments.json and results.saved.experiments:
                print(f"edbatch: {arguments.json} holds what was measured; the same command goes on", file=sys.stderr)
            raise
        print(f"\n{text.shown(one, rows)}", flush=True)
        if arguments.png:
            path = _picture(arguments.png, one.name, alone=len(chosen) == 1)
            drawing.draw(one, rows, path)
            print(f"\nwrote {path}")
    print()
    print_table(["machine", ""], [[key, str(value)] for key, value in machines.machine().items()], left=2)


def _list() -> None:
    print_table(
        ["name", "paper", "place", "shows"],
        [[one.name, one.paper.name, one.place, fill(one.shows, 70)] for one in registry.experiments().values()],
        left=4,
    )
    print("ED-Batch's table 5 is not measured: latencies of a GPU, beside Cortex, which is not to be had.")


def _folder(given: str | None) -> Path | None:
    named = given or os.environ.get("EDBATCH_DATA")
    if not named:
        return None
    if not os.path.isdir(named):
        where = "--data" if given else "EDBATCH_DATA"
        raise EdBatchError(f"{named}: no folder; expected the one with the data ({where})")
    return Path(named)


def _picture(path: str, name: str, alone: bool) -> Path:
    """Where the picture of an experiment is written."""
    given = Path(path)
    return given if alone else given.with_name(f"{given.stem}-{name}{given.suffix}")
