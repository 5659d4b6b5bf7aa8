"""The library of one checkout, timed when it is asked: what `scripts/bench/versions.py` has two of.

Run in the root of a checkout, whose `edbatch` and tasks it takes. Each line of the standard input is
[model, hidden size, mini-batch size, "forward" or "train", runs] as JSON; the answer is [seconds of this thread].
"""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from pathlib import Path
from time import thread_time
from typing import Any

import edbatch as eb

try:
    from edbatch.experiments.peers.own import Own
    from edbatch.experiments.peers.tasks import MODELS
except ModuleNotFoundError:  # a checkout from before they were part of the package
    from scripts.peers.tasks import MODELS, Own  # type: ignore[import-not-found, no-redef]

KEPT = 640  # samples, which mini-batches go round


@cache
def _network(name: str, hidden: int) -> tuple[Any, list[Any]]:
    folder = os.environ.get("EDBATCH_DATA")
    task = MODELS[name](Path(folder) if folder else None)
    return Own(task, hidden, optimizer=lambda model: eb.Adam(model, lr=1e-5)), task.samples[:KEPT]


def seconds(name: str, hidden: int, size: int, what: str, runs: int) -> float:
    """Of a run, on average: construction to values; of "train", to updated parameters."""
    own, samples = _network(name, hidden)
    start = thread_time()
    for run in range(runs):
        first = run * size % max(1, len(samples) - size + 1)
        batch = samples[first : first + size]
        if what == "forward":
            own.forward(batch)
        else:
            own.loss(batch).backward()
            own.trainer.update()
    return (thread_time() - start) / runs


def main() -> None:
    """Answer until there is nothing more."""
    print(json.dumps(sorted(MODELS)), flush=True)
    for line in sys.stdin:
        print(json.dumps([seconds(*json.loads(line))]), flush=True)


if __name__ == "__main__":
    main()
