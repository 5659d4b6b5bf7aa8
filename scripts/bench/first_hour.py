"""What a newcomer meets: the first run with nothing compiled, and the command line beside two busy processes.

    python -m scripts.bench.first_hour [--json] [--rounds 20] [--only cold|busy]

Everything runs in processes of its own, as a user would start it: no thread is pinned. `cold`: CPU seconds, user and
system, of a process whose cache folder is empty. `busy`: samples a second of the learned policy over those of one node
at a time, as `edbatch run` prints them, while two other processes compute all the time.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scripts import ROOT, UNPINNED
from scripts.bench import report as bench

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


def cpu_seconds(cache: Path, *arguments: str) -> float:
    """CPU seconds of a Python process with its cache in a folder."""
    before = os.times()
    environment = UNPINNED | {"XDG_CACHE_HOME": str(cache)}
    subprocess.run([sys.executable, *arguments], env=environment, check=True, capture_output=True, cwd=ROOT)
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
        environment = UNPINNED | {"XDG_CACHE_HOME": folder}
        seconds = [
            float(subprocess.run(
                [sys.executable, "-c", NEW_CELL.format(number=number)],
                env=environment, check=True, capture_output=True, text=True, cwd=ROOT,
            ).stdout)
            for number in (0.5, 0.25)  # the first process also compiles what all cells share
        ]  # fmt: skip
    rows.append({"job": "a cell not seen before, with backward", "CPU s, cold": seconds[1], "asked": 0.5})
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
    rows = []
    for model in ("tree-lstm", "tagger"):
        command = [sys.executable, "-m", "edbatch", "run", model, "--json"]
        ratios = []
        with busy():
            for _ in range(1 + rounds):  # the first compiles
                found = subprocess.run(command, env=UNPINNED, check=True, capture_output=True, text=True, cwd=ROOT)
                speed = {of["policy"]: of["samples_per_second"] for of in json.loads(found.stdout)["policies"]}
                ratios.append(next(speed[name] for name in speed if "learned" in name) / speed["none"])
        rows.append({
            "command": f"edbatch run {model}", "runs": rounds, "least": min(ratios[1:]),
            "median": statistics.median(ratios[1:]), "most": max(ratios[1:]), "asked": "1.5 in each",
        })  # fmt: skip
    return rows


def main() -> None:
    parser = bench.parser(__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["cold", "busy"], help="one of the two tables")
    parser.set_defaults(rounds=20)
    options = parser.parse_args()
    tables: dict[str, Any] = {}
    if options.only != "busy":
        tables["First hour: CPU seconds with nothing compiled"] = cold()
    if options.only != "cold":
        tables["First hour: learned over unbatched, beside two busy processes"] = against_unbatched(options.rounds)
    bench.finish(tables, options.json)


if __name__ == "__main__":
    main()
