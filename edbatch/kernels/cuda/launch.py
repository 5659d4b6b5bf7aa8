"""The loop that enqueues a mini-batch: the programs that the CPU's interpreter runs, batch after batch, as kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.cpu.products import Matrices, Matrix, Sizes
from edbatch.kernels.cuda.calls import Gpu, launch, multiply, multiply_each
from edbatch.kernels.cuda.enqueue import (
    MOVE,
    MOVES,
    add_all,
    by_groups,
    each_entry,
    gather,
    groups,
    in_entries,
    lists,
    move,
)
from edbatch.kernels.cuda.geometry import THREADS, lanes_of_lists, over_rows
from edbatch.kernels.program import (
    ADD,
    ADD_ROWS,
    ALWAYS,
    CALL,
    COPY,
    IF_NOT_ROWS,
    KERNEL,
    LEFT,
    LOOKUP,
    MULTIPLY,
    MULTIPLY_EACH,
    NONE,
    OVER_ELEMENTS,
    OVER_LISTS,
    RIGHT,
    TRANSPOSED,
    UNLESS_FOLLOWED,
    UNUSED,
)
from edbatch.kernels.tables import (
    Integers,
    Memory,
    Programs,
    Rows,
    Slots,
    all_contiguous,
    block_rows,
    computed_rows,
    elements_of,
    fill,
    given_words,
    grouped,
    most_slots,
    operand_rows,
    place_slots,
    result_rows,
    window_rows,
)
from edbatch.memory.plan.format import GATHER, GATHER_MANY, SHARED

_PROCESSORS = int(Gpu.PROCESSORS)  # Numba takes plain integers for constants
INDEX = 4  # bytes of an integer in a plan's index buffer


@compiled
def enqueue_steps(
    gpu: np.ndarray,
    programs: Programs,
    number: int,
    first: int,
    slots: Slots,
    integers: Integers,
    m: int,
) -> int:
    """Enqueue steps of a program on m calls, up to the first that is left to the caller; see `interpreter.run_steps`.

    Args:
        integers: of the calls; in place of the list its address.
    """
    extent = programs.extents[number]
    itemsize = extent["itemsize"]
    steps = programs.steps[extent["steps"] : extent["steps_end"]]
    places, kernels = programs.places[extent["places"] :], programs.kernels[extent["kernels"] :]
    addresses, strides = slots.addresses, slots.strides
    payload, offsets = integers.indices + INDEX * integers.begin, integers.indices + INDEX * integers.offsets
    moves = np.empty((MOVES, MOVE), np.int64)
    for at in range(first, len(steps)):
        step = steps[at]
        code, entries, flags, distance = step["code"], step["entries"], step["flags"], step["distance"]
        x, w, out = step["x"], step["w"], step["out"]  # the first slot, of steps that have none of these
        source, weight = addresses[x] + itemsize * step["x_column"], addresses[w] + itemsize * step["w_column"]
        target, width = addresses[out] + itemsize * step["out_column"], itemsize * entries
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
        elif code == CALL:
            some, integer = step["places"], step["integer"]
            values = np.empty(2 + 3 * some, np.int64)
            values[0], values[1] = m, payload + INDEX * integer * integers.stride if integer >= 0 else 0
            for place in range(some):
                position = places[step["place"] + place]
                slot = position["slot"]
                values[2 + 3 * place] = addresses[slot] + itemsize * position["column"]
                values[3 + 3 * place] = strides[slot] // itemsize
                values[4 + 3 * place] = slots.lists[slot]
            by_groups(gpu, kernels[step["kernel"]], m * step["groups"], step["lanes"], values)
        elif code == COPY:
            move(moves, 0, Rows(source, strides[x], width), 0, 0, m, target, strides[out])
            gather(gpu, moves, 1)
        elif code == LOOKUP:
            integer = step["integer"]
            if integer >= 0:
                listed = payload + INDEX * integer * integers.stride
                move(moves, 0, Rows(weight, width, width), listed, 0, m, target, strides[out])
            else:
                move(moves, 0, Rows(weight + width * (-1 - integer), 0, width), 0, 0, m, target, strides[out])
            gather(gpu, moves, 1)
        elif code == MULTIPLY_EACH:
            sizes, turned = Sizes(step["m"], step["n"], step["k"]), flags & TRANSPOSED
            left = Matrix(source, distance if flags & LEFT else sizes.k, turned if flags & LEFT else 0)
            right = Matrix(weight, distance if flags & RIGHT else sizes.n, turned if flags & RIGHT else 0)
            multiply_each(
                gpu, itemsize, m, sizes, Matrices(strides[x], left), Matrices(strides[w], right),
                Matrices(strides[out], Matrix(target, sizes.n, 0)),
            )  # fmt: skip
        else:
            return at
    return len(steps)


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
def _gather_segments(count: int, operand: np.void, sources: Sources, begin: int, end: int, target: Rows) -> int:
    """Note the moves of rows `begin` to `end` of an operand of several windows; positions in a segment ascend.

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
        shown = Rows(source.address, source.stride, target.width)
        count = move(
            sources.moves, count, shown, indices + INDEX * (rows + low), indices + INDEX * (positions + low),
            high - low, target.address - begin * target.stride, target.stride,
        )  # fmt: skip
    return count


@compiled
def _compute_lists(gpu: np.ndarray, task: np.void, one: np.void, sources: Sources, out: Rows, scratch: int) -> None:
    """A batch of a kernel of lists; what comes from several windows is first put side by side: only the elements do."""
    some, first = task["operands"], one["operand"]
    values = np.zeros(3 + 3 * (some + 1) + 1, np.int64)
    values[0], values[1] = one["n"], out.width // task["itemsize"]
    values[2] = sources.indices + INDEX * one["offsets"]
    for at in range(some):
        operand, place = sources.operands[first + at], 3 + 3 * at
        if operand["access"] == GATHER_MANY:
            source = Rows(scratch, out.width, out.width)
            gather(gpu, sources.moves, _gather_segments(0, operand, sources, 0, operand["n"], source))
        else:
            source = operand_rows(operand, 0, sources.memory)
            if operand["access"] == GATHER:
                values[place + 2] = sources.indices + INDEX * operand["first"]
        values[place], values[place + 1] = source.address, source.stride
    values[3 + 3 * some], values[4 + 3 * some] = out.address, out.stride
    lists(gpu, task["kernel"], task["each"], sources.operands[first]["n"], values)


@compiled
def _add_to_operand(gpu: np.ndarray, task: np.void, one: np.void, sources: Sources, rows: Rows) -> None:
    """See `interpreter`; rows that occur several times are given as groups.

    Those are written as an operand of several windows: `first` is where in the index buffer offsets, members and rows
    of the groups follow one another, `segments` the number of groups.
    """
    operand, n, positions = sources.operands[one["operand"]], one["n"], one["offsets"]
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
        launch(gpu, task["to_groups"], x, y, 1, THREADS, 1, values, len(values))
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
    launch(gpu, task["kernel"], x, y, 1, THREADS, 1, values, len(values))


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
            count = _gather_segments(count, operand, sources, begin, begin + rows, target)
            continue
        source = operand_rows(operand, begin, sources.memory)
        listed = sources.indices + INDEX * (operand["first"] + begin) if access == GATHER else 0
        if access == GATHER:
            in_place = moved == UNLESS_FOLLOWED
        else:
            in_place = moved != ALWAYS and (moved != IF_NOT_ROWS or source.stride >= width)
        if in_place:
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
        enqueue_steps(gpu, programs, number, 0, slots, integers, m)
    if result.address != out.address:
        shown = Rows(result.address, result.stride, out.width)
        move(sources.moves, 0, shown, 0, 0, n, out.address, out.stride)
        gather(gpu, sources.moves, 1)


@compiled
def enqueue_batches(
    gpu: np.ndarray, first: int, stop: int, host: np.ndarray, indices: int, scratch: int, *tables: np.ndarray
) -> int:
    """Enqueue the batches of a plan from `first` on, up to the first that has no program, or cannot be run here.

    Args:
        gpu: see `calls.Gpu`.
        host, indices: the plan's index buffer on the host, and its address on the device.

    The others, and what is returned, are as of `interpreter.run_batches`, with addresses on the device.
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
        operands = plan.operands[one["operand"] :]
        if program == NONE:
            return batch
        if program == ADD_ROWS:  # perhaps to groups, which have no segments
            if memory.windows[operands[0]["window"]]["width"] == 0:
                return batch
            _add_to_operand(gpu, task, one, sources, result_rows(one["type"], one["row"], memory))
            continue
        some = task["operands"]
        if program >= 0:
            some = programs.extents[program]["arguments_end"] - programs.extents[program]["arguments"]
        if not all_contiguous(operands[:some], plan.segments, memory.windows):
            return batch
        if program >= 0:
            _enqueue_program(gpu, programs, program, slots, one, sources, scratch)
        else:
            _compute_lists(gpu, task, one, sources, result_rows(one["type"], one["row"], memory), scratch)
    return stop
