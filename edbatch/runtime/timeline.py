"""When what happened in a graph, as a trace that Perfetto (ui.perfetto.dev) and Chrome show."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from edbatch.base.stopwatch import Passed
from edbatch.memory.plan.format import GATHER, STRIDED
from edbatch.runtime.evaluation import Evaluation

STAGES, BATCHES = 1, 2  # the rows of the picture
MICROSECONDS = 1e6


def timeline_of(evaluation: Evaluation, stages: list[Passed]) -> str:
    """A trace in the JSON of Chrome's trace events: a row of the stages, and one of the batches that were timed."""
    begin = min((one.start for one in stages), default=0.0)
    events = [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": row, "args": {"name": name}}
        for row, name in ((STAGES, "stages"), (BATCHES, "batches"))
    ]
    events += [_event(STAGES, one.stage, one.start - begin, one.end - one.start, {}) for one in stages]
    plan, table = evaluation.plan.tables, evaluation.table
    first = np.append(plan.batches["operand"], len(plan.operands))
    for number, timed in enumerate(evaluation.profile or []):
        batch = plan.batch(timed.batch)
        access = plan.operands["access"][first[timed.batch] : first[timed.batch + 1]]
        type = table.bound[batch.type].type
        facts = {
            "batch": number,
            "type": type.name,
            "nodes": batch.n,
            "operands viewed": int((access <= STRIDED).sum()),
            "operands gathered": int((access >= GATHER).sum()),
        }
        name = f"{type.op.name} x {batch.n}"
        events.append(_event(BATCHES, name, timed.start - begin, timed.seconds, facts))
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})


def _event(row: int, name: str, start: float, seconds: float, facts: dict[str, Any]) -> dict[str, Any]:
    """Something that took time."""
    times = {"ts": round(MICROSECONDS * start, 3), "dur": round(MICROSECONDS * seconds, 3)}
    return {"name": name, "ph": "X", "pid": 1, "tid": row, **times, "args": facts}
