"""Programs in DyNet's style: what recording costs beside EdBatch's own functions, and updates beside real DyNet.

    DYNET_PYTHON=/path/to/python3.8 python -m scripts.bench.dynet [--json] [--rounds 9] [--new-words]

`DYNET_PYTHON` is a Python that has DyNet 2.1.2; without it, only recording is measured. Of real DyNet the best of its
settings counts: without autobatch, and with each of both. All run in processes of one thread, and take turns. With
`--new-words`, no sample comes twice, as in a first epoch: lengths stay, all words are others in each round.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from contextlib import ExitStack
from pathlib import Path

import edbatch as eb
import edbatch.dynet as dy
from edbatch.experiments.measure import interleaved
from scripts.bench.dynet_programs import PROGRAMS
from scripts.bench.process import Process
from scripts.bench.report import Tables, command, figure

FILE = Path(__file__).with_name("dynet_programs.py")
SETTINGS = {"EdBatch": [], "DyNet": [], "DyNet, autobatch 1": ["--dynet-autobatch", "1"],
            "DyNet, autobatch 2": ["--dynet-autobatch", "2"]}  # fmt: skip
CALLS, WARM_UPS = 2000, 8


def recording(given: argparse.Namespace) -> Tables:
    """Nanoseconds of a call, of the module's and of EdBatch's own."""
    model = dy.ParameterCollection()
    W, V = model.add_parameters((8, 8)), eb.ParameterCollection().add_parameters((8, 8))
    dy.close_cg()
    runs = {}
    calls = {
        "*": (lambda x: W * x, lambda x: V @ x),
        "+": (lambda x: x + x, lambda x: x + x),
        "tanh": (dy.tanh, eb.tanh),
    }

    def of_module(call):
        def run() -> None:
            dy.renew_cg()
            x = dy.inputVector([1.0] * 8)
            for _ in range(CALLS):
                call(x)
            dy.close_cg()

        return run

    def of_edbatch(call):
        def run() -> None:
            with eb.Graph():
                x = eb.input([1.0] * 8)
                for _ in range(CALLS):
                    call(x)

        return run

    for name, (ours, own) in calls.items():
        runs[name], runs[f"{name}, EdBatch"] = of_module(ours), of_edbatch(own)
    found = interleaved(runs, 3 * given.rounds, warm_ups=3)
    seconds = {name: statistics.median(run.cpu) / CALLS for name, run in found.items()}
    rows = [
        {"": name, "ns": 1e9 * seconds[name], "EdBatch's own, ns": 1e9 * seconds[f"{name}, EdBatch"]} for name in calls
    ]
    figures = [
        figure(f"{name}: times of EdBatch's own", seconds[name] / seconds[f"{name}, EdBatch"], "<= 1.2")
        for name in calls
    ]
    return {"Recording a call": rows, "Recording": figures}


def started(setting: str, python: str, more: list[str]) -> Process:
    """A process that goes through samples when it is told: milliseconds per sample, by the clock and of its thread."""
    if setting == "EdBatch":
        return Process([sys.executable, str(FILE), "edbatch", *more])
    return Process([python, str(FILE), "dynet", *more, *SETTINGS[setting], "--dynet-mem", "1000"])


def updates(given: argparse.Namespace, python: str) -> Tables:
    """Milliseconds of an update, by program, beside real DyNet's."""
    rows, figures = [], []
    with ExitStack() as stack:
        more = ["--new-words"] if given.new_words else []
        processes = {setting: stack.enter_context(started(setting, python, more)) for setting in SETTINGS}
        for program in PROGRAMS:
            cpu: dict[str, list[float]] = {setting: [] for setting in SETTINGS}
            for number in range(given.rounds + WARM_UPS):
                for setting, process in processes.items():
                    _, of_thread = process.ask(program)
                    if number >= WARM_UPS:
                        cpu[setting].append(of_thread)
            medians = {setting: statistics.median(found) for setting, found in cpu.items()}
            best = min(ms for setting, ms in medians.items() if setting != "EdBatch")
            times = best / medians["EdBatch"]
            rows.append({"": program, **medians, "times as fast": times})
            asked = ">= 2" if "batched" in program else ">= 1"
            figures.append(figure(f"{program}: times as fast as DyNet at its best", times, asked))
    return {"An update, milliseconds of the thread": rows, "Beside DyNet": figures}


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    python = os.environ.get("DYNET_PYTHON")
    return recording(given) | (updates(given, python) if python else {})


main = command(__doc__, tables, **{"new-words": {"action": "store_true", "help": "samples of which none comes twice"}})


if __name__ == "__main__":
    main()
