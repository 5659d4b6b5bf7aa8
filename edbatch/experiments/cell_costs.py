"""Of the cells of ED-Batch's tables 2 and 4: how they reach memory, what compiling them takes, and their latency.

A batch is 8 calls, size 64, float32. A memory kernel is every copy that computes nothing: the
gather of one operand of a batch whose variables do not lie side by side in the order of the batch, the scatter of a
result, a concatenation. Its bytes are those of the operand, once: variables of a call times 8 calls, parameters once,
whatever the number of calls. One variable for a whole batch (the x of W_i x, W_f x...) is a broadcast and counts
nothing, for a product of stacked weights reads it once; the paper counts it, and has nothing else left. Gathering a
call's arguments from the graph belongs to the graph and not to the cell. Counted is what two layouts would take:

    planned     the compiler's
    as written  the planned batches, with every variable at its place in the code

and "copies run" is what the compiled program does copy: the parts of concatenations that are nodes of it, and results
that have to be moved to the row that a call returns.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.experiments.measure import interleaved
from edbatch.experiments.paper_cells import Case
from edbatch.graph.cell.compiled import Compiled
from edbatch.graph.cell.entry import CellOp
from edbatch.graph.node_type import TYPES, NodeType
from edbatch.kernels.cpu import machine_code
from edbatch.kernels.cpu.backend import NumPyBackend
from edbatch.memory.layout import RESULT, Layout, lay_out
from edbatch.memory.plan.windows import Windows
from edbatch.policy import Schedule, TypedGraph
from edbatch.runtime.bound_type import BoundType

CALLS, SIZE = 8, 64
REPEATED = 200  # calls in one measurement of latency


def trace(case: Case, owner: Any, size: int = SIZE) -> tuple[NodeType, Compiled]:
    """The cell as it is compiled."""
    with eb.Graph():
        getattr(owner, case.cell)(*(eb.input(value[0]) for value in case.values(1, size)))
    ((_, compiled),) = getattr(owner, case.cell).compiled(owner)
    return next(
        type for type in TYPES.values() if isinstance(type.op, CellOp) and type.op.compiled is compiled
    ), compiled


def moved(layout: Layout, compiled: Compiled) -> tuple[int, float]:
    """Memory kernels, and kilobytes, of a batch of calls under a layout."""
    parameters = {row["variable"] for row in compiled.storage if row["is"] == "parameter"}
    kernels, size = 0, 0
    for verdict in layout.verdicts:
        op = layout.ops[verdict.op]
        slot = op.result if verdict.slot == RESULT else op.operands[verdict.slot]
        kernels += verdict.moved > 0
        size += verdict.moved * 4 * (1 if layout.variables[slot[0]].name in parameters else CALLS)
    return kernels, size / 1000


def copies_run(type: NodeType) -> tuple[int, float]:
    """The same of what the program copies."""
    op = type.op
    assert isinstance(op, CellOp)
    placing = [node for node in op.body.nodes if node.type.op.places is not None]
    results = [value.view.out.size for value in op.body.outputs if value.view is not None]
    kernels = sum(len(node.operands) for node in placing) + len(results)
    return kernels, CALLS * 4 * (sum(node.type.out.size for node in placing) + sum(results)) / 1000


def memory_kernels(case: Case) -> dict[str, tuple[int, float]]:
    """Memory kernels and kilobytes, by layout."""
    type, compiled = trace(case, case.make(eb.ParameterCollection(), SIZE))
    layout = compiled.layout
    written = lay_out(layout.variables, layout.ops, range(len(layout.variables)))
    return {
        "planned": moved(layout, compiled),
        "as written": moved(written, compiled),
        "copies run": copies_run(type),
    }


def compile_seconds(case: Case, rounds: int) -> dict[str, float]:
    """Of compiling a cell, by step: medians over fresh models."""

    def steps() -> dict[str, float]:
        _, compiled = trace(case, case.make(eb.ParameterCollection(), SIZE))
        return dict(compiled.seconds)

    return interleaved({"": steps}, rounds)[""].medians()


def kernel_seconds(case: Case) -> float:
    """Of compiling a cell's kernels, where none has been compiled before by any process."""
    owner = case.make(eb.ParameterCollection(), SIZE + 1)
    type, _ = trace(case, owner, SIZE + 1)
    kept = os.environ.get("XDG_CACHE_HOME")

    def compile() -> None:
        machine_code.address_of.cache_clear()
        program = BoundType(type, Windows(), NumPyBackend()).program
        assert program is not None
        program.variant().tables()

    try:
        seconds = []
        for _ in range(2):  # the first also loads what all share
            with tempfile.TemporaryDirectory() as folder:
                os.environ["XDG_CACHE_HOME"] = folder
                seconds.append(interleaved({"": compile}, 1, warm_ups=0)[""].seconds)
        return seconds[1]
    finally:
        del os.environ["XDG_CACHE_HOME"]
        if kept is not None:
            os.environ["XDG_CACHE_HOME"] = kept


class Batches:
    """A policy that runs nodes in batches of so many, in the order in which they were recorded."""

    name = "batches"

    def __init__(self, size: int) -> None:
        self.size = size

    def schedule(self, graph: TypedGraph) -> Schedule:
        """See `Policy.schedule`."""
        n = len(graph)
        offsets = np.arange(0, n + 1, self.size)
        return Schedule(np.arange(n, dtype=np.int32), offsets, graph.types[offsets[:-1]])

    def save(self, path: Any) -> None:
        """There is nothing to save."""


def latency(case: Case, rounds: int) -> dict[str, float]:
    """Microseconds of a batch of calls, inside the execution of a graph of many; and of the same by hand."""
    owner = case.make(eb.ParameterCollection(), SIZE)
    cell, by_hand = getattr(owner, case.cell), getattr(owner, case.by_hand)()
    values = case.values(CALLS, SIZE)

    def ours() -> dict[str, float]:
        with eb.Graph(policy=Batches(CALLS)) as graph:
            given = [[eb.input(row) for row in rows] for rows in values]
            graph.run()
            for _ in range(REPEATED):
                for arguments in zip(*given, strict=True):
                    cell(*arguments)
            before = graph.report().seconds["execution"]
            graph.run()
        return {"us": 1e6 * (graph.report().seconds["execution"] - before) / REPEATED}

    def hands() -> None:
        for _ in range(REPEATED):
            by_hand(*values)

    runs = interleaved({"ours": ours, "by hand": hands}, rounds)
    return {"ours": runs["ours"].medians()["us"], "by hand": 1e6 * runs["by hand"].seconds / REPEATED}
