"""The picture of a graph: its nodes in the colours of their batches; of large graphs the batches, or the types."""

from __future__ import annotations

from collections import Counter

import numpy as np

from edbatch.base.drawing import Arrow, Box, Diagram
from edbatch.policy.typed_graph import TypedGraph
from edbatch.runtime.evaluation import Evaluation
from edbatch.runtime.report import short

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
    batches, sources = evaluation.plan.tables.batches, evaluation.table.is_source
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
