"""ED-Batch's tables 2 and 4: how its cells reach memory, and what compiling them takes.

A batch is 8 calls, size 64. A memory kernel is every copy that computes nothing: the gather of one operand of a batch
whose variables do not lie side by side in its order, the scatter of a result, a concatenation. Its bytes are those of
the operand, once: variables of a call times 8, parameters once. One variable for a whole batch (the x of W_i x, W_f x)
is a broadcast and counts nothing; the paper counts it, and has nothing else left. The paper's latencies are of its own
kernels, on a GPU.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.memory.layout import RESULT
from edbatch.policy import Schedule, TypedGraph
from scripts.bench.contest import compare
from scripts.bench.measure import interleaved
from scripts.bench.paper_cells import CASES, Case
from scripts.bench.report import Chart, Tables, command

CALLS, SIZE = 8, 64
REPEATED = 200  # batches in one measurement of latency


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


def compiled_cell(case: Case) -> Any:
    """A new model's cell as it is compiled."""
    owner = case.make(eb.ParameterCollection(), SIZE)
    with eb.Graph():
        getattr(owner, case.cell)(*(eb.input(value[0]) for value in case.values(1, SIZE)))
    ((_, compiled),) = getattr(owner, case.cell).compiled(owner)
    return compiled


def moved(compiled: Any) -> tuple[int, float]:
    """Memory kernels, and kilobytes, of a batch of calls."""
    parameters = {row["variable"] for row in compiled.storage if row["is"] == "parameter"}
    kernels, size = 0, 0
    for verdict in compiled.layout.verdicts:
        op = compiled.layout.ops[verdict.op]
        slot = op.result if verdict.slot == RESULT else op.operands[verdict.slot]
        kernels += verdict.moved > 0
        size += verdict.moved * 4 * (1 if compiled.layout.variables[slot[0]].name in parameters else CALLS)
    return kernels, size / 1000


def latency(case: Case, rounds: int) -> float:
    """Microseconds of a batch of calls, inside the execution of a graph of many; values are compared with op by op."""
    owner = case.make(eb.ParameterCollection(seed=0), SIZE)
    cell, values = getattr(owner, case.cell), case.values(CALLS, SIZE)

    def answers(**options: bool) -> dict[str, np.ndarray]:
        with eb.options(**options), eb.Graph(policy="sufficient"):
            found = [cell(*map(eb.input, call)) for call in zip(*values, strict=True)]
            flat = [x for result in found for x in (result if isinstance(result, tuple) else (result,))]
            return {str(at): value for at, value in enumerate(eb.forward(flat))}

    def run() -> dict[str, float]:
        with eb.Graph(policy=Batches(CALLS)) as graph:
            given = [[eb.input(row) for row in rows] for rows in values]
            graph.run()
            for _ in range(REPEATED):
                for arguments in zip(*given, strict=True):
                    cell(*arguments)
            before = graph.report().seconds["execution"]
            graph.run()
            return {"us": 1e6 * (graph.report().seconds["execution"] - before) / REPEATED}

    compare(case.name, answers(), answers(cells=False))
    return interleaved({"": run}, rounds)[""].medians()["us"]


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    memory, compiling = [], []
    for case in CASES:
        found = {"planned": (*moved(compiled_cell(case)), latency(case, given.rounds))}
        for at, side in enumerate(("the paper's, DyNet's allocation", "the paper's, PQ tree")):
            found[side] = case.kernels[at], case.kilobytes[at], case.latency[at]
        names = ("memory kernels", "kB moved", "latency, us")
        memory += [{"cell": case.name, "side": side, **dict(zip(names, of, strict=True))} for side, of in found.items()]
        steps = interleaved({"": lambda case=case: dict(compiled_cell(case).seconds)}, given.rounds)[""].medians()
        ms = {f"{step}, ms": 1e3 * seconds for step, seconds in steps.items()}
        row = {"cell": case.name, "ms": sum(ms.values()), "the paper's ms": case.compiling}
        compiling.append(row | ms)
    return {"Memory (table 2)": memory, "Compiling (table 4), but for kernels, which LLVM compiles": compiling}


main = command(__doc__, tables, rounds=5, chart=Chart("cell", ("ms", "the paper's ms")))
