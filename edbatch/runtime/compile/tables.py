"""What `cell.layout()` and `cell.explain()` say, as rows of tables."""

from __future__ import annotations

from typing import Any

from edbatch.graph.cell.tables import Row
from edbatch.memory.layout import RESULT, Layout, Reach
from edbatch.runtime.compile.layout import Model

WORDS = {Reach.VIEW: "contiguous", Reach.BROADCAST: "broadcast", Reach.GATHER: "gathered"}
_STORAGE = "variable", "is", "space", "place", "size", "bytes"
_OPERANDS = "batch", "operand", "variables", "reached", "bytes", "stopped by"


def storage_rows(model: Model, layout: Layout, itemsize: int) -> list[Row]:
    """Every variable in memory order: the row of a call first, then constants, copies, and where parameters are now."""
    copied = {model.concatenations[v.op] for v in layout.verdicts if v.op in model.concatenations and v.moved}
    rows: list[Row] = []
    for index in layout.order:
        variable, role, begin = model.variables[index], model.roles[index], layout.offsets[index]
        stored = role in ("argument", "intermediate", "output", "constant") or (role == "copy" and index in copied)
        if stored or index in model.copied:
            place = f"columns {begin}:{begin + variable.size}"
            rows.append(_row(variable.name, role, variable.space, place, variable.size, itemsize))
    planned = {index: at for at, index in enumerate(layout.order)}
    for spec in sorted(model.parameters, key=lambda spec: planned[model.parameters[spec]]):
        parameter = spec.parameter()
        stack = None if parameter is None else parameter.stack
        if stack is None:
            space, place = "its own", ""
        else:
            begin = sum(part.shape[0] for part in stack.parts[: stack.parts.index(spec)])
            space, place = stack.name, f"rows {begin}:{begin + spec.shape[0]}"
        rows.append(_row(spec.name, "parameter", space, place, spec.size, itemsize))
    return rows


def _row(name: str, role: str, space: str, place: str, size: int, itemsize: int) -> Row:
    return dict(zip(_STORAGE, (name, role, space, place, size, size * itemsize), strict=True))


def operand_rows(model: Model, layout: Layout, itemsize: int) -> list[Row]:
    """Every result and operand of every batch, then every concatenation."""
    found: list[tuple[str, str, list[int], Reach, int, str]] = []
    for verdict, why in zip(layout.verdicts, layout.stopped_by, strict=True):
        op = layout.ops[verdict.op]
        is_concatenation = verdict.op in model.concatenations
        if not (verdict.op < model.n_batches or (is_concatenation and verdict.slot != RESULT)):
            continue
        slot = op.result if verdict.slot == RESULT else op.operands[verdict.slot]
        order = [slot[at] for at in layout.batch_orders[verdict.op]]
        name = "result" if verdict.slot == RESULT else "parts" if is_concatenation else str(verdict.slot)
        found.append((op.name, name, order, verdict.reach, verdict.moved, why))
    for whole, (operands, why) in model.copied.items():
        variable = model.variables[whole]
        found.append((variable.name, "parts", operands, Reach.GATHER, variable.size, why))
    rows: list[Row] = []
    for batch, operand, read, reach, moved, why in found:
        names = ", ".join(dict.fromkeys(model.variables[index].name for index in read))
        row: tuple[Any, ...] = batch, operand, names, WORDS[reach], moved * itemsize, why
        rows.append(dict(zip(_OPERANDS, row, strict=True)))
    return rows
