"""The compiled pass from a plan that has run to the plan of the backward pass through it, the last batch first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.graph.cell.derivative import Given
from edbatch.memory.plan.format import GATHER, SLICE
from edbatch.memory.plan.growing import PlanTables, tables_in
from edbatch.memory.plan.windows import GRADIENT
from edbatch.runtime.backward.flow import flow_in
from edbatch.runtime.backward.plan_writer import Added, add_rows, append, append_batch, append_operand, select
from edbatch.runtime.backward.rules import AS_GIVEN, EACH, NOWHERE, RuleTables, rules_in

# Numba takes plain integers for constants.
_OPERAND, _RESULT, _SAVED, _GRADIENT = map(int, Given)


class Chosen(NamedTuple):
    """The nodes of a batch with one set of live outputs.

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
    stretch: tuple, adding: int, grouped: bool, saved: np.ndarray, rule_of: np.ndarray, plan_tables: np.ndarray,
    flow_tables: np.ndarray, rule_tables: np.ndarray, arenas: np.ndarray, rows: np.ndarray, back: np.ndarray,
) -> None:  # fmt: skip
    """Plan the backward pass through the parts of batches that gradients flow into.

    The last two of its tables begin with those of the plan that has run. Types are those of the rules. What is computed
    of lists, whose additions come next after it, begins with the first row of its window. An addition has the list of
    the rows that are added, counted from the first, in place of offsets (-1: all in order).

    Args:
        stretch: the first batch, the batch after the last, where their nodes begin among those of the plan.
        adding: what adds rows, in batches.
        grouped: whether rows that occur several times in a list have to be known before they are added up. Then they
            are given as an operand of several windows: where in `indices` offsets, members and rows of the groups
            follow one another, and the number of groups in place of that of segments.
        saved: per type, the first row of what they have saved.
        rule_of: per set, the number of its rule.
        arenas: of records `Rows`.
        rows: per arena, how many rows there are to be: zeros, but where gradients are given; filled in.
        back: directory of a `GrowingPlan` without batches and with room, which is filled in.
    """
    first, stop, end = stretch
    plan, tables, out = tables_in(plan_tables), rules_in(rule_tables), tables_in(back)
    flowing = flow_in(flow_tables)
    parts, batches = flowing.parts[: flowing.n_parts[0]], plan.batches[first:stop]
    known, used = plan.used[0], out.used[0]
    used["segments"], used["indices"], used["integers"] = known["segments"], known["indices"], known["integers"]
    out.segments[: known["segments"]] = plan.segments[: known["segments"]]
    out.indices[: known["indices"]] = plan.indices[: known["indices"]]
    out.integers[: known["integers"]] = plan.integers[: known["integers"]]
    counts = np.zeros(1 + batches["type"].max(), np.int64)  # per type the nodes of batches before
    for at in range(len(batches)):
        counts[batches[at]["type"]] += batches[at]["n"]
        end += batches[at]["n"]
    seen = np.full((2, 1 + arenas["used"].max() if grouped else 0), -1, np.int32)
    left, last = flowing.rows.copy(), len(batches)
    for part in range(len(parts)):
        at, number, m = parts[part]["batch"], parts[part]["set"], parts[part]["n"]
        batch, rule = batches[at], tables.rules[rule_of[number]]
        while last > at:
            last -= 1
            counts[batches[last]["type"]] -= batches[last]["n"]
            end -= batches[last]["n"]
        left[number] -= m
        if rule["runs"] < 0 and rule["end"] == rule["computed"]:
            continue
        which, row = np.empty(0, np.int32), 0
        if m < batch["n"]:
            which = np.flatnonzero(flowing.sets[plan.nodes[end : end + batch["n"]]] == number).astype(np.int32)
        if rule["own"] >= 0:
            own = tables.windows[rule["own"]]["arena"]
            row = left[number] + arenas[own]["used"]
            rows[own] = max(rows[own], row + m)
        of_saved = counts[batch["type"]] + (saved[batch["type"]] if len(saved) else 0)
        _through(plan, Chosen(batch, which, m, of_saved, row), rule, adding, tables, out, seen, rows)
    for at in range(out.used[0]["operands"]):
        window = out.operands[at]["window"]
        arena = tables.windows[window]["arena"] if window >= 0 else 0
        if arena % 2 == GRADIENT:
            rows[arena] = arenas[arena - GRADIENT]["used"]


@compiled(small=True)
def _through(
    plan: PlanTables, chosen: Chosen, rule: np.void, adding: int, tables: RuleTables, out: PlanTables,
    seen: np.ndarray, rows: np.ndarray,
) -> None:  # fmt: skip
    """A batch of a derivative, and additions of what it computes to the operands.

    One that reads lists has its outputs as operands, too, of windows that the next batch uses again.
    """
    batch, which, m, own = chosen.batch, chosen.which, chosen.n, rule["own"] >= 0
    n, first, integers, offsets = batch["n"], batch["operand"], batch["integers"], batch["offsets"]
    targets = tables.slots[rule["computed"] : rule["end"]]
    read = plan.operands[first : first + len(targets)].copy()
    owners, members = which, which
    if not own:
        begins, owners, members = _elements(plan.indices[offsets : offsets + n + 1], which)
        offsets = append(out, begins) if m < n else offsets
    if m < n:
        for slot in range(len(targets)):
            select(read[slot : slot + 1], which if own or slot < rule["singles"] else members, out)
        used, begin = out.used[0], integers
        integers = used["integers"]
        for k in range(rule["integers"]):
            out.integers[used["integers"] : used["integers"] + m] = plan.integers[begin + k * n : begin + k * n + n][
                which
            ]
            used["integers"] += m
    if rule["runs"] >= 0:
        append_batch(out, rule["runs"], chosen.left, m, integers, -1 if own else offsets)
        _append_given(rule, tables.slots, read, chosen, out)
    for slot in range(len(targets)):
        kind, window, some = targets[slot]["kind"], targets[slot]["which"], read[slot]["n"]
        if not own and kind != NOWHERE and kind != AS_GIVEN:
            some = m if kind == EACH else some
            append_operand(out, SLICE, window, 0, 1, 0, some)
            arena = tables.windows[window]["arena"]
            rows[arena] = max(rows[arena], some)
    for slot in range(len(targets)):
        kind, row, listed = targets[slot]["kind"], chosen.left, -1
        if kind == AS_GIVEN:
            row, listed = int(batch["row"]), append(out, owners if m == n else which[owners])
        elif kind == EACH:
            listed = append(out, owners)
        if kind != NOWHERE:
            added = Added(targets[slot]["which"], row, listed, adding)
            add_rows(read[slot : slot + 1], added, out, tables, seen)


@compiled(small=True)
def _append_given(rule: np.void, slots: np.ndarray, read: np.ndarray, chosen: Chosen, out: PlanTables) -> None:
    """What the batch that was appended last is given; `read`: the operands of the chosen nodes."""
    used, which = out.used[0], chosen.which
    for place in range(rule["given"], rule["computed"]):
        kind, number = slots[place]["kind"], slots[place]["which"]
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
def room_back(
    stretch: tuple, rule_of: np.ndarray, plan_tables: np.ndarray, flow_tables: np.ndarray, rule_tables: np.ndarray
) -> tuple[int, int, int, int, int, int]:
    """How many entries the tables of a backward plan may come to have, as of `Used`; see `plan_back`."""
    plan, rules, flowing = tables_in(plan_tables), rules_in(rule_tables).rules, flow_in(flow_tables)
    parts, batches = flowing.parts[: flowing.n_parts[0]], plan.batches[stretch[0] : stretch[1]]
    known, given = plan.used[0], 0
    elements, pieces = 0, 0  # operands may have segments in common
    for at in range(known["operands"]):
        elements += plan.operands[at]["n"]
        pieces += max(1, plan.operands[at]["segments"])
    # At most, per element of an operand: its place among the chosen twice, its owner, their places, and a group; and
    # where the lists of the chosen begin.
    room, integers, most_parts, begin = known["indices"] + 8 * elements, known["integers"], 1, 0
    for part in range(len(parts)):
        rule, m, batch = rules[rule_of[parts[part]["set"]]], parts[part]["n"], parts[part]["batch"]
        begin = begin if parts[begin]["batch"] == batch else part
        most_parts = max(most_parts, part + 1 - begin)
        some = rule["end"] - rule["given"]
        if m < batches[batch]["n"]:
            room += m * some + m + 1
            integers += m * rule["integers"]
        given += some
    pieces *= most_parts
    additions = 2 * len(parts) + pieces  # and what goes before them
    return additions, 2 * additions + given, known["segments"] + pieces, room + 4 * pieces, integers, 0


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
