"""The compiled pass from a plan that has run to the plan of the backward pass through it, the last batch first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.graph.cell.derivative import Given
from edbatch.memory.plan.format import GATHER, SLICE
from edbatch.memory.plan.growing import PlanTables, tables_in
from edbatch.memory.plan.windows import GRADIENT
from edbatch.runtime.backward.plan_writer import (
    Added,
    Targets,
    add_rows,
    append,
    append_batch,
    append_operand,
    batches_in,
    select,
)
from edbatch.runtime.backward.records import COMPUTE, NOTHING, RuleTables, flow_in, rules_in

LINE = 16  # entries: what lies in an arena begins with a line of the cache

# Numba takes plain integers for constants.
_OPERAND, _RESULT, _SAVED, _GRADIENT = map(int, Given)


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
    stretch: tuple, grouped: bool, saved: np.ndarray, rule_of: np.ndarray, plan_tables: np.ndarray,
    flow_tables: np.ndarray, rule_tables: np.ndarray, arenas: np.ndarray, rows: np.ndarray, back: np.ndarray,
) -> bool:  # fmt: skip
    """Plan the backward pass through some batches of a plan that gradients flow into.

    The last two of its tables begin with those of the plan that has run. Types are those of the rules. What is computed
    of lists, whose additions come next after it, begins with the first row of its window. An addition has the list of
    the rows that are added, counted from the first, in place of offsets (-1: all in order).

    Args:
        stretch: the first batch, the batch after the last, where their nodes begin among those of the plan; how many
            parts they were divided into.
        grouped: see `Targets`.
        saved: per type, the first row of what they have saved.
        rule_of: per set, the number of its rule.
        arenas: of records `Rows`.
        rows: per arena, how many rows there are to be: zeros, but where gradients are given; filled in.
        back: directory of a `GrowingPlan` without batches, which is filled in.

    Returns:
        Whether there is room for the tables; if not, `used` says how much there is to be.
    """
    first, stop, first_node, n_parts = stretch
    plan, tables, out = batches_in(first, stop, first_node, plan_tables), rules_in(rule_tables), tables_in(back)
    flowing = flow_in(flow_tables)
    parts, batches, used = flowing.parts[:n_parts], plan.batches, out.used[0]
    to = Targets(tables.windows, tables.stopped, grouped)
    if not _has_room(plan, parts, tables.rules, rule_of, out):
        return False
    most_rows = 1
    for at in range(len(arenas)):
        most_rows = max(most_rows, 1 + arenas[at]["used"])
    counts = np.zeros(1 + batches["type"].max(), np.int64)
    for at in range(len(batches)):
        counts[batches[at]["type"]] += batches[at]["n"]
    seen = np.full((2, most_rows if grouped else 0), -1, np.int32)
    left = flowing.rows.copy()
    end, last = 0, len(batches)
    for at in range(len(batches)):
        end += batches[at]["n"]
    for part in range(len(parts) - 1, -1, -1):
        at, number, m = parts[part]["batch"], parts[part]["set"], parts[part]["n"]
        batch, rule = batches[at], tables.rules[rule_of[number]]
        n, kind = batch["n"], batch["type"]
        while last > at:
            last -= 1
            counts[batches[last]["type"]] -= batches[last]["n"]
            end -= batches[last]["n"]
        left[number] -= m
        if rule["role"] == NOTHING:
            continue
        which = np.empty(0, np.int32)
        if m < n:
            which = np.flatnonzero(flowing.sets[plan.nodes[end : end + n]] == number).astype(np.int32)
        of_saved = counts[kind] + (saved[kind] if len(saved) else 0)
        if rule["role"] == COMPUTE:
            row = left[number] + arenas[rule["own"]]["used"]
            rows[rule["own"]] = max(rows[rule["own"]], row + m)
            _through_batch(plan, Chosen(batch, which, m, of_saved, row), rule, tables, out, to, seen)
        else:
            _over_lists(plan, Chosen(batch, which, m, of_saved, 0), rule, tables, out, to, seen, rows)
    for at in range(used["operands"]):
        window = out.operands[at]["window"]
        arena = tables.windows[window]["arena"] if window >= 0 else 0
        if tables.of_gradients[arena]:
            rows[arena] = arenas[arena - GRADIENT]["used"]
    return True


@compiled(small=True)
def place_rows(
    rows: np.ndarray, there: np.ndarray, rule_tables: np.ndarray, arenas: np.ndarray, itemsize: int, placed: np.ndarray
) -> tuple[int, int, int]:
    """Place the rows of arenas side by side, those of gradients first.

    Args:
        rows, arenas: see `plan_back`; there: per arena, whether it is to stay where it is; none: that is no arena.
        itemsize: of an entry.
        placed: [arenas, 5]: the arena, and the fields of its record `Rows`, but that addresses count from the first
            byte; filled in.

    Returns:
        How many arenas these are; how many entries are of gradients; and how many there are.
    """
    of_gradients = rules_in(rule_tables).of_gradients
    n, zeros, end = 0, 0, 0
    for first in (True, False):
        for arena in range(len(rows)):
            if rows[arena] == 0 or of_gradients[arena] != first or (len(there) and there[arena]):
                continue
            stride = arenas[arena]["stride"]
            placed[n, 0], placed[n, 1], placed[n, 2] = arena, end * itemsize, stride
            placed[n, 3] = placed[n, 4] = rows[arena]
            end += -(-rows[arena] * (stride // itemsize) // LINE) * LINE
            n += 1
        if first:
            zeros = end
    return n, zeros, end


@compiled(small=True)
def _through_batch(
    plan: PlanTables,
    chosen: Chosen,
    rule: np.void,
    tables: RuleTables,
    out: PlanTables,
    targets: Targets,
    seen: np.ndarray,
) -> None:
    """A batch of a derivative, and additions of what it computes to the operands."""
    batch, which, m = chosen.batch, chosen.which, chosen.n
    n, first, integers = batch["n"], batch["operand"], batch["integers"]
    slots = rule["computed_end"] - rule["computed"]
    read = plan.operands[first : first + slots].copy()
    if m < n:
        for slot in range(slots):
            select(read[slot : slot + 1], which, out)
        used, begin = out.used[0], integers
        integers = used["integers"]
        for k in range(rule["integers"]):
            end = used["integers"] + m
            out.integers[used["integers"] : end] = plan.integers[begin + k * n : begin + (k + 1) * n][which]
            used["integers"] = end
    append_batch(out, rule["type"], chosen.left, m, integers, -1)
    _append_given(rule, tables.given, read, chosen, out)
    for slot in range(slots):
        target = tables.computed[rule["computed"] + slot]["window"]
        if target >= 0:
            add_rows(read[slot : slot + 1], Added(target, chosen.left, -1, rule["adding"]), out, targets, seen)


@compiled(small=True)
def _over_lists(
    plan: PlanTables, chosen: Chosen, rule: np.void, tables: RuleTables, out: PlanTables, targets: Targets,
    seen: np.ndarray, rows: np.ndarray,
) -> None:  # fmt: skip
    """A derivative that reads lists: its outputs are operands, too, of windows that the next batch uses again."""
    batch, which, m, computed = chosen.batch, chosen.which, chosen.n, tables.computed
    n, first, singles, begin = batch["n"], batch["operand"], rule["singles"], rule["computed"]
    slots = rule["computed_end"] - begin
    read = plan.operands[first : first + slots].copy()
    offsets = batch["offsets"]
    begins, owners, members = _elements(plan.indices[offsets : offsets + n + 1], which)
    if m < n:
        for slot in range(slots):
            select(read[slot : slot + 1], which if slot < singles else members, out)
    if rule["type"] >= 0:
        append_batch(out, rule["type"], 0, m, 0, append(out, begins) if m < n else offsets)
        _append_given(rule, tables.given, read, chosen, out)
        for slot in range(slots):
            target = computed[begin + slot]
            if target["window"] >= 0 and not target["given"]:
                some = m if target["of_each"] else read[slot]["n"]
                append_operand(out, SLICE, target["window"], 0, 1, 0, some)
                arena = tables.windows[target["window"]]["arena"]
                rows[arena] = max(rows[arena], some)
    for slot in range(slots):
        target, row, listed = computed[begin + slot], 0, -1
        if target["given"]:
            row, listed = int(batch["row"]), append(out, owners if m == n else which[owners])
        elif target["of_each"]:
            listed = append(out, owners)
        if target["window"] >= 0:
            add_rows(read[slot : slot + 1], Added(target["window"], row, listed, rule["adding"]), out, targets, seen)


@compiled(small=True)
def _append_given(rule: np.void, given: np.ndarray, read: np.ndarray, chosen: Chosen, out: PlanTables) -> None:
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
            shown = rule["window"] + GRADIENT
        if len(which):
            append_operand(out, GATHER, shown, append(out, which + np.int32(start)), 0, 0, chosen.n)
        else:
            append_operand(out, SLICE, shown, start, 1, 0, chosen.n)


@compiled(small=True)
def _has_room(plan: PlanTables, parts: np.ndarray, rules: np.ndarray, rule_of: np.ndarray, out: PlanTables) -> bool:
    """Whether there is room for all that may come; then segments, indices and integers of the plan that has run are in.

    Else `out.used` says how much there is to be.
    """
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
    room, integers = len(indices) + 8 * elements + 4 * pieces, len(plan.integers)
    for part in range(len(parts)):
        rule, m = rules[rule_of[parts[part]["set"]]], parts[part]["n"]
        some = rule["given_end"] - rule["given"] + rule["computed_end"] - rule["computed"]
        if m < batches[parts[part]["batch"]]["n"]:
            room += m * some + m + 1
            integers += m * rule["integers"]
        most_given = max(most_given, some)
    used = out.used[0]
    used["batches"] = 2 * len(parts) + pieces  # additions, and what goes before them
    used["operands"] = 2 * used["batches"] + len(parts) * most_given
    used["segments"], used["indices"], used["integers"] = len(segments) + pieces, room, integers
    if (
        used["batches"] > len(out.batches)
        or used["operands"] > len(out.operands)
        or used["segments"] > len(out.segments)
        or room > len(out.indices)
        or integers > len(out.integers)
    ):
        return False
    used["batches"] = used["operands"] = 0
    used["segments"], used["indices"], used["integers"] = len(segments), len(indices), len(plan.integers)
    out.segments[: len(segments)] = segments
    out.indices[: len(indices)] = indices
    out.integers[: len(plan.integers)] = plan.integers
    return True


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
