"""The compiled pass from a plan that has run to the plan of the way back through it, the last batch first."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.graph.cell.derivative import Given
from edbatch.memory.plan.format import BATCH, GATHER, OPERAND, SEGMENT, SLICE
from edbatch.runtime.backward.out import USED, Out, Targets, add_rows, append, append_batch, append_operand, restrict
from edbatch.runtime.backward.records import COMPUTE, NOTHING, OVER_LISTS, WEIGH

# Numba takes plain integers for constants.
_OPERAND, _RESULT, _SAVED, _GRADIENT = map(int, Given)


@compiled(small=True)
def plan_back(
    batches: np.ndarray,
    operands: np.ndarray,
    segments: np.ndarray,
    indices: np.ndarray,
    n_sources: int,
    nodes: np.ndarray,
    sets: np.ndarray,
    parts: np.ndarray,
    rows: np.ndarray,
    rules: np.ndarray,
    given: np.ndarray,
    computed: np.ndarray,
    n_windows: int,
    adds: np.ndarray,
    grouped: bool,
    most_rows: int,
    stopped: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The way back through the batches of a plan that gradients flow into, as the tables of a plan.

    Args:
        batches, operands, segments, indices: of the plan that has run.
        n_sources: how many of its batches, the first, hold sources.
        nodes: its nodes, batch after batch.
        sets: per node of the graph, the number of the set of its outputs that gradients flow into; -1: none.
        parts: of records `Part`: batches are divided by the sets of their nodes.
        rows: per set, how many nodes have it.
        rules: per set, a record `Rule`.
        given: what derivatives are given, of records `Source`.
        computed: per operand of a set's type, the window where its derivative leaves the operand's gradient; -1: none.
        n_windows, adds, grouped, stopped: see `Targets`.
        most_rows: more than any row of an arena.

    Returns:
        `batches`, `operands`, `segments`, `indices` of a `memory.plan.Plan`; the last two begin with those of the plan
        that has run. In place of a type stands what stands for a derivative, or for a kernel of lists; or ADDITION - w
        for the addition of rows of window w to an operand, with the list of the rows, counted from the first, in place
        of offsets (-1: all in order). What is computed of lists, their additions come next after, begins with the
        first row of its window.
    """
    saved = np.zeros(1 + batches["type"].max(), np.int64)
    for at in range(len(batches)):
        saved[batches[at]["type"]] += batches[at]["n"]
    out = _room(batches, operands, segments, indices, parts, rules)
    used = out.used[0]
    seen = np.full((2, most_rows if grouped else 0), -1, np.int32)
    targets = Targets(n_windows, adds, stopped, grouped, seen)
    left = rows.copy()
    end, last = len(nodes), len(batches)
    for part in range(len(parts) - 1, -1, -1):
        at, number, m = parts[part]["batch"], parts[part]["set"], parts[part]["n"]
        if at < n_sources:
            break
        batch, rule = batches[at], rules[number]
        row, n, first, integers = batch["row"], batch["n"], batch["operand"], batch["integers"]
        while last > at:
            last -= 1
            saved[batches[last]["type"]] -= batches[last]["n"]
            end -= batches[last]["n"]
        left[number] -= m
        if rule["role"] == NOTHING:
            continue
        chosen = np.empty(0, np.int32)
        if m < n:
            chosen = np.flatnonzero(sets[nodes[end : end + n]] == number).astype(np.int32)
        if rule["role"] == OVER_LISTS:
            _back_over_lists(batch, rule, operands, chosen, m, given, computed, n_windows, out, targets)
            continue
        if rule["role"] != COMPUTE:
            offsets, is_computed = batch["offsets"], rule["computed"] < rule["computed_end"]
            names = chosen
            if m == n or is_computed:  # rows of what is computed are those of the chosen
                names = np.arange(m).astype(np.int32)
            begins, owners, members = _elements(indices[offsets : offsets + n + 1], chosen, names)
            read = operands[first : first + 1].copy()
            if m < n:
                restrict(read, members, out)
            source, start = n_windows + rule["window"], int(row)
            if is_computed:
                append_batch(out, rule["type"], 0, m, 0, append(out, begins) if m < n else offsets)
                _append_given(rule, given, read, chosen, int(row), 0, m, n_windows, out)
                source, start = computed[rule["computed"]], 0
            add_rows(read, source, start, -1 if rule["role"] == WEIGH else append(out, owners), out, targets)
            continue
        slots = rule["computed_end"] - rule["computed"]
        read = operands[first : first + slots].copy()
        if m < n:
            for slot in range(slots):
                restrict(read[slot : slot + 1], chosen, out)
            begin = integers
            integers = used["indices"]
            for k in range(rule["integers"]):
                append(out, indices[begin + k * n : begin + (k + 1) * n][chosen])
        append_batch(out, rule["type"], left[number], m, integers, -1)
        _append_given(rule, given, read, chosen, int(row), saved[batch["type"]], m, n_windows, out)
        for slot in range(slots):
            target = computed[rule["computed"] + slot]
            if target >= 0:
                add_rows(read[slot : slot + 1], target, left[number], -1, out, targets)
    return (
        out.batches[: used["batches"]],
        out.operands[: used["operands"]],
        out.segments[: used["segments"]],
        out.indices[: used["indices"]],
    )


@compiled(small=True)
def _back_over_lists(
    batch: np.void, rule: np.void, operands: np.ndarray, chosen: np.ndarray, m: int, given: np.ndarray,
    computed: np.ndarray, n_windows: int, out: Out, targets: Targets,
) -> None:  # fmt: skip
    """A derivative that reads lists: its outputs are operands, too, of windows that the next batch uses again.

    Args:
        batch: of the forward plan.
        operands: of the forward plan.
        chosen: which m of the batch's nodes gradients flow into; empty: all.
    """
    first, singles, begin = batch["operand"], rule["singles"], rule["computed"]
    slots = rule["computed_end"] - begin
    read = operands[first : first + slots].copy()
    offsets = batch["offsets"]
    if m < batch["n"]:
        begins, _, members = _elements(out.indices[offsets : offsets + batch["n"] + 1], chosen, chosen)
        for slot in range(slots):
            restrict(read[slot : slot + 1], chosen if slot < singles else members, out)
        offsets = append(out, begins)
    append_batch(out, rule["type"], 0, m, 0, offsets)
    _append_given(rule, given, read, chosen, batch["row"], 0, m, n_windows, out)
    for slot in range(slots):
        if computed[begin + slot] >= 0:
            append_operand(out, SLICE, computed[begin + slot], 0, 1, 0, read[slot]["n"])
    for slot in range(slots):
        if computed[begin + slot] >= 0:
            add_rows(read[slot : slot + 1], computed[begin + slot], 0, -1, out, targets)


@compiled(small=True)
def _append_given(
    rule: np.void, given: np.ndarray, read: np.ndarray, chosen: np.ndarray, row: int, saved: int, m: int,
    n_windows: int, out: Out,
) -> None:  # fmt: skip
    """What the batch that was appended last is given.

    Args:
        read: the operands of the chosen nodes.
        chosen: which m nodes of the forward batch these are; empty: all.
        row, saved: the first row of that batch's results, and of what it has saved.
    """
    used = out.used[0]
    for place in range(rule["given"], rule["given_end"]):
        kind, which = given[place]["kind"], given[place]["which"]
        if kind == _OPERAND:
            out.operands[used["operands"]] = read[which]
            used["operands"] += 1
            continue
        shown, start = rule["window"], row
        if kind == _SAVED:
            shown, start = which, saved
        elif kind == _GRADIENT:
            shown = n_windows + rule["window"]
        if len(chosen):
            append_operand(out, GATHER, shown, append(out, chosen + np.int32(start)), 0, 0, m)
        else:
            append_operand(out, SLICE, shown, start, 1, 0, m)


@compiled(small=True)
def _room(
    batches: np.ndarray, operands: np.ndarray, segments: np.ndarray, indices: np.ndarray, parts: np.ndarray,
    rules: np.ndarray,
) -> Out:  # fmt: skip
    """Room for all that may come; the segments and the indices of the plan that has run are there."""
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
def _elements(offsets: np.ndarray, chosen: np.ndarray, names: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the elements of the chosen lists (none: all): where each list begins, the names of lists, numbers of elements.

    Args:
        names: what the chosen lists are called.
    """
    if len(chosen) == 0:
        chosen = np.arange(len(offsets) - 1).astype(np.int32)
    begins = np.zeros(len(chosen) + 1, np.int32)
    for i in range(len(chosen)):
        begins[i + 1] = begins[i] + offsets[chosen[i] + 1] - offsets[chosen[i]]
    owners, members = np.empty(begins[-1], np.int32), np.empty(begins[-1], np.int32)
    for i in range(len(chosen)):
        for at in range(begins[i], begins[i + 1]):
            owners[at], members[at] = names[i], offsets[chosen[i]] + at - begins[i]
    return begins, owners, members
