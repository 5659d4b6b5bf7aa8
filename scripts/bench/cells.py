"""ED-Batch's tables 2 and 4: how its cells reach memory, and what compiling them takes.

A batch is 8 calls, size 64. A memory kernel is every copy that computes nothing: the gather of one operand of a batch
whose variables do not lie side by side in its order, the scatter of a result, a concatenation. Its bytes are those of
the operand, once: variables of a call times 8, parameters once. One variable for a whole batch (the x of W_i x, W_f x)
is a broadcast and counts nothing; the paper counts it, and has nothing else left.
"""

from __future__ import annotations

import argparse
from typing import Any

import edbatch as eb
from edbatch.memory.layout import RESULT
from scripts.bench.measure import interleaved
from scripts.bench.paper_cells import CASES, Case
from scripts.bench.report import Tables, command

CALLS, SIZE = 8, 64


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


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    memory, compiling = [], []
    for case in CASES:
        found = {"planned": moved(compiled_cell(case))}
        for at, side in enumerate(("the paper's, DyNet's allocation", "the paper's, PQ tree")):
            found[side] = case.kernels[at], case.kilobytes[at]
        names = ("memory kernels", "kB moved")
        memory += [{"cell": case.name, "side": side, **dict(zip(names, of, strict=True))} for side, of in found.items()]
        steps = interleaved({"": lambda case=case: dict(compiled_cell(case).seconds)}, given.rounds)[""].medians()
        ms = {f"{step}, ms": 1e3 * seconds for step, seconds in steps.items()}
        row = {"cell": case.name, "ms": sum(ms.values()), "the paper's ms": case.compiling}
        compiling.append(row | ms)
    return {"Memory (table 2)": memory, "Compiling (table 4), but for kernels, which LLVM compiles": compiling}


main = command(__doc__, tables, rounds=5)
