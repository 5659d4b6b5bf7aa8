"""The paper's tables 2 and 4 for its cells: how they reach memory, what compiling them takes, and their latency.

A batch is 8 calls, size 64, float32. A memory kernel is every copy that computes nothing: the
gather of one operand of a batch whose variables do not lie side by side in the order of the batch, the scatter of a
result, a concatenation. Its bytes are those of the operand, once: variables of a call times 8 calls, parameters once,
whatever the number of calls. One variable for a whole batch (the x of W_i x, W_f x...) is a broadcast and counts
nothing, for a product of stacked weights reads it once; the paper counts it, and has nothing else left. Gathering a
call's arguments from the graph belongs to the graph and not to the cell. Counted is what three layouts would take:

    planned     the compiler's
    unplanned   `options(layout=False)`: batch by batch, results and parameters side by side as they are traced
    as written  the planned batches, with every variable at its place in the code

and "copies run" is what the compiled program does copy: the parts of concatenations that are nodes of it, and results
that have to be moved to the row that a call returns.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.experiments.measure import interleaved
from edbatch.graph.cell.compiled import Compiled
from edbatch.graph.cell.entry import CellOp
from edbatch.graph.node_type import TYPES, NodeType
from edbatch.kernels.cpu import machine_code
from edbatch.kernels.cpu.backend import NumPyBackend
from edbatch.memory.layout import RESULT, Layout, lay_out
from edbatch.memory.plan.windows import Windows
from edbatch.policy import Schedule, TypedGraph
from edbatch.runtime.bound_type import BoundType
from scripts.bench.paper_cells import CASES, Case
from scripts.bench.report import Tables

CALLS, SIZE = 8, 64
REPEATED = 200  # calls in one measurement of latency


def paper_tables(rounds: int) -> Tables:
    """All of them."""
    return {
        f"Memory kernels per batch of {CALLS} calls, size {SIZE}": [memory_kernels(case) for case in CASES],
        "Compiling a cell, milliseconds": compiling(rounds),
        f"Latency of a batch of {CALLS} calls, size {SIZE}": [latency(case, rounds) for case in CASES],
    }


def trace(case: Case, owner: Any, size: int = SIZE, **options: bool) -> tuple[NodeType, Compiled]:
    """The cell as it is compiled with these options."""
    with eb.options(**options), eb.Graph():
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


def memory_kernels(case: Case) -> dict[str, Any]:
    """A row: memory kernels and kilobytes, ours and the paper's."""
    type, compiled = trace(case, case.make(eb.ParameterCollection(), SIZE))
    _, unplanned = trace(case, case.make(eb.ParameterCollection(), SIZE), layout=False)
    layout = compiled.layout
    written = lay_out(layout.variables, layout.ops, range(len(layout.variables)))
    found = {
        "planned": moved(layout, compiled),
        "unplanned": moved(unplanned.layout, unplanned),
        "as written": moved(written, compiled),
        "paper, PQ tree": (case.kernels[1], case.kilobytes[1]),
        "paper, DyNet": (case.kernels[0], case.kilobytes[0]),
        "copies run": copies_run(type),
    }
    return {"cell": case.name} | {name: f"{kernels} ({size:.3g} kB)" for name, (kernels, size) in found.items()}


def kernels_compiled() -> dict[str, float]:
    """Per cell, milliseconds of compiling its kernels, where none has been compiled before by any process."""
    found = {}
    kept = os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for case in (CASES[-1], *CASES):  # the first also loads what all share
            owner = case.make(eb.ParameterCollection(), SIZE + 1)
            type, _ = trace(case, owner, SIZE + 1)
            machine_code.address_of.cache_clear()
            shutil.rmtree(Path(folder) / "edbatch", ignore_errors=True)

            def compile(type: NodeType = type) -> None:
                program = BoundType(type, Windows(), NumPyBackend()).program
                assert program is not None
                program.variant().tables()

            found[case.name] = 1e3 * interleaved({"": compile}, 1, warm_ups=0)[""].seconds
    os.environ.pop("XDG_CACHE_HOME")
    if kept is not None:
        os.environ["XDG_CACHE_HOME"] = kept
    return found


def compiling(rounds: int) -> list[dict[str, Any]]:
    """Milliseconds of compiling a cell, the median over fresh models; and of its kernels, which are compiled apart."""
    kernels = kernels_compiled()

    def steps(case: Case) -> dict[str, float]:
        _, compiled = trace(case, case.make(eb.ParameterCollection(), SIZE))
        seconds = {name: 1e3 * value for name, value in compiled.seconds.items()}
        return {"batches": compiled.batches, "fewest": compiled.least, **seconds, "total ms": sum(seconds.values())}

    runs = interleaved({case.name: lambda case=case: steps(case) for case in CASES}, rounds, warm_ups=0)
    return [
        {"cell": case.name, **runs[case.name].medians(), "asked": 30, "paper": case.milliseconds,
         "kernels, once per machine": kernels[case.name]}
        for case in CASES
    ]  # fmt: skip


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


def latency(case: Case, rounds: int) -> dict[str, Any]:
    """A row: microseconds of a batch of calls, inside the execution of a graph of many; and of the same by hand."""
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
    us, by_hands = runs["ours"].medians()["us"], 1e6 * runs["by hand"].seconds / REPEATED
    return {"cell": case.name, "ours us": us, "by hand us": by_hands, "ratio": us / by_hands, "asked": 1.0}
