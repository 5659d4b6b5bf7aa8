"""The compiled pass from a plan that has run to the plan of the way back through it, the last batch first."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from edbatch.compiled import compiled
from edbatch.kernels.groups import group_rows


class Role(IntEnum):
    """What the way back through batches of a type is."""

    NOTHING = 0  # only parameters get gradients, from the rows that other batches leave
    COMPUTE = 1  # the type's derivative, and additions of what it computes to the operands
    SHARE = 2  # additions: each operand of a sum over a list gets the gradient of the sum, of a mean its part
    LISTS = 3  # other reductions over lists, left to the caller


# In the place of a type: a batch that is left to the caller; ADDITION - w: the addition of rows of window w.
CALLER, ADDITION = -1, -2

# Numba takes plain integers for constants.
_NOTHING, _COMPUTE, _SHARE, _LISTS = map(int, Role)
_OPERAND, _RESULT, _SAVED, _GRADIENT = range(4)  # graph.derivative.Given
_SLICE, _SHARED, _STRIDED, _GATHER, _GATHER_MANY = range(5)  # memory.plan.Access
_BATCHES, _OPERANDS, _SEGMENTS, _INDICES, _GROUPED = range(5)  # of `used`


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
    kinds: np.ndarray,
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
        parts: [., 3] batch, set and number of nodes: batches are divided by the sets of their nodes.
        rows: per set, how many nodes have it.
        kinds: per set [., 8]: its type's `Role`, what stands for its derivative in batches, the window of its results,
            begin and end of its part of `given`, begin and end of its part of `computed`, integers of a node.
        given: [., 2] what derivatives are given: `Given`, and which operand or the window of what was saved.
        computed: per operand of a set's type, the window where its derivative leaves the operand's gradient; -1: none.
        n_windows: of values. Window n_windows + w is of the gradients of what window w shows.
        adds: per window of values, whether compiled loops add to its gradients.
        grouped: whether rows that occur several times in a list have to be known before they are added up. Then they
            are given as an operand of several windows: where in `indices` offsets, members and rows of the groups
            follow one another, and the number of groups.
        most_rows: more than any row of an arena.
        stopped: per window of values, whether no gradient flows to what is read through it. A batch reads some of its
            operands stopped and others not: each that differs is seen through a window of its own.

    Returns:
        `batches`, `operands`, `segments`, `indices` of a `memory.plan.Plan`; the last two begin with those of the plan
        that has run. In place of a type stands what stands for a derivative; or CALLER, for a batch of `Role.LISTS`
        whose number is given as the first row; or ADDITION - w for the addition of rows of window w to an operand,
        with the list of the rows, counted from the first, in place of offsets (-1: all in order). Before the additions
        of a mean comes the type that `kinds` names for it: its rows, each divided by the length of its list.
    """
    saved = np.zeros(1 + batches[:, 0].max(), np.int64)
    elements, pieces, most_given = 0, 0, 0  # operands may have segments in common
    for at in range(len(operands)):
        elements += operands[at, 4]
        pieces += operands[at, 3] if operands[at, 0] == _GATHER_MANY else 1
    most_parts, part = 1, 0
    while part < len(parts):
        begin = part
        while part < len(parts) and parts[part, 0] == parts[begin, 0]:
            part += 1
        most_parts = max(most_parts, part - begin)
    pieces *= most_parts
    # At most, per element of an operand: its place among the chosen twice, its owner, their places, and a group.
    room = len(indices) + 8 * elements + 4 * pieces
    for at in range(len(batches)):
        saved[batches[at, 0]] += batches[at, 2]
    for part in range(len(parts)):
        at, kind, m = parts[part]
        some = kinds[kind, 4] - kinds[kind, 3]
        if m < batches[at, 2]:
            room += m * (kinds[kind, 7] + some)
        most_given = max(most_given, some)
    lists = np.empty(room, np.int32)  # what is not touched costs nothing
    lists[: len(indices)] = indices
    out_segments = np.empty((len(segments) + pieces, 4), np.int32)
    out_segments[: len(segments)] = segments
    out_batches = np.empty((2 * len(parts) + pieces, 6), np.int32)  # additions, and what goes before them
    out_operands = np.empty((len(out_batches) + len(parts) * most_given, 5), np.int32)
    used = np.array([0, 0, len(segments), len(indices), 0], np.int64)  # of these four; lists that were grouped
    seen = np.full((2, most_rows if grouped else 0), -1, np.int32)
    left = rows.copy()
    end, last = len(nodes), len(batches)
    for part in range(len(parts) - 1, -1, -1):
        at, kind, m = parts[part]
        if at < n_sources:
            break
        type, row, n, first, payload, offsets = batches[at]
        while last > at:
            last -= 1
            saved[batches[last, 0]] -= batches[last, 2]
            end -= batches[last, 2]
        left[kind] -= m
        role, name, window, given_begin, given_end, slots_begin, slots_end, integers = kinds[kind]
        if role == _NOTHING:
            continue
        if role == _LISTS:
            _append_batch(out_batches, used, CALLER, at, n, 0, -1)
            continue
        chosen = np.empty(0, np.int32)
        if m < n:
            chosen = np.flatnonzero(sets[nodes[end : end + n]] == kind).astype(np.int32)
        if role == _SHARE:
            owners, members = _elements(indices[offsets : offsets + n + 1], chosen)
            operand = operands[first].copy()
            if m < n:
                operand = _restricted(operand, members, out_segments, lists, used)
            source, begins = n_windows + window, int(row)
            if slots_begin < slots_end:  # of means; divided in a buffer that the next batch uses again
                _append_batch(out_batches, used, name, 0, n, 0, offsets)
                divided = out_operands[used[_OPERANDS]]
                used[_OPERANDS] += 1
                divided[0], divided[1], divided[2], divided[3], divided[4] = _SLICE, source, row, 1, n
                source, begins = computed[slots_begin], 0
            _add(
                operand, source, begins, _append(lists, used, owners), out_batches, out_operands,
                out_segments, lists, used, n_windows, adds, grouped, seen, stopped,
            )  # fmt: skip
            continue
        read = operands[first : first + slots_end - slots_begin].copy()
        if m < n:
            for slot in range(len(read)):
                read[slot] = _restricted(read[slot], chosen, out_segments, lists, used)
            begin = payload
            payload = used[_INDICES]
            for k in range(integers):
                _append(lists, used, indices[begin + k * n : begin + (k + 1) * n][chosen])
        _append_batch(out_batches, used, name, left[kind], m, payload, -1)
        for place in range(given_begin, given_end):
            source, which = given[place]
            operand = out_operands[used[_OPERANDS]]
            used[_OPERANDS] += 1
            if source == _OPERAND:
                operand[:] = read[which]
                continue
            shown, start = window, np.int64(row)
            if source == _SAVED:
                shown, start = which, saved[type]
            elif source == _GRADIENT:
                shown = n_windows + window
            operand[0], operand[1], operand[2], operand[3], operand[4] = _SLICE, shown, start, 1, m
            if m < n:
                operand[0], operand[2], operand[3] = _GATHER, _append(lists, used, chosen + np.int32(start)), 0
        for slot in range(len(read)):
            target = computed[slots_begin + slot]
            if target >= 0:
                _add(
                    read[slot], target, left[kind], -1, out_batches, out_operands, out_segments, lists, used,
                    n_windows, adds, grouped, seen, stopped,
                )  # fmt: skip
    return (
        out_batches[: used[_BATCHES]],
        out_operands[: used[_OPERANDS]],
        out_segments[: used[_SEGMENTS]],
        lists[: used[_INDICES]],
    )


@compiled(small=True)
def _append_batch(
    out_batches: np.ndarray, used: np.ndarray, name: int, begin: int, n: int, payload: int, offsets: int
) -> None:
    """A batch whose operands are those that are appended next."""
    at = used[_BATCHES]
    out_batches[at, 0], out_batches[at, 1], out_batches[at, 2] = name, begin, n
    out_batches[at, 3], out_batches[at, 4], out_batches[at, 5] = used[_OPERANDS], payload, offsets
    used[_BATCHES] += 1


@compiled(small=True)
def _append(lists: np.ndarray, used: np.ndarray, found: np.ndarray) -> int:
    """Where a list begins that comes after all others."""
    begin = used[_INDICES]
    used[_INDICES] += len(found)
    lists[begin : used[_INDICES]] = found
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
def _restricted(
    operand: np.ndarray, chosen: np.ndarray, out_segments: np.ndarray, lists: np.ndarray, used: np.ndarray
) -> np.ndarray:
    """An operand of which only some elements are read, in the same order."""
    access, window, start, distance, count = operand
    found = operand.copy()
    found[4] = len(chosen)
    if access == _GATHER_MANY:
        number = np.full(count, -1, np.int32)
        for i in range(len(chosen)):
            number[chosen[i]] = i
        found[2] = used[_SEGMENTS]
        for at in range(start, start + distance):
            window, rows, positions, n = out_segments[at]
            new = number[lists[positions : positions + n]]
            kept = np.flatnonzero(new >= 0)
            if len(kept):
                rows = _append(lists, used, lists[rows : rows + n][kept])
                positions = _append(lists, used, new[kept])
                out_segments[used[_SEGMENTS]] = np.array([window, rows, positions, len(kept)], np.int32)
                used[_SEGMENTS] += 1
        found[3] = used[_SEGMENTS] - found[2]
    elif access == _GATHER:
        found[2] = _append(lists, used, lists[start : start + count][chosen])
    elif access != _SHARED:
        found[0], found[3] = _GATHER, 0
        found[2] = _append(lists, used, np.int32(start) + chosen * np.int32(1 if access == _SLICE else distance))
    return found


@compiled(small=True)
def _add(
    operand: np.ndarray, source: int, begin: int, owners: int, out_batches: np.ndarray, out_operands: np.ndarray,
    out_segments: np.ndarray, lists: np.ndarray, used: np.ndarray, n_windows: int, adds: np.ndarray, grouped: bool,
    seen: np.ndarray, stopped: np.ndarray,
) -> None:  # fmt: skip
    """Add rows of the window `source`, from `begin` on, to an operand; in the order of the list `owners` if not -1."""
    access, window, start, distance, count = operand
    if access != _GATHER_MANY and stopped[window]:
        return
    if access < _GATHER and (access != _SHARED or owners < 0):
        _append_addition(
            access, window, start, distance, source, begin, count, owners, out_batches, out_operands, used, n_windows
        )
        return
    if access == _SHARED:
        start = _append(lists, used, np.full(count, start, np.int32))
    first, end = (start, start + distance) if access == _GATHER_MANY else (0, 1)
    for at in range(first, end):
        rows, places, n = start, -1, count
        if access == _GATHER_MANY:
            window, rows, places, n = out_segments[at]
            if stopped[window]:
                continue
        positions = owners if places < 0 else places
        if owners >= 0 and places >= 0:
            positions = _append(lists, used, lists[owners : owners + count][lists[places : places + n]])
        if grouped and adds[window]:
            used[_GROUPED] += 1
            found, offsets, members = group_rows(lists[rows : rows + n], seen, used[_GROUPED])
            if len(found) < n:
                if positions >= 0:
                    members = lists[positions : positions + n][members]
                groups = _append(lists, used, offsets)
                _append(lists, used, members)
                _append(lists, used, found)
                _append_addition(
                    _GATHER_MANY, window, groups, len(found), source, begin, n, -1, out_batches, out_operands, used,
                    n_windows,
                )  # fmt: skip
                continue
        _append_addition(
            _GATHER, window, rows, 0, source, begin, n, positions, out_batches, out_operands, used, n_windows
        )


@compiled(small=True)
def _append_addition(
    access: int, window: int, start: int, distance: int, source: int, begin: int, n: int, positions: int,
    out_batches: np.ndarray, out_operands: np.ndarray, used: np.ndarray, n_windows: int,
) -> None:  # fmt: skip
    _append_batch(out_batches, used, ADDITION - source, begin, n, 0, positions)
    at = used[_OPERANDS]
    out_operands[at, 0], out_operands[at, 1], out_operands[at, 2] = access, n_windows + window, start
    out_operands[at, 3], out_operands[at, 4] = distance, n
    used[_OPERANDS] += 1
