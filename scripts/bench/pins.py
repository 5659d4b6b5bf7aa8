"""Pinned figures of two checkouts beside each other, in processes that take turns: what may not get worse.

    python -m scripts.bench.pins --before FOLDER --after FOLDER [--json] [--rounds 15] [--pin NAME ...]

Each process has the library of its own checkout, older or newer, and is asked by this one's `pinned.py`. Figures are of
processor time: of the thread; of a new cell, of all threads; of whole processes, user time. Samples are made up.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scripts import ROOT
from scripts.bench import pinned
from scripts.bench.measure import interleaved
from scripts.bench.process import Process
from scripts.bench.report import Tables, command

ASKED = 1.03
PAIRS = 3  # of processes, one after another: two of the same code differ by 2 %, for as long as they live


def first_example() -> str:
    """The first block of code in README that does without PyTorch."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(import edbatch as eb\n.*?)```", readme, re.DOTALL)
    assert found is not None
    return found[1]


def process(root: Path, folder: str) -> Process:
    """What answers for a checkout; bytecode is in a folder, else what has been run has it, and is imported faster."""
    if not (root / "edbatch").is_dir():  # else the library that is installed would be timed
        sys.exit(f"{root}: no checkout")
    environment = {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": "", "PYTHONHASHSEED": "0"}
    return Process([sys.executable, "-P", pinned.__file__, first_example()], root.resolve(), **environment)


def timed(name: str, both: dict[str, Process], rounds: float, first: int) -> list[tuple[float, float]]:
    """The figures of both in each round."""
    pin = pinned.PINS[name]
    asked = {of: lambda seed, one=one: {"": one.ask(name, seed)} for of, one in both.items()}
    runs = interleaved(asked, max(1, round(rounds * pin.rounds)), lambda number: first + number, pin.warm_ups)
    old, new = (of.figures[""] for of in runs.values())
    return list(zip(old, new, strict=True))


def row(name: str, rounds: list[tuple[float, float]]) -> dict[str, Any]:
    """A row of the table. Both of a round were measured at once: their ratio varies less than that of medians does."""
    old, new = zip(*rounds, strict=True)
    return {
        "pin": name,
        "unit": pinned.PINS[name].unit,
        "before": statistics.median(old),
        "after": statistics.median(new),
        "after / before, median": statistics.median(after / before for before, after in rounds),
        "of the fastest rounds": min(new) / min(old),
        "asked": ASKED,
    }


def tables(options: argparse.Namespace) -> Tables:
    """Everything, or the pins whose names begin with what is asked for."""
    names = [name for name in pinned.PINS if name.startswith(tuple(options.pin or [""]))]
    if not names:
        sys.exit(f"--pin {' '.join(options.pin)}: expected the beginning of one of {', '.join(pinned.PINS)}")
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    pairs = min(PAIRS, options.rounds)
    for root in (options.before, options.after):  # small loops are interpreted until compiling has paid
        with Process([sys.executable, "-m", "edbatch", "warm-up"], Path(root).resolve()):
            pass
    with TemporaryDirectory() as folder:
        for pair in range(pairs):
            with ExitStack() as stack:
                roots = {"before": Path(options.before), "after": Path(options.after)}
                both = {of: stack.enter_context(process(root, folder)) for of, root in roots.items()}
                for name in names:
                    print(f"{pair + 1} of {pairs}: {name}", file=sys.stderr)  # all of them take minutes
                    found[name] += timed(name, both, options.rounds / pairs, 1000 * pair)
    return {"Pins": [row(name, rounds) for name, rounds in found.items()]}


_CHECKOUT = {"required": True, "help": "folder of a checkout"}
_PINS = {"nargs": "+", "help": f"names, or how they begin; default: all of {', '.join(pinned.PINS)}"}
main = command(__doc__, tables, rounds=15, before=_CHECKOUT, after=_CHECKOUT, pin=_PINS)

if __name__ == "__main__":
    main()
