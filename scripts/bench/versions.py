"""Two versions of the library beside each other: a checkout of each, in processes that take turns.

    EDBATCH_DATA=... python -m scripts.bench.versions --before FOLDER --after FOLDER [--json] [--model NAME]

Each process has the models, and this benchmark's `version.py`, of its own checkout; the figures are its thread's time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from edbatch.experiments.measure import interleaved
from scripts.bench import version
from scripts.bench.report import Tables, command


class Version:
    """A checkout and the process that times it.

    Args:
        process: that runs `scripts/bench/version.py`.

    Attributes:
        models: names of those that it has.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.models: list[str] = self._answer()

    def ask(self, *question: Any) -> dict[str, float]:
        """What `version.seconds` finds, in milliseconds."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return {"ms": 1e3 * self._answer()[0]}

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit("a version ended: see above")
        return json.loads(line)


@contextmanager
def running(root: Path) -> Iterator[Version]:
    """The version in a folder. An older one is asked by this one's `version.py`."""
    if not (root / "edbatch").is_dir():  # else the library that is installed would be timed
        sys.exit(f"{root}: no checkout")
    environment = {**os.environ, "PYTHONPATH": str(root.resolve())}
    command = [sys.executable, version.__file__]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment, cwd=root) as process:
        yield Version(process)
        assert process.stdin is not None
        process.stdin.close()


def compared(versions: Sequence[Version], question: tuple[Any, ...], rounds: int) -> dict[str, Any]:
    """A row of the table."""
    names = "before", "after"
    asked = {name: lambda one=one: one.ask(*question) for name, one in zip(names, versions, strict=True)}
    runs = interleaved(asked, rounds, warm_ups=2)
    before, after = (runs[name].figures["ms"] for name in names)
    model, hidden, size, what, _ = question
    medians = [runs[name].medians()["ms"] for name in names]
    return {
        "model": model,
        "hidden": hidden,
        "batch": size,
        "": what,
        **{f"{name}, ms": median for name, median in zip(names, medians, strict=True)},
        "after / before": medians[1] / medians[0],
        "of the fastest rounds": min(after) / min(before),
    }


def tables(options: argparse.Namespace) -> Tables:
    """Everything."""
    with ExitStack() as stack:
        versions = [stack.enter_context(running(Path(root))) for root in (options.before, options.after)]
        rows = [
            compared(versions, (model, hidden, size, what, 10 if size == 1 else 3), options.rounds)
            for model in options.model or versions[0].models
            for hidden in options.hidden
            for size in options.batch
            for what in ("forward", "train")
        ]
    return {"Before and after": rows}


_MODEL = {"nargs": "+", "help": "names of models; default: all of edbatch/experiments/peers/tasks.py"}
_CHECKOUT = {"required": True, "help": "folder of a checkout"}
main = command(__doc__, tables, before=_CHECKOUT, after=_CHECKOUT, hidden=(64, 256), batch=(1, 64), model=_MODEL)

if __name__ == "__main__":
    main()
