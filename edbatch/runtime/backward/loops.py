"""The compiled pass from a plan that has run to the plan of the way back through it, the last batch first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.graph.cell.derivative import Given
from edbatch.memory.plan.format import BATCH, GATHER, OPERAND, SEGMENT, SLICE
from edbatch.runtime.backward.out import (
    USED,
    Added,
    Out,
    Targets,
    add_rows,
    append,
    append_batch,
    append_operand,
    restrict,
)
from edbatch.runtime.backward.records import COMPUTE, NOTHING

# Numba takes plain integers for constants.
_OPERAND, _RESULT, _SAVED, _GRADIENT = map(int, Given)


class Forward(NamedTuple):
    """A plan that has run.

    Attributes:
        batches, operands, segments, indices: of the plan.
        nodes: batch after batch.
        n_sources: how many of its batches, the first, hold sources.
    """

    batches: np.ndarray
    operands: np.ndarray
    segments: np.ndarray
    indices: np.ndarray
    nodes: np.ndarray
    n_sources: int


class Derivatives(NamedTuple):
    """By which rules gradients flow.

    Attributes:
        rules: per set, a record `Rule`.
        given: what derivatives are given, of records `Source`.
        computed: per operand of a set's type, where its derivative leaves the operand's gradient: records `Computed`.
    """

    rules: np.ndarray
    given: np.ndarray
    computed: np.ndarray


class Chosen(NamedTuple):
    """The nodes of a batch with one set of outputs that gradients flow into.

    Attributes:
        batch: their batch.
        which: their numbers in it; none: these are all.
        n: how many.
        saved: the first row of what the batch has saved.
        left: in the rows that the derivative computes, where theirs begin.
    """

    batch: np.void
    which: np.ndarray
    n: int
    saved: int
    left: int


@compiled(small=True)
def plan_back(
    forward: tuple, flow: tuple, derivatives: tuple, targets: tuple, most_rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The way back through the batches of a plan that gradients flow into, as the tables of a plan.

    Args:
        forward: see `Forward`.
        flow: the sets, parts and rows of a `Flow`.
        derivatives: see `Derivatives`.
        targets: see `Targets`.
        most_rows: more than any row of an arena.

    Returns:
        `batches`, `operands`, `segments`, `indices` of a `memory.plan.Plan`; the last two begin with those of the plan
        that has run. In place of a type stands what stands for a derivative; or ADDITION - w for the addition of rows
        of window w to an operand, with the list of the rows, counted from the first, in place of offsets (-1: all in
        order). What is computed of lists, their additions come next after, begins with the first row of its window.
    """
    plan, rules_of, to = Forward(*forward), Derivatives(*derivatives), Targets(*targets)
    sets, parts, rows = flow
    batches, rules = plan.batches, rules_of.rules
    saved = np.zeros(1 + batches["type"].max(), np.int64)
    for at in range(len(batches)):
        saved[batches[at]["type"]] += batches[at]["n"]
    out = _room(plan, parts, rules)
    used = out.used[0]
    seen = np.full((2, most_rows if to.grouped else 0), -1, np.int32)
    left = rows.copy()
    end, last = len(plan.nodes), len(batches)
    for part in range(len(parts) - 1, -1, -1):
        at, number, m = parts[part]["batch"], parts[part]["set"], parts[part]["n"]
        if at < plan.n_sources:
            break
        batch, rule = batches[at], rules[number]
        n = batch["n"]
        while last > at:
            last -= 1
            saved[batches[last]["type"]] -= batches[last]["n"]
            end -= batches[last]["n"]
        left[number] -= m
        if rule["role"] == NOTHING:
            continue
        which = np.empty(0, np.int32)
        if m < n:
            which = np.flatnonzero(sets[plan.nodes[end : end + n]] == number).astype(np.int32)
        chosen = Chosen(batch, which, m, saved[batch["type"]], left[number])
        if rule["role"] == COMPUTE:
            _through_batch(plan, chosen, rule, rules_of, out, to, seen)
        else:
            _over_lists(plan, chosen, rule, rules_of, out, to, seen)
    return (
        out.batches[: used["batches"]],
        out.operands[: used["operands"]],
        out.segments[: used["segments"]],
        out.indices[: used["indices"]],
    )


@compiled(small=True)
def _through_batch(
    plan: Forward, chosen: Chosen, rule: np.void, derivatives: Derivatives, out: Out, targets: Targets, seen: np.ndarray
) -> None:
    """A batch of a derivative, and additions of what it computes to the operands."""
    batch, which, m = chosen.batch, chosen.which, chosen.n
    n, first, integers = batch["n"], batch["operand"], batch["integers"]
    slots = rule["computed_end"] - rule["computed"]
    read = plan.operands[first : first + slots].copy()
    if m < n:
        for slot in range(slots):
            restrict(read[slot : slot + 1], which, out)
        begin = integers
        integers = out.used[0]["indices"]
        for k in range(rule["integers"]):
            append(out, plan.indices[begin + k * n : begin + (k + 1) * n][which])
    append_batch(out, rule["type"], chosen.left, m, integers, -1)
    _append_given(rule, derivatives.given, read, chosen, targets.n_windows, out)
    for slot in range(slots):
        target = derivatives.computed[rule["computed"] + slot]["window"]
        if target >= 0:
            add_rows(read[slot : slot + 1], Added(target, chosen.left, -1), out, targets, seen)


@compiled(small=True)
def _over_lists(
    plan: Forward, chosen: Chosen, rule: np.void, derivatives: Derivatives, out: Out, targets: Targets, seen: np.ndarray
) -> None:
    """A derivative that reads lists: its outputs are operands, too, of windows that the next batch uses again."""
    batch, which, m, computed = chosen.batch, chosen.which, chosen.n, derivatives.computed
    n, first, singles, begin = batch["n"], batch["operand"], rule["singles"], rule["computed"]
    slots = rule["computed_end"] - begin
    read = plan.operands[first : first + slots].copy()
    offsets = batch["offsets"]
    begins, owners, members = _elements(plan.indices[offsets : offsets + n + 1], which)
    if m < n:
        for slot in range(slots):
            restrict(read[slot : slot + 1], which if slot < singles else members, out)
    if rule["type"] >= 0:
        append_batch(out, rule["type"], 0, m, 0, append(out, begins) if m < n else offsets)
        _append_given(rule, derivatives.given, read, chosen, targets.n_windows, out)
        for slot in range(slots):
            target = computed[begin + slot]
            if target["window"] >= 0 and not target["given"]:
                append_operand(out, SLICE, target["window"], 0, 1, 0, m if target["of_each"] else read[slot]["n"])
    for slot in range(slots):
        target, row, listed = computed[begin + slot], 0, -1
        if target["given"]:
            row, listed = int(batch["row"]), append(out, owners if m == n else which[owners])
        elif target["of_each"]:
            listed = append(out, owners)
        if target["window"] >= 0:
            add_rows(read[slot : slot + 1], Added(target["window"], row, listed), out, targets, seen)


@compiled(small=True)
def _append_given(rule: np.void, given: np.ndarray, read: np.ndarray, chosen: Chosen, n_windows: int, out: Out) -> None:
    """What the batch that was appended last is given; `read`: the operands of the chosen nodes."""
    used, which = out.used[0], chosen.which
    for place in range(rule["given"], rule["given_end"]):
        kind, number = given[place]["kind"], given[place]["which"]
        if kind == _OPERAND:
            out.operands[used["operands"]] = read[number]
            used["operands"] += 1
            continue
        shown, start = rule["window"], int(chosen.batch["row"])
        if kind == _SAVED:
            shown, start = number, chosen.saved
        elif kind == _GRADIENT:
            shown = n_windows + rule["window"]
        if len(which):
            append_operand(out, GATHER, shown, append(out, which + np.int32(start)), 0, 0, chosen.n)
        else:
            append_operand(out, SLICE, shown, start, 1, 0, chosen.n)


@compiled(small=True)
def _room(plan: Forward, parts: np.ndarray, rules: np.ndarray) -> Out:
    """Room for all that may come; the segments and the indices of the plan that has run are there."""
    batches, operands, segments, indices = plan.batches, plan.operands, plan.segments, plan.indices
    elements, pieces, most_given = 0, 0, 0  # operands may have segments in common
    for at in range(len(operands)):
        elements += operands[at]["n"]
        pieces += max(1, operands[at]["segments"])
    most_parts, part = 1, 0
    while part < len(parts):
        begin = part
        while part < len(parts) and parts[part]["batch"] == parts[begin]["batch"]:
            part += 1
        most_parts = max(most_parts, part - begin)
    pieces *= most_parts
    # At most, per element of an operand: its place among the chosen twice, its owner, their places, and a group; and
    # where the lists of the chosen begin.
    room = len(indices) + 8 * elements + 4 * pieces
    for part in range(len(parts)):
        rule, m = rules[parts[part]["set"]], parts[part]["n"]
        some = rule["given_end"] - rule["given"] + rule["computed_end"] - rule["computed"]
        if m < batches[parts[part]["batch"]]["n"]:
            room += m * (rule["integers"] + some) + m + 1
        most_given = max(most_given, some)
    out_indices = np.empty(room, np.int32)  # what is not touched costs nothing
    out_indices[: len(indices)] = indices
    out_segments = np.empty(len(segments) + pieces, SEGMENT)
    out_segments[: len(segments)] = segments
    out_batches = np.empty(2 * len(parts) + pieces, BATCH)  # additions, and what goes before them
    out_operands = np.empty(len(out_batches) + len(parts) * most_given, OPERAND)
    used = np.zeros(1, USED)
    used[0]["segments"], used[0]["indices"] = len(segments), len(indices)
    return Out(out_batches, out_operands, out_segments, out_indices, used)


@compiled(small=True)
def _elements(offsets: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the elements of the chosen lists (none: all): where each list begins; of each, its list, and its number."""
    if len(chosen) == 0:
        chosen = np.arange(len(offsets) - 1).astype(np.int32)
    begins = np.zeros(len(chosen) + 1, np.int32)
    for i in range(len(chosen)):
        begins[i + 1] = begins[i] + offsets[chosen[i] + 1] - offsets[chosen[i]]
    owners, members = np.empty(begins[-1], np.int32), np.empty(begins[-1], np.int32)
    for i in range(len(chosen)):
        for at in range(begins[i], begins[i + 1]):
            owners[at], members[at] = i, offsets[chosen[i]] + at - begins[i]
    return begins, owners, members
