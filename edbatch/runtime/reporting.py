"""The report of an evaluation: what has run so far, counted when it is asked for."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from edbatch.base.stopwatch import Passed
from edbatch.graph.cell.tracing import same
from edbatch.graph.options import current_options
from edbatch.memory.plan.format import GATHER, STRIDED
from edbatch.policy.policy import Policy
from edbatch.policy.typed_graph import TypedGraph, lower_bound
from edbatch.runtime.advice import advice
from edbatch.runtime.evaluation import Evaluation
from edbatch.runtime.report import Report, Use
from edbatch.runtime.type_table import TypeTable


def report_of(evaluation: Evaluation, policy: Policy | None) -> Report:
    """What has run so far; `policy`: of the graph."""
    plan, nodes, ran = evaluation.plan.tables, evaluation.nodes, evaluation.ran
    device = evaluation.table.device
    report = Report(
        device=device.name,
        threads=device.backend.threads(current_options().threads),
        seconds=evaluation.clock.seconds,
        fallbacks=evaluation.fallbacks,
    )
    report._count_operands(plan, evaluation.table.windows)
    found = [evaluation.typed_graph(nodes, one.begin.nodes, one.end.nodes) for one in ran]
    graphs = [graph for *_, graph in found]
    report.nodes, report.edges = sum(map(len, graphs)), sum(len(graph.operands) for graph in graphs)
    report.batches = evaluation.batches
    report.lower_bound = sum(lower_bound(graph) for graph in graphs)
    report.types = len({name for graph in graphs for name in graph.names})
    report.memory_bytes = evaluation.arenas.bytes
    report.uses = _uses(evaluation)
    if getattr(policy, "name", "") != "none":
        scheduled = [graph for graph in graphs if len(graph)]
        once = [_cells_once(evaluation.table, present, graph) for present, _, graph in found if len(graph)]
        whole = lambda: evaluation.typed_graph(evaluation.nodes, 0, evaluation.done)[2]  # noqa: E731
        report.advice = advice(report.uses, scheduled, whole, once)
    return report


def _cells_once(table: TypeTable, present: np.ndarray, graph: TypedGraph) -> TypedGraph:
    """The graph with one type for all cells of one name that compute the same; itself if there are none.

    `present`: per name of the graph the number of its type in the table.
    """
    instead: list[int] = []
    seen: dict[str, dict[int, Any]] = {}  # by name, the bodies of different ones
    for at, kind in enumerate(present.tolist()):
        type = table.bound[kind].type
        body, others = type.op.body, seen.setdefault(type.name, {})
        instead.append(at if body is None else next((x for x, other in others.items() if same(body, other)), at))
        if body is not None:
            others.setdefault(instead[-1], body)
    if instead == list(range(len(instead))):
        return graph
    return TypedGraph(np.array(instead, np.int32)[graph.types], graph.indptr, graph.operands, graph.names)


def _uses(evaluation: Evaluation) -> dict[str, Use]:
    """What has run of each type, by its name."""
    batches, table, profile = evaluation.plan.tables.batches, evaluation.table, evaluation.profile
    seconds_of: dict[int, float] = {}
    for timed in profile or []:
        kind = int(batches["type"][timed.batch])
        seconds_of[kind] = seconds_of.get(kind, 0.0) + timed.seconds
    batches = batches[~table.is_source[batches["type"]]]
    found: dict[str, Use] = {}
    for kind in dict.fromkeys(batches["type"].tolist()):
        of_kind = batches[batches["type"] == kind]
        name = table.bound[kind].type.name
        before = found.get(name, Use(0, 0, 0.0))  # parameters of two collections may have one name
        seconds = None if profile is None else (before.seconds or 0) + seconds_of.get(kind, 0.0)
        found[name] = Use(before.batches + len(of_kind), before.nodes + int(of_kind["n"].sum()), seconds)
    return found


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
