"""Processes that answer."""

import sys

from scripts.bench.measure import interleaved
from scripts.bench.process import Process

ANSWERS = "import json, sys\nfor line in sys.stdin: print(json.dumps(json.loads(line)[1:]), flush=True)"


def test_what_is_asked_is_answered_and_times_are_those_that_were_told():
    with Process([sys.executable, "-c", ANSWERS]) as process:
        assert process.ask("echo", 1, [2]) == [1, [2]]
        (runs,) = interleaved({"": lambda: process.timed("", 0.5, 0.25)}, 2).values()
    assert runs.figures == {"wall": [0.5] * 2, "cpu": [0.25] * 2}
