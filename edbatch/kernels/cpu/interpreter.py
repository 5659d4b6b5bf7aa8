"""The interpreter of compiled programs: batch after batch without coming back to Python."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.cpu.gather import copy_rows, gather_rows, gather_rows_to
from edbatch.kernels.cpu.list_loops import Listed, Sources, add_to_operand, at_index, compute_lists, read_scattered
from edbatch.kernels.cpu.pointers import call_kernel, int64_address
from edbatch.kernels.cpu.products import Gemm, Matrices, Matrix, Sizes, multiply, multiply_each
from edbatch.kernels.program import (
    ADD,
    ALWAYS,
    IF_NOT_ROWS,
    KERNEL,
    LEFT,
    LISTS,
    MULTIPLY,
    OVER_LISTS,
    RIGHT,
    TRANSPOSED,
    UNLESS_FOLLOWED,
    UNUSED,
)
from edbatch.kernels.tables import (
    Integers,
    Programs,
    Rows,
    Slots,
    any_scattered,
    block_rows,
    computed_rows,
    elements_of,
    fill,
    given_words,
    grouped,
    longest,
    most_slots,
    operand_rows,
    place_slots,
    result_rows,
    window_rows,
)
from edbatch.memory.plan.format import GATHER, GATHER_MANY


@compiled(small=True, error_model="numpy")
def _run_steps(programs: Programs, number: int, slots: Slots, integers: Integers, m: int, gemms: np.ndarray) -> None:
    """Run the steps of a program on a block of m calls.

    Args:
        number: of the program.
        slots: where its values are in this block.
        integers: of the block.
        gemms: see `products.gemms`.
    """
    extent = programs.extents[number]
    itemsize = extent["itemsize"]
    steps = programs.steps[extent["steps"] : extent["steps_end"]]
    places, kernels = programs.places[extent["places"] :], programs.kernels[extent["kernels"] :]
    addresses, strides = slots.addresses, slots.strides
    gemm = Gemm(gemms[itemsize // 8], itemsize)
    for at in range(len(steps)):
        step = steps[at]
        code, entries, flags, distance = step["code"], step["entries"], step["flags"], step["distance"]
        x, w, out = step["x"], step["w"], step["out"]  # the first slot, of steps that have none of these
        source, weight = addresses[x] + itemsize * step["x_column"], addresses[w] + itemsize * step["w_column"]
        target = addresses[out] + itemsize * step["out_column"]
        if code == MULTIPLY:
            multiply(
                gemm,
                Sizes(m, step["n"], step["k"]),
                Matrix(source, strides[x] // itemsize, 0),
                Matrix(weight, distance, flags & TRANSPOSED),
                Matrix(target, strides[out] // itemsize, 0),
                flags & ADD,
            )
        elif code == KERNEL:
            given = np.empty(given_words(step), np.int64)
            most = longest(integers, m) if step["over"] == OVER_LISTS and step["scratch"] > 0 else 1
            kept = np.empty(step["scratch"] * entries * most + 1, np.float64)
            fill(
                given, step, places, slots, itemsize, at_index(integers.indices, integers.begin), integers.stride,
                at_index(integers.indices, integers.offsets),
            )  # fmt: skip
            given[-1] = int64_address(kept)
            call_kernel(kernels[step["kernel"]], m, int64_address(given))
            given[0], kept[0] = 0, 0  # or they would be freed before the call: Numba does not know that it uses them
        else:
            sizes, turned = Sizes(step["m"], step["n"], step["k"]), flags & TRANSPOSED
            for product in range(step["products"]):
                x_at, w_at = source + product * itemsize * step["x_step"], weight + product * itemsize * step["w_step"]
                left = Matrix(x_at, distance if flags & LEFT else sizes.k, turned if flags & LEFT else 0)
                right = Matrix(w_at, distance if flags & RIGHT else sizes.n, turned if flags & RIGHT else 0)
                out_at = target + product * itemsize * sizes.m * sizes.n
                multiply_each(
                    gemm, m, sizes, Matrices(strides[x], left), Matrices(strides[w], right),
                    Matrices(strides[out], Matrix(out_at, sizes.n, 0)),
                )  # fmt: skip


@compiled(small=True, error_model="numpy")
def _gather_segments(operand: np.void, sources: Sources, begin: int, end: int, target: Rows) -> None:
    """Rows `begin` to `end` of an operand that comes from several windows; positions in a segment ascend."""
    indices, to = sources.indices, Rows(target.address - begin * target.stride, target.stride, target.width)
    for at in range(operand["first"], operand["first"] + operand["segments"]):
        segment = sources.segments[at]
        rows, positions = segment["rows"], segment["positions"]
        low, high = np.searchsorted(indices[positions : positions + segment["n"]], np.array([begin, end]))
        source = window_rows(segment["window"], sources.memory)
        if sources.memory.windows[segment["window"]]["scattered"] >= 0:
            there = Listed(source, at_index(indices, rows + low))
            here = Listed(to, at_index(indices, positions + low))
            read_scattered(sources.memory, segment["window"], high - low, there, here)
            continue
        gather_rows_to(high - low, source, indices, rows + low, positions + low, to)


@compiled(small=True, error_model="numpy")
def _place_arguments(
    programs: Programs, number: int, slots: Slots, one: np.void, sources: Sources, begin: int, m: int
) -> None:
    """Have the arguments of m calls of a program, from number `begin` of a batch on, where its slots say.

    A batch that reads lists is one block.
    """
    extent, indices = programs.extents[number], sources.indices
    for at in range(extent["arguments_end"] - extent["arguments"]):
        argument = programs.arguments[extent["arguments"] + at]
        slot, move = argument["slot"], argument["move"]
        if move == UNUSED:
            continue
        operand, width = sources.operands[one["operand"] + at], extent["itemsize"] * argument["entries"]
        access, target = operand["access"], Rows(slots.addresses[slot], slots.strides[slot], width)
        rows = operand["n"] if argument["elements"] else m
        if access == GATHER_MANY:
            _gather_segments(operand, sources, begin, begin + rows, target)
            continue
        source = operand_rows(operand, begin, sources.memory)
        if sources.memory.windows[operand["window"]]["scattered"] >= 0:
            listed = at_index(indices, operand["first"] + begin) if access == GATHER else 0
            read_scattered(sources.memory, operand["window"], rows, Listed(source, listed), Listed(target, 0))
        elif access == GATHER and move != UNLESS_FOLLOWED:
            first = operand["first"] + begin
            gather_rows(rows, source, indices, first, target)
        elif access != GATHER and (move == ALWAYS or (move == IF_NOT_ROWS and source.stride < width)):
            copy_rows(m, source, target)
        else:
            slots.addresses[slot], slots.strides[slot] = source.address, source.stride
            if access == GATHER:
                slots.lists[slot] = at_index(indices, operand["first"] + begin)


@compiled(small=True, error_model="numpy")
def _run_program(
    programs: Programs, number: int, slots: Slots, one: np.void, sources: Sources, scratch: int, gemms: np.ndarray
) -> None:
    """Run a batch of a program."""
    kind, n = one["type"], one["n"]
    out = result_rows(kind, one["row"], sources.memory)
    result = computed_rows(sources.memory.kept[kind], n, out)
    block = block_rows(n, programs.extents[number]["calls"])
    elements = elements_of(one, programs.extents[number], sources.operands)
    for begin in range(0, n, block):
        m = min(block, n - begin)
        here = Rows(result.address + begin * result.stride, result.stride, result.width)
        place_slots(programs, number, slots, scratch, here, m, elements)
        _place_arguments(programs, number, slots, one, sources, begin, m)
        integers = Integers(sources.indices, one["integers"] + begin, n, one["offsets"] + begin, elements)
        _run_steps(programs, number, slots, integers, m, gemms)
    if result.address != out.address:
        copy_rows(n, result, out)


@compiled(small=True, error_model="numpy")
def _compute_lists(task: np.void, one: np.void, sources: Sources, out: Rows, scratch: int) -> None:
    """A batch of a kernel of lists; elements are copied first if their entries do not lie side by side."""
    elements, memory = sources.operands[one["operand"]], sources.memory
    here = Rows(0, 0, 0)
    if any_scattered(elements, sources.segments, memory.windows):
        here, n = Rows(scratch, out.width, out.width), int(elements["n"])
        if elements["access"] == GATHER_MANY:
            _gather_segments(elements, sources, 0, n, here)
        else:
            listed = at_index(sources.indices, elements["first"]) if elements["access"] == GATHER else 0
            there = Listed(operand_rows(elements, 0, memory), listed)
            read_scattered(memory, elements["window"], n, there, Listed(here, 0))
    compute_lists(task, one, sources, out, here)


@compiled(small=True, error_model="numpy")
def run_batches(
    first: int, stop: int, indices: np.ndarray, scratch: int, gemms: np.ndarray, *tables: np.ndarray
) -> None:
    """Run the batches of a plan from `first` on.

    Args:
        stop: the batch to stop before.
        indices: the plan's index buffer.
        scratch: address of a buffer that has room for a block of any program, and for the elements of any lists.
        gemms: see `products.gemms`.
        tables: those of `Batches`, `Memory` and `Programs`.
    """
    plan, memory, programs = grouped(tables)
    sources = Sources(plan.operands, plan.segments, indices, memory)
    most = most_slots(programs.extents)
    slots = Slots(np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64))
    for batch in range(first, stop):
        one = plan.batches[batch]
        task = programs.tasks[one["type"]]
        program = task["program"]
        if program >= 0:
            _run_program(programs, program, slots, one, sources, scratch, gemms)
            continue
        rows = result_rows(one["type"], one["row"], memory)
        if program == LISTS:
            _compute_lists(task, one, sources, rows, scratch)
        else:
            add_to_operand(task, one, sources, rows)
