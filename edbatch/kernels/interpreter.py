"""The interpreter of plans and programs, written once: batch after batch, without coming back to Python.

What a device does with a step - a call now on a CPU, a launch on a GPU - it is given as compiled functions: an
`Emitter`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.cpu.pointers import call_python, int64_address
from edbatch.kernels.program import (
    ALWAYS,
    IF_NOT_ROWS,
    KERNEL,
    LEFT,
    RIGHT,
    TRANSPOSED,
    UNLESS_FOLLOWED,
    UNUSED,
)
from edbatch.kernels.tables import (
    PLACE,
    Integers,
    Listed,
    Matrices,
    Matrix,
    Memory,
    Programs,
    Rows,
    Sizes,
    Slots,
    Sources,
    adding,
    at_index,
    fill,
    first_from,
    given_from,
    longest,
    memory_in,
    most_slots,
    operand_rows,
    place_slots,
    placed,
    plan_in,
    programs_in,
    result_rows,
    saved_rows,
    window_rows,
)
from edbatch.memory.plan.format import GATHER, GATHER_MANY, SHARED

MOVES, MOVE = 16, 8  # that a device does at once, and integers of one that is noted


class Emitter(NamedTuple):
    """What a device does, as compiled functions; the first argument of each is the device's own table.

    Attributes:
        multiply: (device, itemsize, sizes, x, w, out, add): out = x @ w [+ out].
        multiply_each: (device, itemsize, calls, sizes, a, b, out): a product for each call.
        kernel: (device, kernel, step, given, integers): a generated kernel; `given` begins with the number of calls.
        each_entry: (device, kernel, n, entries, given): a kernel of n rows without reductions; `given` begins with n.
        move: (device, moves, count, source, target, n) -> count: copy n rows, now or together with others; rows are
            `Listed`, and of the target's width.
        flush: (device, moves, count): do the moves that were noted.
        add_groups: (device, task, one, sources, rows): add rows, the second operand, to the first, of which each gets
            several.
        notes: whether moves are noted.
    """

    multiply: Callable
    multiply_each: Callable
    kernel: Callable
    each_entry: Callable
    move: Callable
    flush: Callable
    add_groups: Callable
    notes: bool


def interpreter(emitter: Emitter) -> Callable[..., None]:
    """What runs the batches of a plan on a device, see `run_batches` below."""
    read_scattered = _scattered_reader(emitter)
    gather_segments = _gatherer(emitter, read_scattered)
    run_program = _program_runner(emitter, gather_segments, read_scattered)
    add, notes = _adder(emitter), emitter.notes

    @compiled(small=True, error_model="numpy")
    def run_batches(
        device: np.ndarray, first: int, stop: int, indices: int, integers: int, scratch: int, plan_tables: np.ndarray,
        memory_tables: np.ndarray, program_tables: np.ndarray,
    ) -> None:  # fmt: skip
        """Run the batches of a plan from `first` on.

        Args:
            device: its own table.
            stop: the batch to stop before.
            indices: the address of the plan's index buffer on the device.
            integers: the address of the integers that batches read there, as the plan lists them.
            scratch: address of a buffer that has room for a block of any program, and for the elements of any lists.
            plan_tables, memory_tables, program_tables: directories of the tables of a `Plan`, a `Memory`, `Programs`.
        """
        plan, memory, programs = plan_in(plan_tables), memory_in(memory_tables), programs_in(program_tables)
        room = len(plan.segments) + len(plan.operands) + MOVES if notes else 0
        moves = np.empty((room, MOVE), np.int64)
        sources = Sources(plan.operands, plan.segments, plan.indices, indices, integers, memory, moves)
        most = most_slots(programs.extents)
        slots = Slots(np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64))
        for batch in range(first, stop):
            one = plan.batches[batch]
            task = programs.tasks[one["type"]]
            program = task["program"]
            if program >= 0:
                if not run_program(device, programs, program, slots, one, sources, scratch):
                    return  # with an exception
            else:
                add(device, task, one, sources, operand_rows(plan.operands[one["operand"] + 1], 0, memory))

    return run_batches


def _adder(emitter: Emitter) -> Callable[..., None]:
    each_entry, add_groups = emitter.each_entry, emitter.add_groups

    @compiled(small=True, error_model="numpy")
    def add(device: np.ndarray, task: np.void, one: np.void, sources: Sources, rows: Rows) -> None:
        """Add rows, in the order of the list of them if there is one, to the rows of a batch's first operand."""
        operand, indices, memory = sources.operands[one["operand"]], sources.indices, sources.memory
        access, n = operand["access"], int(one["n"])
        if access in (SHARED, GATHER_MANY):
            add_groups(device, task, one, sources, rows)
            return
        source = Listed(rows, at_index(indices, one["offsets"]))
        target = Listed(
            operand_rows(operand, 0, memory), at_index(indices, operand["first"]) if access == GATHER else 0
        )
        kernel, entries, given = adding(task, memory, operand["window"], n, source, target, 0)
        each_entry(device, kernel, n, entries, given)

    return add


def _scattered_reader(emitter: Emitter) -> Callable[..., None]:
    each_entry = emitter.each_entry

    @compiled(small=True, error_model="numpy")
    def read_scattered(device: np.ndarray, memory: Memory, window: int, n: int, there: Listed, here: Listed) -> None:
        """Copy n rows of a window whose entries do not lie side by side to rows where they do."""
        of = memory.scattered[memory.windows[window]["scattered"]]
        given, axes = given_from(memory, of["read_given"], of["read_end"]), of["axes"]
        given[0] = n
        placed(given, 1 + axes, there)
        placed(given, 1 + axes + PLACE, here)
        each_entry(device, of["read"], n, of["entries"], given)

    return read_scattered


def _program_runner(emitter: Emitter, gather_segments: Callable, read_scattered: Callable) -> Callable[..., bool]:
    move, flush = emitter.move, emitter.flush
    run_steps = _step_runner(emitter)

    @compiled(small=True, error_model="numpy", inline="always")
    def place_arguments(
        device: np.ndarray, programs: Programs, number: int, slots: Slots, one: np.void, sources: Sources, begin: int,
        m: int,
    ) -> None:  # fmt: skip
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
                count = gather_segments(device, count, operand, sources, begin, begin + rows, target)
                continue
            listed = at_index(sources.indices, operand["first"] + begin) if access == GATHER else 0
            source = Listed(operand_rows(operand, begin, sources.memory), listed)
            in_place = moved == UNLESS_FOLLOWED
            if access != GATHER:
                in_place = moved != ALWAYS and (moved != IF_NOT_ROWS or source.rows.stride >= width)
            if sources.memory.windows[operand["window"]]["scattered"] >= 0:
                if source.rows.stride == 0 and access != GATHER and in_place:  # one row for all calls
                    slots.strides[slot], rows = 0, 1
                read_scattered(device, sources.memory, operand["window"], rows, source, Listed(target, 0))
            elif in_place:
                slots.addresses[slot], slots.strides[slot] = source.rows.address, source.rows.stride
                slots.lists[slot] = listed
            else:
                count = move(device, sources.moves, count, source, Listed(target, 0), rows)
        flush(device, sources.moves, count)

    @compiled(small=True, error_model="numpy", inline="always")
    def run_program(
        device: np.ndarray, programs: Programs, number: int, slots: Slots, one: np.void, sources: Sources, scratch: int
    ) -> bool:
        kind, n = one["type"], one["n"]
        result = result_rows(kind, one["row"], sources.memory)
        saved = saved_rows(sources.memory.saving[kind], n)
        extent, elements = programs.extents[number], 0
        block = -(-n // -(-n // extent["calls"]))  # in parts of equal size
        if extent["lists"] >= 0:
            elements = sources.operands[one["operand"] + extent["lists"]]["n"]
        for begin in range(0, n, block):
            m = min(block, n - begin)
            here = Rows(result.address + begin * result.stride, result.stride, result.width)
            kept = Rows(saved.address + begin * saved.stride, saved.stride, saved.width)
            place_slots(programs, number, slots, scratch, here, kept, m, elements)
            place_arguments(device, programs, number, slots, one, sources, begin, m)
            offsets = one["offsets"] + begin
            most = longest(sources.host, offsets, m) if elements > 0 else 0
            payload, lists = at_index(sources.integers, one["integers"] + begin), at_index(sources.indices, offsets)
            integers = Integers(payload, n, lists, elements, most)
            if not run_steps(device, programs, number, slots, integers, m):
                return False
        return True

    return run_program


def _step_runner(emitter: Emitter) -> Callable[..., bool]:
    """The loop that runs a program's steps on a block of calls, and returns whether none has raised an exception."""
    multiply, multiply_each, kernel = emitter.multiply, emitter.multiply_each, emitter.kernel

    @compiled(small=True, error_model="numpy", inline="always")
    def run_steps(
        device: np.ndarray, programs: Programs, number: int, slots: Slots, integers: Integers, m: int
    ) -> bool:
        extent = programs.extents[number]
        itemsize = extent["itemsize"]
        steps = programs.steps[extent["steps"] : extent["steps_end"]]
        places, kernels = programs.places[extent["places"] :], programs.kernels[extent["kernels"] :]
        addresses, strides = slots.addresses, slots.strides
        for at in range(len(steps)):
            step = steps[at]
            code, flags, distance = step["code"], step["flags"], step["distance"]
            if code >= KERNEL:
                words = step["axes"] + PLACE * step["places"] + step["words"] + step["integers"]
                given = np.empty(1 + words, np.int64)
                given[0] = m
                fill(given[1:], step, places, slots, itemsize, integers.first, integers.stride, integers.offsets)
                if code == KERNEL:
                    kernel(device, kernels[step["kernel"]], step, given, integers)
                    continue
                returned = call_python(given[1 + PLACE * step["places"]], int64_address(given))
                given[0] = 0  # or it would be freed before the call
                if not returned:
                    return False
                continue
            x, w, out = step["x"], step["w"], step["out"]
            source, weight = addresses[x] + itemsize * step["x_column"], addresses[w] + itemsize * step["w_column"]
            target, turned = addresses[out] + itemsize * step["out_column"], flags & TRANSPOSED
            sizes = Sizes(step["m"], step["n"], step["k"])
            is_one = strides[w] == 0 and strides[x] > 0 and step["products"] == 1 and not flags & LEFT
            if is_one and sizes.m <= m:
                # All calls have one right factor: their rows are multiplied at once, or number by number.
                follows = strides[x] == itemsize * sizes.m * sizes.k and strides[out] == itemsize * sizes.m * sizes.n
                times = 1 if follows else sizes.m
                for row in range(times):
                    multiply(
                        device,
                        itemsize,
                        Sizes(m * sizes.m // times, sizes.n, sizes.k),
                        Matrix(source + row * itemsize * sizes.k, sizes.k if follows else strides[x] // itemsize, 0),
                        Matrix(weight, distance if flags & RIGHT else sizes.n, turned),
                        Matrix(target + row * itemsize * sizes.n, sizes.n if follows else strides[out] // itemsize, 0),
                        0,
                    )
            else:
                for product in range(step["products"]):
                    x_at = source + product * itemsize * step["x_step"]
                    w_at = weight + product * itemsize * step["w_step"]
                    left = Matrix(x_at, distance if flags & LEFT else sizes.k, turned if flags & LEFT else 0)
                    right = Matrix(w_at, distance if flags & RIGHT else sizes.n, turned if flags & RIGHT else 0)
                    out_at = target + product * itemsize * sizes.m * sizes.n
                    multiply_each(
                        device, itemsize, m, sizes, Matrices(strides[x], left), Matrices(strides[w], right),
                        Matrices(strides[out], Matrix(out_at, sizes.n, 0)),
                    )  # fmt: skip
        return True

    return run_steps


def _gatherer(emitter: Emitter, read_scattered: Callable) -> Callable[..., int]:
    """What has rows of an operand that comes from several windows put side by side."""
    move = emitter.move

    @compiled(small=True, error_model="numpy")
    def gather_segments(
        device: np.ndarray, count: int, operand: np.void, sources: Sources, begin: int, end: int, target: Rows
    ) -> int:
        """Rows `begin` to `end`; positions in a segment ascend.

        Rows whose entries do not lie side by side have a kernel of their own, which runs at once.

        Args:
            count: how many moves are noted already.
        """
        host, to = sources.host, Rows(target.address - begin * target.stride, target.stride, target.width)
        for at in range(operand["first"], operand["first"] + operand["segments"]):
            segment = sources.segments[at]
            rows, positions, n = segment["rows"], segment["positions"], segment["n"]
            low, high = 0, n
            if begin > 0 or end < host[positions + n - 1] + 1:
                low = first_from(host, positions, n, begin)
                high = first_from(host, positions, n, end)
            there = Listed(window_rows(segment["window"], sources.memory), at_index(sources.indices, rows + low))
            here = Listed(to, at_index(sources.indices, positions + low))
            if sources.memory.windows[segment["window"]]["scattered"] >= 0:
                read_scattered(device, sources.memory, segment["window"], high - low, there, here)
            else:
                count = move(device, sources.moves, count, there, here, high - low)
        return count

    return gather_segments
