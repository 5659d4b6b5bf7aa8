"""What a newcomer meets: the first run with nothing compiled, and the command line beside two busy processes.

    python -m scripts.bench.first_hour [--json] [--rounds 20] [--only cold|busy]

Everything runs in processes of its own, as a user would start it: no thread is pinned. `cold`: CPU seconds, user and
system, of a process whose cache folder is empty. `busy`: samples a second of the learned policy over those of one node
at a time, as `edbatch run` prints them, while two other processes compute all the time.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edbatch.experiments.measure import interleaved
from scripts import ROOT, unpinned
from scripts.bench.report import Tables, command

TRAINING = "trainer = eb.Adam(model)\ntotal.backward()\ntrainer.update()\n"
NEW_CELL = """
import os, time
import numpy as np
import edbatch as eb
model = eb.ParameterCollection(seed=0)
lstm = eb.models.LSTM(model, 32, 32)
@eb.cell
def other(h, c, x):
    h, c = lstm.step(x, h, c)
    return eb.tanh(h * {number}) + eb.sigmoid(c - {number}), c
def step(f):
    with eb.Graph() as graph:
        loss = eb.sum([eb.sum(part) for part in f(eb.ones(32), eb.zeros(32), eb.ones(32))])
    loss.backward()
step(lambda h, c, x: lstm.step(x, h, c))
start = time.process_time()
step(other)
print(time.process_time() - start)
"""


def first_example() -> str:
    """The first block of code in README."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def python(cache: Path | None, *arguments: str) -> str:
    """What a Python process with its cache in a folder prints; None: where it is."""
    environment = unpinned(os.environ) | ({"XDG_CACHE_HOME": str(cache)} if cache else {})
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def cpu_seconds(cache: Path, *arguments: str) -> float:
    """CPU seconds of a Python process with its cache in a folder."""
    before = os.times()
    python(cache, *arguments)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def cold() -> list[dict[str, Any]]:
    """Rows: each of these jobs with an empty cache, then again."""
    jobs = {
        "README's first example": (["-c", first_example()], 12),
        "the same, backward, an update of Adam": (["-c", first_example() + TRAINING], 20),
        "edbatch run tree-lstm": (["-m", "edbatch", "run", "tree-lstm"], "-"),
    }
    rows: list[dict[str, Any]] = []
    for name, (arguments, asked) in jobs.items():
        with tempfile.TemporaryDirectory() as folder:
            first, second = (cpu_seconds(Path(folder), *arguments) for _ in range(2))
        rows.append({"job": name, "CPU s, cold": first, "asked": asked, "CPU s, second time": second})
    with tempfile.TemporaryDirectory() as folder:
        # The first process also compiles what all cells share.
        _, seconds = (float(python(Path(folder), "-c", NEW_CELL.format(number=number))) for number in (0.5, 0.25))
    rows.append({"job": "a cell not seen before, with backward", "CPU s, cold": seconds, "asked": 0.5})
    return rows


@contextmanager
def busy(processes: int = 2) -> Iterator[None]:
    """In its block, that many other processes compute all the time."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def against_unbatched(rounds: int) -> list[dict[str, Any]]:
    """Rows: per model the learned policy's speed over unbatched, over several runs of the command."""

    def ratio(model: str) -> dict[str, float]:
        found = json.loads(python(None, "-m", "edbatch", "run", model, "--json"))
        speed = {of["policy"]: of["samples_per_second"] for of in found["policies"]}
        return {"ratio": next(speed[name] for name in speed if "learned" in name) / speed["none"]}

    with busy():  # the first round compiles
        runs = interleaved({model: lambda model=model: ratio(model) for model in ("tree-lstm", "tagger")}, rounds)
    return [
        {"command": f"edbatch run {model}", "runs": rounds, "least": min(of.figures["ratio"]),
         "median": of.medians()["ratio"], "most": max(of.figures["ratio"]), "asked": "1.5 in each"}
        for model, of in runs.items()
    ]  # fmt: skip


def tables(options: argparse.Namespace) -> Tables:
    """What is asked for."""
    found: Tables = {}
    if options.only != "busy":
        found["First hour: CPU seconds with nothing compiled"] = cold()
    if options.only != "cold":
        title = "First hour: learned over unbatched, beside two busy processes"
        found[title] = against_unbatched(options.rounds)
    return found


main = command(
    __doc__, tables, rounds=20, only={"choices": ["cold", "busy"], "help": "one of the two tables (default: both)"}
)

if __name__ == "__main__":
    main()
