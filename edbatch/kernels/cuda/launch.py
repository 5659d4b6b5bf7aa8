"""The loop that enqueues a mini-batch: the programs that the CPU's interpreter runs, batch after batch, as kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.cpu.list_loops import Listed
from edbatch.kernels.cpu.products import Matrices, Matrix, Sizes
from edbatch.kernels.cuda.calls import Gpu, launch, multiply, multiply_each
from edbatch.kernels.cuda.enqueue import (
    MOVE,
    MOVES,
    add_all,
    each_entry,
    gather,
    groups,
    in_entries,
    lists,
    move,
    read_scattered,
)
from edbatch.kernels.cuda.geometry import THREADS, Grid, lanes_of_lists, over_rows
from edbatch.kernels.program import (
    ADD,
    ALWAYS,
    IF_NOT_ROWS,
    KERNEL,
    LEFT,
    LISTS,
    MULTIPLY,
    OVER_ELEMENTS,
    OVER_LISTS,
    RIGHT,
    TRANSPOSED,
    UNLESS_FOLLOWED,
    UNUSED,
)
from edbatch.kernels.tables import (
    PLACE,
    Integers,
    Memory,
    Programs,
    Rows,
    Slots,
    block_rows,
    computed_rows,
    elements_of,
    fill,
    given_words,
    grouped,
    most_slots,
    operand_rows,
    place_slots,
    placed,
    result_rows,
    window_rows,
)
from edbatch.memory.plan.format import GATHER, GATHER_MANY, SHARED

_PROCESSORS = int(Gpu.PROCESSORS)  # Numba takes plain integers for constants
INDEX = 4  # bytes of an integer in a plan's index buffer


@compiled
def _enqueue_steps(gpu: np.ndarray, programs: Programs, number: int, slots: Slots, integers: Integers, m: int) -> None:
    """Enqueue the steps of a program on m calls; see `interpreter`.

    Args:
        integers: of the calls; in place of the list its address.
    """
    extent = programs.extents[number]
    itemsize = extent["itemsize"]
    steps = programs.steps[extent["steps"] : extent["steps_end"]]
    places, kernels = programs.places[extent["places"] :], programs.kernels[extent["kernels"] :]
    addresses, strides = slots.addresses, slots.strides
    payload, offsets = integers.indices + INDEX * integers.begin, integers.indices + INDEX * integers.offsets
    for at in range(len(steps)):
        step = steps[at]
        code, entries, flags, distance = step["code"], step["entries"], step["flags"], step["distance"]
        x, w, out = step["x"], step["w"], step["out"]  # the first slot, of steps that have none of these
        source, weight = addresses[x] + itemsize * step["x_column"], addresses[w] + itemsize * step["w_column"]
        target = addresses[out] + itemsize * step["out_column"]
        if code == MULTIPLY:
            multiply(
                gpu,
                itemsize,
                Sizes(m, step["n"], step["k"]),
                Matrix(source, strides[x] // itemsize, 0),
                Matrix(weight, distance, flags & TRANSPOSED),
                Matrix(target, strides[out] // itemsize, 0),
                flags & ADD,
            )
        elif code == KERNEL:
            values = np.empty(1 + given_words(step), np.int64)
            values[0] = m
            fill(values[1:], step, places, slots, itemsize, payload, integers.stride, offsets)
            items, lanes = integers.elements if step["over"] == OVER_ELEMENTS else m, step["lanes"]
            if step["over"] == OVER_LISTS:
                of_each = entries * (integers.elements // m)
                lanes = lanes_of_lists(items * step["groups"], of_each, gpu[_PROCESSORS])
            if lanes > 0:
                groups(gpu, kernels[step["kernel"]], items * step["groups"], lanes, values)
            else:
                each_entry(gpu, kernels[step["kernel"]], items, entries, values)
        else:
            sizes, turned = Sizes(step["m"], step["n"], step["k"]), flags & TRANSPOSED
            for product in range(step["products"]):
                x_at, w_at = source + product * itemsize * step["x_step"], weight + product * itemsize * step["w_step"]
                left = Matrix(x_at, distance if flags & LEFT else sizes.k, turned if flags & LEFT else 0)
                right = Matrix(w_at, distance if flags & RIGHT else sizes.n, turned if flags & RIGHT else 0)
                out_at = target + product * itemsize * sizes.m * sizes.n
                multiply_each(
                    gpu, itemsize, m, sizes, Matrices(strides[x], left), Matrices(strides[w], right),
                    Matrices(strides[out], Matrix(out_at, sizes.n, 0)),
                )  # fmt: skip


class Sources(NamedTuple):
    """What the operands of a plan's batches are found in.

    Attributes:
        operands, segments: of the plan.
        host, indices: its index buffer on the host, and its address on the device.
        memory: where values are.
        moves: room for those of any batch.
    """

    operands: np.ndarray
    segments: np.ndarray
    host: np.ndarray
    indices: int
    memory: Memory
    moves: np.ndarray


@compiled
def _gather_segments(
    gpu: np.ndarray, count: int, operand: np.void, sources: Sources, begin: int, end: int, target: Rows
) -> int:
    """Note the moves of rows `begin` to `end` of an operand of several windows; positions in a segment ascend.

    Rows whose entries do not lie side by side have a kernel of their own, which is enqueued at once.

    Args:
        count: how many moves there are already.
    """
    host, indices = sources.host, sources.indices
    for at in range(operand["first"], operand["first"] + operand["segments"]):
        segment = sources.segments[at]
        rows, positions, n = segment["rows"], segment["positions"], segment["n"]
        low, high = 0, n
        if begin > 0 or end < host[positions + n - 1] + 1:
            low, high = np.searchsorted(host[positions : positions + n], np.array([begin, end]))
        source = window_rows(segment["window"], sources.memory)
        listed, to = indices + INDEX * (rows + low), indices + INDEX * (positions + low)
        address = target.address - begin * target.stride
        if sources.memory.windows[segment["window"]]["scattered"] >= 0:
            there, here = Listed(source, listed), Listed(Rows(address, target.stride, target.width), to)
            read_scattered(gpu, sources.memory, segment["window"], high - low, there, here)
            continue
        shown = Rows(source.address, source.stride, target.width)
        count = move(sources.moves, count, shown, listed, to, high - low, address, target.stride)
    return count


@compiled
def _compute_lists(gpu: np.ndarray, task: np.void, one: np.void, sources: Sources, out: Rows, scratch: int) -> None:
    """A batch of a kernel of lists; elements that cannot be read where they are are first put side by side.

    All other operands can be: they are gradients and results of the lists.
    """
    some, first, memory = task["operands"], one["operand"], sources.memory
    values = np.zeros(3 + 3 * (some + 1) + 1, np.int64)
    values[0], values[1] = one["n"], out.width // task["itemsize"]
    values[2] = sources.indices + INDEX * one["offsets"]
    for at in range(some):
        operand, place = sources.operands[first + at], 3 + 3 * at
        copied = Rows(scratch, out.width, out.width)
        listed = sources.indices + INDEX * operand["first"] if operand["access"] == GATHER else 0
        if operand["access"] == GATHER_MANY:
            gather(gpu, sources.moves, _gather_segments(gpu, 0, operand, sources, 0, operand["n"], copied))
            placed(values, place, copied, 0)
        elif memory.windows[operand["window"]]["scattered"] >= 0:
            there = Listed(operand_rows(operand, 0, memory), listed)
            read_scattered(gpu, memory, operand["window"], operand["n"], there, Listed(copied, 0))
            placed(values, place, copied, 0)
        else:
            placed(values, place, operand_rows(operand, 0, memory), listed)
    values[3 + 3 * some], values[4 + 3 * some] = out.address, out.stride
    lists(gpu, task["kernel"], task["each"], sources.operands[first]["n"], values)


@compiled
def _add_to_operand(gpu: np.ndarray, task: np.void, one: np.void, sources: Sources, rows: Rows) -> None:
    """See `list_loops`; rows that occur several times are given as groups.

    Those are written as an operand of several windows: `first` is where in the index buffer offsets, members and rows
    of the groups follow one another, `segments` the number of groups.
    """
    operand, n, positions = sources.operands[one["operand"]], one["n"], one["offsets"]
    if sources.memory.windows[operand["window"]]["scattered"] >= 0:
        _add_to_scattered(gpu, operand, one, sources, rows)
        return
    first = sources.indices + INDEX * operand["first"]
    source = in_entries(rows, task["itemsize"])
    if operand["access"] == GATHER_MANY:
        target = in_entries(window_rows(operand["window"], sources.memory), task["itemsize"])
        some = operand["segments"]
        members = first + INDEX * (some + 1)
        groups = members + INDEX * n
        values = np.array(
            [some, first, members, groups, source.address, source.stride, target.address, target.stride, source.width],
            np.int64,
        )
        x, y = over_rows(some, source.width)
        launch(gpu, task["to_groups"], Grid(x, y, 1, THREADS, 1), values, len(values))
        return
    target = in_entries(operand_rows(operand, 0, sources.memory), task["itemsize"])
    if operand["access"] == SHARED:
        add_all(gpu, task["to_one"], n, source.address, source.stride, target.address, source.width)
        return
    listed = 0 if positions < 0 else sources.indices + INDEX * positions
    to = first if operand["access"] == GATHER else 0
    values = np.array(
        [n, source.address, source.stride, listed, to, target.address, target.stride, source.width], np.int64
    )
    x, y = over_rows(n, source.width)
    launch(gpu, task["kernel"], Grid(x, y, 1, THREADS, 1), values, len(values))


@compiled
def _add_to_scattered(gpu: np.ndarray, operand: np.void, one: np.void, sources: Sources, rows: Rows) -> None:
    """The same to rows whose entries do not lie side by side; of these none is `SHARED`, see `backward_out`."""
    memory, access, n = sources.memory, operand["access"], one["n"]
    of = memory.scattered[memory.windows[operand["window"]]["scattered"]]
    first, axes = sources.indices + INDEX * operand["first"], of["axes"]
    if access == GATHER_MANY:
        some = operand["segments"]
        members = first + INDEX * (some + 1)
        values = np.empty(1 + of["lists_end"] - of["lists_given"], np.int64)
        values[1:] = memory.words[of["lists_given"] : of["lists_end"]]
        values[0], values[1 + axes] = some, first
        placed(values, 2 + axes, rows, members)
        placed(values, 2 + axes + PLACE, window_rows(operand["window"], memory), members + INDEX * n)
        groups(gpu, of["add_lists"], some * of["entries"], 1, values)
        return
    values = np.empty(1 + of["add_end"] - of["add_given"], np.int64)
    values[1:] = memory.words[of["add_given"] : of["add_end"]]
    values[0] = n
    placed(values, 1 + axes, rows, 0 if one["offsets"] < 0 else sources.indices + INDEX * one["offsets"])
    placed(values, 1 + axes + PLACE, operand_rows(operand, 0, memory), first if access == GATHER else 0)
    each_entry(gpu, of["add"], n, of["entries"], values)


@compiled
def _place_arguments(
    gpu: np.ndarray, programs: Programs, number: int, slots: Slots, one: np.void, sources: Sources, begin: int, m: int
) -> None:
    """Have the arguments of m calls of a program, from number `begin` of a batch on, where its slots say.

    A batch that reads lists is one block.
    """
    extent, count = programs.extents[number], 0
    for at in range(extent["arguments_end"] - extent["arguments"]):
        argument = programs.arguments[extent["arguments"] + at]
        slot, moved = argument["slot"], argument["move"]
        if moved == UNUSED:
            continue
        operand, width = sources.operands[one["operand"] + at], extent["itemsize"] * argument["entries"]
        access, target = operand["access"], Rows(slots.addresses[slot], slots.strides[slot], width)
        rows = operand["n"] if argument["elements"] else m
        if access == GATHER_MANY:
            count = _gather_segments(gpu, count, operand, sources, begin, begin + rows, target)
            continue
        source = operand_rows(operand, begin, sources.memory)
        listed = sources.indices + INDEX * (operand["first"] + begin) if access == GATHER else 0
        if access == GATHER:
            in_place = moved == UNLESS_FOLLOWED
        else:
            in_place = moved != ALWAYS and (moved != IF_NOT_ROWS or source.stride >= width)
        if sources.memory.windows[operand["window"]]["scattered"] >= 0:
            read_scattered(gpu, sources.memory, operand["window"], rows, Listed(source, listed), Listed(target, 0))
        elif in_place:
            slots.addresses[slot], slots.strides[slot], slots.lists[slot] = source.address, source.stride, listed
        else:
            shown = Rows(source.address, source.stride, width)
            count = move(sources.moves, count, shown, listed, 0, rows, target.address, target.stride)
    gather(gpu, sources.moves, count)


@compiled
def _enqueue_program(
    gpu: np.ndarray, programs: Programs, number: int, slots: Slots, one: np.void, sources: Sources, scratch: int
) -> None:
    """Enqueue a batch of a program."""
    kind, n = one["type"], one["n"]
    out = result_rows(kind, one["row"], sources.memory)
    result = computed_rows(sources.memory.kept[kind], n, out)
    block = block_rows(n, programs.extents[number]["calls"])
    elements = elements_of(one, programs.extents[number], sources.operands)
    for begin in range(0, n, block):
        m = min(block, n - begin)
        here = Rows(result.address + begin * result.stride, result.stride, result.width)
        place_slots(programs, number, slots, scratch, here, m, elements)
        _place_arguments(gpu, programs, number, slots, one, sources, begin, m)
        integers = Integers(sources.indices, one["integers"] + begin, n, one["offsets"] + begin, elements)
        _enqueue_steps(gpu, programs, number, slots, integers, m)
    if result.address != out.address:
        shown = Rows(result.address, result.stride, out.width)
        move(sources.moves, 0, shown, 0, 0, n, out.address, out.stride)
        gather(gpu, sources.moves, 1)


@compiled
def enqueue_batches(
    gpu: np.ndarray, first: int, stop: int, host: np.ndarray, indices: int, scratch: int, *tables: np.ndarray
) -> None:
    """Enqueue the batches of a plan from `first` on.

    Args:
        gpu: see `calls.Gpu`.
        host, indices: the plan's index buffer on the host, and its address on the device.

    The others are as of `interpreter.run_batches`, with addresses on the device.
    """
    plan, memory, programs = grouped(tables)
    moves = np.empty((len(plan.segments) + len(plan.operands) + MOVES, MOVE), np.int64)
    sources = Sources(plan.operands, plan.segments, host, indices, memory, moves)
    most = most_slots(programs.extents)
    slots = Slots(np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64))
    for batch in range(first, stop):
        one = plan.batches[batch]
        task = programs.tasks[one["type"]]
        program = task["program"]
        if program >= 0:
            _enqueue_program(gpu, programs, program, slots, one, sources, scratch)
            continue
        rows = result_rows(one["type"], one["row"], memory)
        if program == LISTS:
            _compute_lists(gpu, task, one, sources, rows, scratch)
        else:
            _add_to_operand(gpu, task, one, sources, rows)
