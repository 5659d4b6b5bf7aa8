"""What `cell.layout()` and `cell.explain()` say, as rows of tables."""

from __future__ import annotations

from edbatch.graph.cell.tables import Row
from edbatch.memory.layout import RESULT, Layout, Reach
from edbatch.runtime.compile.layout import Model

WORDS = {Reach.VIEW: "contiguous", Reach.BROADCAST: "broadcast", Reach.GATHER: "gathered"}


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
    return {
        "variable": name,
        "is": role,
        "space": space,
        "place": place,
        "size": size,
        "bytes": size * itemsize,
    }


def operand_rows(model: Model, layout: Layout, itemsize: int) -> list[Row]:
    """Every result and operand of every batch, then every concatenation."""
    rows: list[Row] = []
    for verdict, why in zip(layout.verdicts, layout.stopped_by, strict=True):
        op = layout.ops[verdict.op]
        is_concatenation = verdict.op in model.concatenations
        if not (verdict.op < model.n_batches or (is_concatenation and verdict.slot != RESULT)):
            continue
        slot = op.result if verdict.slot == RESULT else op.operands[verdict.slot]
        order = [slot[at] for at in layout.batch_orders[verdict.op]]
        rows.append(
            {
                "batch": op.name,
                "operand": "result" if verdict.slot == RESULT else "parts" if is_concatenation else str(verdict.slot),
                "variables": ", ".join(dict.fromkeys(model.variables[index].name for index in order)),
                "reached": WORDS[verdict.reach],
                "bytes": verdict.moved * itemsize,
                "stopped by": why,
            }
        )
    for whole, (operands, why) in model.copied.items():
        rows.append(
            {
                "batch": model.variables[whole].name,
                "operand": "parts",
                "variables": ", ".join(model.variables[index].name for index in operands),
                "reached": WORDS[Reach.GATHER],
                "bytes": model.variables[whole].size * itemsize,
                "stopped by": why,
            }
        )
    return rows
