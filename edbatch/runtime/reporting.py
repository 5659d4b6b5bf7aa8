"""What a graph did, when that is asked for: the report, the times of stages and batches, and a picture."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

import numpy as np

from edbatch.base.drawing import Arrow, Box, Diagram
from edbatch.base.lazy import LazyModule
from edbatch.base.stopwatch import Passed
from edbatch.graph.cell.tracing import difference
from edbatch.graph.options import current_options
from edbatch.policy.policy import Policy
from edbatch.policy.typed_graph import TypedGraph, lower_bound
from edbatch.runtime.advice import advice, bound_without
from edbatch.runtime.evaluation import Evaluation
from edbatch.runtime.report import Report, Use, short
from edbatch.runtime.type_columns import BoundType
from edbatch.runtime.type_table import TypeTable

_thread_pool = LazyModule("edbatch.kernels.cpu.thread_pool")


def report_of(evaluation: Evaluation, policy: Policy | None) -> Report:
    """What has run so far; `policy`: of the graph."""
    plan, nodes, ran = evaluation.plan.tables, evaluation.nodes, evaluation.ran
    device = evaluation.table.device
    report = Report(
        device=device.name,
        threads=_thread_pool.said(current_options().threads) if device.kind == "cpu" else "",
        seconds=evaluation.clock.seconds,
        fallbacks=evaluation.fallbacks,
    )
    report._count_operands(plan, evaluation.table.windows)
    found = [evaluation.typed_graph(nodes, one.begin.nodes, one.end.nodes) for one in ran]
    graphs = [graph for *_, graph in found]
    report.nodes, report.edges = sum(map(len, graphs)), sum(len(graph.operands) for graph in graphs)
    report.batches = evaluation.batches
    report.lower_bound = sum(lower_bound(graph) for graph in graphs)
    nodes_of = [(one.begin.nodes + chosen, graph) for one, (_, chosen, graph) in zip(ran, found, strict=True)]
    report.backward_batches, report.backward_bound = _backward(evaluation, nodes_of)
    report.types = len({name for graph in graphs for name in graph.names})
    report.memory_bytes = evaluation.value_bytes
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
        instead.append(
            at if body is None else next((x for x, other in others.items() if not difference(body, other)), at)
        )
        if body is not None:
            others.setdefault(instead[-1], body)
    if instead == list(range(len(instead))):
        return graph
    return TypedGraph(np.array(instead, np.int32)[graph.types], graph.indptr, graph.operands, graph.names)


def _backward(evaluation: Evaluation, graphs: list[tuple[np.ndarray, TypedGraph]]) -> tuple[int, int]:
    """How many batches of derivatives the last backward pass had, and the least that any order needs.

    `graphs`: of the runs, with which nodes they have.
    """
    last = evaluation.last_backward
    batches = bound = 0
    number = np.repeat(np.arange(evaluation.plan.used.batches), evaluation.plan.tables.batches["n"])
    for one in [] if last is None else last.plans:
        extent = slice(one.stretch.begin.nodes, one.stretch.end.nodes)
        rules = one.derived(evaluation.plan.nodes[extent])
        batches += len(np.unique(number[extent][rules >= 0] * (1 + rules.max()) + rules[rules >= 0]))
        for ran, (nodes, graph) in zip(evaluation.ran, graphs, strict=True):
            if not one.stretch.begin.nodes <= ran.begin.nodes < one.stretch.end.nodes or not len(graph):
                continue
            rules = one.derived(nodes)
            present, kinds = np.unique(rules, return_inverse=True)
            flows = TypedGraph(kinds.astype(np.int32), graph.indptr, graph.operands, tuple(map(str, present)))
            bound += bound_without(flows, rules < 0)  # nodes that no gradient reaches
    return batches, bound


def _uses(evaluation: Evaluation) -> dict[str, Use]:
    """What has run of each type, by its name."""
    batches, table, profile = evaluation.plan.tables.batches, evaluation.table, evaluation.profile
    of_kinds = table.rules.of_kinds
    forward, backward = defaultdict[int, float](float), defaultdict[int, float](float)
    for timed in profile or []:
        if timed.type in of_kinds:
            backward[of_kinds[timed.type].kind] += timed.seconds
        else:
            forward[timed.type] += timed.seconds
    batches = batches[~table.facts.tables.is_source[batches["type"]]]
    found: dict[str, Use] = {}
    for kind in dict.fromkeys(batches["type"].tolist()):
        of_kind = batches[batches["type"] == kind]
        name = table.bound[kind].type.name
        before = found.get(name, Use(0, 0, 0.0, 0.0))  # parameters of two collections may have one name
        counts = before.batches + len(of_kind), before.nodes + int(of_kind["n"].sum())
        times: tuple[float | None, float | None] = None, None
        if profile is not None:
            times = (before.seconds or 0) + forward[kind], (before.backward_seconds or 0) + backward[kind]
        found[name] = Use(*counts, *times)
    return found


STAGES, BATCHES, BACKWARD = 1, 2, 3  # the rows of the picture
MICROSECONDS = 1e6


def timeline_of(evaluation: Evaluation, stages: list[Passed]) -> str:
    """A trace in the JSON of Chrome's trace events: a row of the stages, and those of the batches that were timed."""
    begin = min((one.start for one in stages), default=0.0)
    events = [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": row, "args": {"name": name}}
        for row, name in ((STAGES, "stages"), (BATCHES, "batches"), (BACKWARD, "backward batches"))
    ]
    events += [_event(STAGES, one.stage, one.start - begin, one.end - one.start, {}) for one in stages]
    table, counts = evaluation.table, Counter[int]()
    of_kinds = table.rules.of_kinds
    for timed in evaluation.profile or []:
        rule, bound = of_kinds.get(timed.type), table.bound[timed.type]
        if rule is not None:
            row, type = BACKWARD, table.bound[rule.kind].type
            name, full = f"gradient of {type.op.name}", f"gradient of {type.name}"
        elif isinstance(bound, BoundType):
            row, name, full = BATCHES, bound.type.op.name, bound.type.name
        else:
            row, name, full = BACKWARD, "add gradients", "addition of gradients to those of what was read"
        facts = {
            "batch": counts[row],
            "type": full,
            "nodes": timed.n,
            "operands viewed": timed.viewed,
            "operands gathered": timed.gathered,
        }
        counts[row] += 1
        events.append(_event(row, f"{name} x {timed.n}", timed.start - begin, timed.seconds, facts))
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})


def _event(row: int, name: str, start: float, seconds: float, facts: dict[str, Any]) -> dict[str, Any]:
    """Something that took time."""
    times = {"ts": round(MICROSECONDS * start, 3), "dur": round(MICROSECONDS * seconds, 3)}
    return {"name": name, "ph": "X", "pid": 1, "tid": row, **times, "args": facts}


MOST = 200  # boxes in which one finds one's way
LONGEST = 18  # letters of a type's name in a box; the legend has the whole of it
PENDING = -1  # the batch of what has not run


def diagram_of(evaluation: Evaluation, policy: str) -> Diagram:
    """What was taken over, as much of it as can be looked at; `policy`: name of what chose the batches."""
    _, chosen, graph = evaluation.typed_graph(evaluation.split(), 0)
    batches = _batches(evaluation)[chosen] if evaluation.done else np.full(len(graph), PENDING)
    n_batches = len(np.unique(batches[batches != PENDING]))
    title = f"{_counted(len(graph), 'node')} of {_counted(len(set(graph.types.tolist())), 'type')}"
    if n_batches:
        title += f", run in {_counted(n_batches, 'batch', 'batches')} by {policy}"
    if waiting := int((batches == PENDING).sum()):
        title += f"; {waiting:,} have not run"
    groups = np.arange(len(graph)).astype(graph.types.dtype)
    if len(graph) <= MOST:
        explained = "A box: a node, in the colour and with the number of its batch."
    elif n_batches and n_batches + waiting <= MOST:
        groups, explained = (
            np.where(batches == PENDING, n_batches + groups, batches),
            "A box: a batch, with its number.",
        )
    else:
        groups, explained, batches = graph.types, "A box: the nodes of a type.", np.full(len(graph), PENDING)
    return _of_groups(Diagram(title, legend=[explained]), graph, groups, batches)


def _batches(evaluation: Evaluation) -> np.ndarray:
    """Per node the number of its batch, without those of sources; `PENDING`: none yet."""
    batches, sources = evaluation.plan.tables.batches, evaluation.table.facts.tables.is_source
    computed = ~sources[batches["type"]]
    numbers = np.where(computed, np.cumsum(computed) - 1, PENDING)
    found = np.full(evaluation.nodes.n, PENDING)
    found[evaluation.plan.nodes] = np.repeat(numbers, batches["n"])
    return found


def _of_groups(made: Diagram, graph: TypedGraph, groups: np.ndarray, batches: np.ndarray) -> Diagram:
    """A box for the nodes of each group, which are of one type and batch; of arrows between the same, one."""
    names = _short_names(graph)
    present, first, group, sizes = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
    by_type = groups is graph.types
    for of, at, size in zip(present.tolist(), first.tolist(), sizes.tolist(), strict=True):
        name, batch = names[int(graph.types[at])], int(batches[at])
        text = name if batch == PENDING else f"{name} {batch}"
        colour = of if by_type else None if batch == PENDING else batch
        made.boxes.append(Box(text if len(present) == len(graph) else f"{text}\n{size:,} nodes", colour))
    users = np.repeat(group, np.diff(graph.indptr))
    reads = Counter(zip(group[graph.operands].tolist(), users.tolist(), strict=True))
    made.arrows += [Arrow(tail, head, f"{times:,}x" if times > 1 else "") for (tail, head), times in reads.items()]
    made.legend += _legend(graph, names)
    return made


def _short_names(graph: TypedGraph) -> list[str]:
    """Per type a name for a box: without its operands, and with a number where that says too little."""
    bare = [short(name.split("(", 1)[0], LONGEST) for name in graph.names]
    times, seen, found = Counter(bare), Counter[str](), []
    for name in bare:
        seen[name] += 1
        found.append(name if times[name] == 1 else f"{name}'{seen[name]}")
    return found


def _legend(graph: TypedGraph, names: list[str]) -> list[str]:
    width = max(map(len, names), default=0)
    sizes = np.bincount(graph.types, minlength=len(names)).tolist()
    described = zip(names, graph.names, sizes, strict=True)
    rows = [f"{name:<{width}}  {short(full, 100)}" for name, full, n in described if n]
    return rows[:40] + ([f"and {len(rows) - 40:,} other types"] if len(rows) > 40 else [])


def _counted(n: int, one: str, several: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else several or one + 's'}"
