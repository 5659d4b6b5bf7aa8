"""Pinned figures of two checkouts beside each other, in processes that take turns: what may not get worse.

    python -m scripts.bench.pins --before FOLDER --after FOLDER [--json] [--rounds 15] [--pin NAME ...]

Each process has the library of its own checkout, older or newer, and is asked by this one's `pinned.py`. Figures are of
processor time: of the thread; of a new cell, of all threads; of whole processes, user time. Samples are made up.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from edbatch.experiments.measure import interleaved
from scripts.bench import pinned
from scripts.bench.first_hour import first_example
from scripts.bench.process import Process
from scripts.bench.report import Tables, command

ASKED = 1.03


def process(root: Path, folder: str) -> Process:
    """What answers for a checkout; bytecode is in a folder, else what has been run has it, and is imported faster."""
    if not (root / "edbatch").is_dir():  # else the library that is installed would be timed
        sys.exit(f"{root}: no checkout")
    environment = {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": "", "PYTHONHASHSEED": "0"}
    return Process([sys.executable, "-P", pinned.__file__, first_example()], root.resolve(), **environment)


def compared(name: str, before: Process, after: Process, rounds: int) -> dict[str, Any]:
    """A row of the table."""
    pin = pinned.PINS[name]
    both = {"before": before, "after": after}
    asked = {of: lambda seed, one=one: {"": one.ask(name, seed)} for of, one in both.items()}
    runs = interleaved(asked, max(1, round(rounds * pin.rounds)), lambda number: number, pin.warm_ups)
    old, new = (of.figures[""] for of in runs.values())
    medians = statistics.median(old), statistics.median(new)
    print(f"{name}: {medians[1] / medians[0]:.3f}", file=sys.stderr)  # all of them take minutes
    return {
        "pin": name,
        "unit": pin.unit,
        "before": medians[0],
        "after": medians[1],
        "after / before": medians[1] / medians[0],
        "of the fastest rounds": min(new) / min(old),
        "asked": ASKED,
    }


def tables(options: argparse.Namespace) -> Tables:
    """Everything, or the pins whose names begin with what is asked for."""
    names = [name for name in pinned.PINS if name.startswith(tuple(options.pin or [""]))]
    if not names:
        sys.exit(f"--pin {' '.join(options.pin)}: expected the beginning of one of {', '.join(pinned.PINS)}")
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        before, after = (stack.enter_context(process(Path(root), folder)) for root in (options.before, options.after))
        rows = [compared(name, before, after, options.rounds) for name in names]
    return {"Pins": rows}


_CHECKOUT = {"required": True, "help": "folder of a checkout"}
_PINS = {"nargs": "+", "help": f"names, or how they begin; default: all of {', '.join(pinned.PINS)}"}
main = command(__doc__, tables, rounds=15, before=_CHECKOUT, after=_CHECKOUT, pin=_PINS)

if __name__ == "__main__":
    main()
