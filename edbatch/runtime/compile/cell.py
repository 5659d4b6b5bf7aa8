"""Compiling a cell: simplify, batch, lay out, merge what lies side by side. One step after the other.

It joins what must not know each other: the body (graph), the rule that chooses batches (policy), and the planner of
layouts (memory).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from edbatch.base.stopwatch import Clock
from edbatch.graph.cell.batches import batch_kind, computing, operand_nodes, split_clashing, split_repeats
from edbatch.graph.cell.body import Body
from edbatch.graph.cell.passes import drop_dead, prepare_for_batching, prepare_for_kernels
from edbatch.graph.cell.passes.merge_batches import merge_batches
from edbatch.graph.cell.stacking import stacked
from edbatch.graph.cell.tables import Compiled, Row
from edbatch.graph.options import Options
from edbatch.memory.layout import RESULT, Layout, Reach, clashing, plan_layout
from edbatch.policy.heuristics import Heuristic
from edbatch.policy.typed_graph import TypedGraph, lower_bound
from edbatch.runtime.compile.layout import Model, describe


def compile_cell(body: Body, arguments: Sequence[str], options: Options) -> Compiled:
    """The body, as traced, ready to run, and what is known of it; if plain, no step does more than it has to."""
    seconds: dict[str, float] = {}
    clock = Clock(seconds)
    body = prepare_for_batching(body, options.plain, named=True)
    clock.stop("simplify")
    found, least = find_batches(body, options.plain)
    clock.stop("batch")
    batches, model, layout = find_layout(body, found, arguments)
    clock.stop("layout")
    orders = layout.batch_orders[: len(batches)]  # further ones are of concatenations
    _stack_overlapping(model, layout)
    merged = merge_batches(body, [[batch[at] for at in order] for batch, order in zip(batches, orders, strict=True)])
    body = prepare_for_kernels(merged, options.plain, named=True)
    clock.stop("merge")
    itemsize = body.dtype.itemsize
    storage, operands = storage_rows(model, layout, itemsize), operand_rows(model, layout, itemsize)
    clock.stop("report")
    counts = len(batches), len(batches) - len(found), least
    parameters = [parameter for spec in model.parameters if (parameter := spec.parameter()) is not None]
    alone = tuple(one.name for one in parameters if one.stack is None and (one.is_shared or one.is_exported))
    splittable = drop_dead(merged)
    return Compiled(body, splittable, layout, tuple(storage), tuple(operands), *counts, options.without, alone, seconds)


def find_batches(body: Body, plain: bool) -> tuple[list[list[int]], int]:
    """The batches of a body, in numbers of its nodes, and how many there are at least; if plain, each by itself.

    They are those of the rule `critical-path`: of no cell of a model it has more than need be.
    """
    numbers = computing(body)
    if plain or not numbers:
        return [[number] for number in numbers], len(numbers)
    position, below = {number: at for at, number in enumerate(numbers)}, operand_nodes(body)
    operands = [[position[operand] for operand in below[number]] for number in numbers]
    kinds: dict[Hashable, int] = {}
    types = [kinds.setdefault(batch_kind(body, number), len(kinds)) for number in numbers]
    indptr, names = np.cumsum([0, *map(len, operands)]), tuple(map(str, kinds.values()))
    graph = TypedGraph(np.array(types, np.int32), indptr, np.array([*chain(*operands)], np.int32), names)
    batches = Heuristic("critical-path").schedule(graph).batches()
    return [[numbers[at] for at in batch.tolist()] for batch in batches], lower_bound(graph)


def find_layout(
    body: Body, batches: Sequence[Sequence[int]], arguments: Sequence[str]
) -> tuple[list[list[int]], Model, Layout]:
    """The layout, and the batches that it is for: those that would copy are taken apart where that is cheap."""
    parts = split_repeats(body, batches)
    while True:
        model = describe(body, parts, arguments)
        smaller = split_clashing(body, parts, clashing(model.variables, model.ops))
        if len(smaller) == len(parts):
            return parts, model, plan_layout(model.variables, model.ops)
        parts = smaller


def _stack_overlapping(model: Model, layout: Layout) -> None:
    """Stack weights of which products read several overlapping runs: each run is then a part of the stack.

    The runs of other products are stacked when their batch becomes a node.
    """
    specs = {variable: spec for spec, variable in model.parameters.items()}
    stacks: list[tuple[set[int], int]] = []  # variables, and of how many runs they are
    for verdict in layout.verdicts:
        op = layout.ops[verdict.op]
        if verdict.op >= model.n_batches or verdict.slot != 0 or verdict.reach is not Reach.VIEW:
            continue
        run, runs = set(op.operands[0]), 1
        if len(run) < 2 or not run <= specs.keys():
            continue
        for other in [stack for stack in stacks if not run.isdisjoint(stack[0])]:
            stacks.remove(other)
            run, runs = run | other[0], runs + other[1]
        stacks.append((run, runs))
    for variables, runs in stacks:
        if runs > 1:
            stacked([specs[variable] for variable in sorted(variables, key=lambda at: layout.offsets[at])])


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
