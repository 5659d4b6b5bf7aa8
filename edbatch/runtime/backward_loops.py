"""The compiled pass from a plan that has run to the plan of the way back through it, the last batch first."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from edbatch.compiled import compiled
from edbatch.graph.derivative import Given
from edbatch.kernels.groups import group_rows
from edbatch.memory.plan import BATCH, GATHER, GATHER_MANY, OPERAND, SEGMENT, SHARED, SLICE, STRIDED


class Role(IntEnum):
    """What the way back through batches of a type is."""

    NOTHING = 0  # only parameters get gradients, from the rows that other batches leave
    COMPUTE = 1  # the type's derivative, and additions of what it computes to the operands
    SHARE = 2  # additions: each operand of a sum over a list gets the gradient of the sum, of a mean its part
    LISTS = 3  # other reductions over lists, left to the caller


class Part(NamedTuple):
    """The nodes of a batch with one set of outputs that gradients flow into.

    Attributes:
        batch: its number.
        set: number of the set.
        n: nodes.
    """

    batch: int
    set: int
    n: int


class Rule(NamedTuple):
    """The way back through nodes with one set of outputs that gradients flow into.

    Attributes:
        role: a `Role`.
        type: what stands for the derivative in batches; of means of lists, for the division of rows.
        window: of the results.
        given, given_end: which part of all that derivatives are given.
        computed, computed_end: which part of the windows where derivatives leave the gradients of operands.
        integers: of a node.
    """

    role: int
    type: int
    window: int
    given: int
    given_end: int
    computed: int
    computed_end: int
    integers: int


class Source(NamedTuple):
    """Something that a derivative is given.

    Attributes:
        kind: a `Given`.
        which: number of the operand, or the window of what was saved.
    """

    kind: int
    which: int


PART, RULE, SOURCE = (np.dtype([(name, np.int64) for name in form._fields]) for form in (Part, Rule, Source))


# In the place of a type: a batch that is left to the caller; ADDITION - w: the addition of rows of window w.
CALLER, ADDITION = -1, -2

# Numba takes plain integers for constants.
_NOTHING, _COMPUTE, _SHARE, _LISTS = map(int, Role)
_OPERAND, _RESULT, _SAVED, _GRADIENT = map(int, Given)


class Out(NamedTuple):
    """The tables that are filled in.

    Attributes:
        batches, operands, segments, indices: as of a `Plan`, with room for all that may come.
        used: one record: how many of each there are; and how many lists were grouped.
    """

    batches: np.ndarray
    operands: np.ndarray
    segments: np.ndarray
    indices: np.ndarray
    used: np.ndarray


USED = np.dtype([(name, np.int64) for name in ("batches", "operands", "segments", "indices", "grouped")])


class Targets(NamedTuple):
    """What is to be known of what is added to.

    Attributes:
        n_windows: of values. Window n_windows + w is of the gradients of what window w shows.
        adds: per window of values, whether compiled loops add to its gradients.
        stopped: per window of values, whether no gradient flows to what is read through it. A batch reads some of its
            operands stopped and others not: each that differs is seen through a window of its own.
        grouped: whether rows that occur several times in a list have to be known before they are added up. Then they
            are given as an operand of several windows: where in `indices` offsets, members and rows of the groups
            follow one another, and the number of groups in place of that of segments.
        seen: for `group_rows`.
    """

    n_windows: int
    adds: np.ndarray
    stopped: np.ndarray
    grouped: bool
    seen: np.ndarray


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
        that has run. In place of a type stands what stands for a derivative; or CALLER, for a batch of `Role.LISTS`
        whose number is given as the first row; or ADDITION - w for the addition of rows of window w to an operand,
        with the list of the rows, counted from the first, in place of offsets (-1: all in order). Before the additions
        of a mean comes the type that its rule names: its rows, each divided by the length of its list.
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
        if rule["role"] == _NOTHING:
            continue
        if rule["role"] == _LISTS:
            _append_batch(out, CALLER, at, n, 0, -1)
            continue
        chosen = np.empty(0, np.int32)
        if m < n:
            chosen = np.flatnonzero(sets[nodes[end : end + n]] == number).astype(np.int32)
        if rule["role"] == _SHARE:
            offsets = batch["offsets"]
            owners, members = _elements(indices[offsets : offsets + n + 1], chosen)
            read = operands[first : first + 1].copy()
            if m < n:
                _restrict(read, members, out)
            source, begins = n_windows + rule["window"], int(row)
            if rule["computed"] < rule["computed_end"]:  # of means; divided in a buffer that the next batch uses again
                _append_batch(out, rule["type"], 0, n, 0, offsets)
                _append_operand(out, SLICE, source, row, 1, 0, n)
                source, begins = computed[rule["computed"]], 0
            _add(read, source, begins, _append(out, owners), out, targets)
            continue
        slots = rule["computed_end"] - rule["computed"]
        read = operands[first : first + slots].copy()
        if m < n:
            for slot in range(slots):
                _restrict(read[slot : slot + 1], chosen, out)
            begin = integers
            integers = used["indices"]
            for k in range(rule["integers"]):
                _append(out, indices[begin + k * n : begin + (k + 1) * n][chosen])
        _append_batch(out, rule["type"], left[number], m, integers, -1)
        for place in range(rule["given"], rule["given_end"]):
            kind, which = given[place]["kind"], given[place]["which"]
            if kind == _OPERAND:
                out.operands[used["operands"]] = read[which]
                used["operands"] += 1
                continue
            shown, start = rule["window"], int(row)
            if kind == _SAVED:
                shown, start = which, saved[batch["type"]]
            elif kind == _GRADIENT:
                shown = n_windows + rule["window"]
            if m < n:
                _append_operand(out, GATHER, shown, _append(out, chosen + np.int32(start)), 0, 0, m)
            else:
                _append_operand(out, SLICE, shown, start, 1, 0, m)
        for slot in range(slots):
            target = computed[rule["computed"] + slot]
            if target >= 0:
                _add(read[slot : slot + 1], target, left[number], -1, out, targets)
    return (
        out.batches[: used["batches"]],
        out.operands[: used["operands"]],
        out.segments[: used["segments"]],
        out.indices[: used["indices"]],
    )


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
    # At most, per element of an operand: its place among the chosen twice, its owner, their places, and a group.
    room = len(indices) + 8 * elements + 4 * pieces
    for part in range(len(parts)):
        rule, m = rules[parts[part]["set"]], parts[part]["n"]
        some = rule["given_end"] - rule["given"]
        if m < batches[parts[part]["batch"]]["n"]:
            room += m * (rule["integers"] + some)
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
def _append_batch(out: Out, type: int, row: int, n: int, integers: int, offsets: int) -> None:
    """A batch whose operands are those that are appended next."""
    used = out.used[0]
    batch = out.batches[used["batches"]]
    batch["type"] = type
    batch["row"] = row
    batch["n"] = n
    batch["operand"] = used["operands"]
    batch["integers"] = integers
    batch["offsets"] = offsets
    used["batches"] += 1


@compiled(small=True)
def _append_operand(out: Out, access: int, window: int, first: int, distance: int, segments: int, n: int) -> None:
    used = out.used[0]
    operand = out.operands[used["operands"]]
    operand["access"] = access
    operand["window"] = window
    operand["first"] = first
    operand["distance"] = distance
    operand["segments"] = segments
    operand["n"] = n
    used["operands"] += 1


@compiled(small=True)
def _append(out: Out, found: np.ndarray) -> int:
    """Where a list begins that comes after all others."""
    used = out.used[0]
    begin = used["indices"]
    used["indices"] += len(found)
    out.indices[begin : used["indices"]] = found
    return int(begin)


@compiled(small=True)
def _elements(offsets: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the elements of the chosen lists (none: all), which list each is in, and which of all elements it is."""
    if len(chosen) == 0:
        chosen = np.arange(len(offsets) - 1).astype(np.int32)
    total = 0
    for i in chosen:
        total += offsets[i + 1] - offsets[i]
    owners, members = np.empty(total, np.int32), np.empty(total, np.int32)
    at = 0
    for i in chosen:
        for member in range(offsets[i], offsets[i + 1]):
            owners[at], members[at] = i, member - offsets[0]
            at += 1
    return owners, members


@compiled(small=True)
def _restrict(one: np.ndarray, chosen: np.ndarray, out: Out) -> None:
    """Have only some elements of an operand read, in the same order; `one` holds nothing else, and lives on."""
    operand, segments, lists = one[0], out.segments, out.indices
    access, first, n = operand["access"], operand["first"], operand["n"]
    operand["n"] = len(chosen)
    if access == GATHER_MANY:
        used = out.used[0]
        number = np.full(n, -1, np.int32)
        for i in range(len(chosen)):
            number[chosen[i]] = i
        operand["first"] = used["segments"]
        for at in range(first, first + operand["segments"]):
            rows, positions, some = segments[at]["rows"], segments[at]["positions"], segments[at]["n"]
            new = number[lists[positions : positions + some]]
            kept = np.flatnonzero(new >= 0)
            if len(kept):
                segment = segments[used["segments"]]
                segment["window"] = segments[at]["window"]
                segment["rows"] = _append(out, lists[rows : rows + some][kept])
                segment["positions"] = _append(out, new[kept])
                segment["n"] = len(kept)
                used["segments"] += 1
        operand["segments"] = used["segments"] - operand["first"]
    elif access == GATHER:
        operand["first"] = _append(out, lists[first : first + n][chosen])
    elif access != SHARED:
        operand["first"] = _append(out, np.int32(first) + chosen * np.int32(operand["distance"]))
        operand["access"] = GATHER
        operand["distance"] = 0


@compiled(small=True)
def _add(one: np.ndarray, source: int, row: int, owners: int, out: Out, targets: Targets) -> None:
    """Add rows of the window `source`, from `row` on, to an operand; in the order of the list `owners` if not -1.

    Args:
        one: the operand, and nothing else.
    """
    operand, lists = one[0], out.indices
    access, window, first, count = operand["access"], operand["window"], operand["first"], operand["n"]
    if access != GATHER_MANY and targets.stopped[window]:
        return
    if access <= STRIDED and (access != SHARED or owners < 0):
        _append_batch(out, ADDITION - source, row, count, 0, owners)
        _append_operand(out, access, targets.n_windows + window, first, operand["distance"], 0, count)
        return
    if access == SHARED:
        first = _append(out, np.full(count, first, np.int32))
    if access != GATHER_MANY:
        _add_to_rows(window, first, count, owners, source, row, out, targets)
        return
    for at in range(first, first + operand["segments"]):
        segment = out.segments[at]
        places, n = segment["positions"], segment["n"]
        if targets.stopped[segment["window"]]:
            continue
        if owners >= 0:
            places = _append(out, lists[owners : owners + count][lists[places : places + n]])
        _add_to_rows(segment["window"], segment["rows"], n, places, source, row, out, targets)


@compiled(small=True)
def _add_to_rows(
    window: int, rows: int, n: int, positions: int, source: int, row: int, out: Out, targets: Targets
) -> None:  # fmt: skip
    """Add rows of the window `source`, from `row` on, to the listed rows of a window; in the order of `positions`."""
    used, lists, shown = out.used[0], out.indices, targets.n_windows + window
    if targets.grouped and targets.adds[window]:
        used["grouped"] += 1
        found, offsets, members = group_rows(lists[rows : rows + n], targets.seen, used["grouped"])
        if len(found) < n:
            if positions >= 0:
                members = lists[positions : positions + n][members]
            groups = _append(out, offsets)
            _append(out, members)
            _append(out, found)
            _append_batch(out, ADDITION - source, row, n, 0, -1)
            _append_operand(out, GATHER_MANY, shown, groups, 0, len(found), n)
            return
    _append_batch(out, ADDITION - source, row, n, 0, positions)
    _append_operand(out, GATHER, shown, rows, 0, 0, n)
