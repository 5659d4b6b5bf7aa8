"""Running a plan: sources are put in their rows, then compiled loops run batch after batch."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edbatch.compiling.array_table import ArrayTable
from edbatch.graph.node_type import parameter_array
from edbatch.kernels.tables import Memory
from edbatch.memory.plan.addresses import SAVING
from edbatch.memory.plan.format import STRIDED
from edbatch.memory.plan.growing import GrowingPlan, Used
from edbatch.runtime.compile.program_table import ProgramTable, Ready
from edbatch.runtime.graph_errors import check_rows

if TYPE_CHECKING:
    from edbatch.runtime.evaluation import Evaluation

_BYTES = np.dtype(np.uint8)


class Timed(NamedTuple):
    """A batch that has run, forward or backward.

    Attributes:
        type, n: of its nodes; how many.
        viewed, gathered: operands that were used in place, and that had to be copied together.
        start, seconds: see `time.perf_counter`.
    """

    type: int
    n: int
    viewed: int
    gathered: int
    start: float
    seconds: float


def run_plan(
    graph: Evaluation, begin: Used, end: Used, n_sources: int, inputs: list[Any] | None, saves: bool
) -> None:  # fmt: skip
    """Fill the rows of sources, then compute batch after batch of a graph's plan, from `begin` to `end`.

    Args:
        n_sources: how many of the batches, the first, hold sources.
        inputs: arrays of the input nodes, found by payload; None: their rows have been filled.
        saves: whether some of it saves values, see `saving.claim_saved`.
    """
    first, last, plan = begin.batches + n_sources, end.batches, graph.plan
    for batch in plan.batches[begin.batches : first].tolist() if n_sources else ():
        _stage(graph, batch, inputs)
    if first == last:
        return
    table, known = graph.table, graph.known
    programs = table.saving_programs if saves else table.programs
    ready = None if known is None else known.ready.get(saves)
    if ready is None or (_held := ready.held(programs)) is None:
        ready, _held = programs.prepare(plan.types[first:last].tolist(), plan, first, last)
        if known is not None:
            known.ready[saves] = ready
    integers = slice(begin.integers, end.integers)
    run_batches(
        graph, plan, first, last, integers, begin.indices, ready, programs, lambda at: _check(graph, at)
    )  # fmt: skip


def run_batches(
    graph: Evaluation, plan: GrowingPlan, first: int, last: int, integers: slice, indices: int, ready: Ready,
    programs: ProgramTable, check: Callable[[int], None], adds: bool = False,
) -> None:  # fmt: skip
    """Compute batch after batch of a plan; one by one, where each is timed or checked.

    Args:
        integers: of the plan's those that the batches have; indices: the first of the plan's indices that they have.
        ready: their programs.
        check: called with the number of a batch, raises an error if results are NaN.
        adds: whether rows are added to others.
    """
    backend, profile = graph.table.backend, graph.profile
    scratch, _ = graph.scratch.take(ready.scratch, _BYTES)
    lists = backend.lists(plan, graph.integers.take(plan.integers[integers]), indices, integers.start)
    tables = plan, lists, memory_of(graph, adds)
    if not graph.check_nan and profile is None:
        backend.run_batches(first, last, *tables, programs, scratch)
        return
    for at in range(first, last):
        started = perf_counter()
        backend.run_batches(at, at + 1, *tables, programs, scratch)
        if profile is not None:
            graph.table.device.synchronize()
            seconds, of = perf_counter() - started, plan.tables
            batch, begins = of.batch(at), of.batches["operand"][at + 1 : at + 2].tolist()
            access = of.operands["access"][batch.operand : begins[0] if begins else None]
            viewed = int((access <= STRIDED).sum())
            profile.append(Timed(batch.type, batch.n, viewed, len(access) - viewed, started, seconds))
        if graph.check_nan:
            check(at)


def memory_of(graph: Evaluation, adds: bool) -> ArrayTable[Memory]:
    """Where values are; rows of all arenas are reserved: they stay where they are. See `run_batches`."""
    table, known = graph.table, graph.memory
    columns, results = table.windows.columns(), table.facts.tables.windows
    if known is None or known.tables.windows is not columns:
        graph.arenas.see_layouts()
    elif (
        not adds
        and known.tables.results is results
        and known.tables.arenas is graph.arenas.rows
        and known.tables.saving is graph.saving
    ):
        return known  # as where graphs come again
    if len(graph.saving) != len(table.bound):
        graph.saving = np.zeros(len(table.bound), SAVING)
    scattered = table.scattered.tables(adds)
    memory = Memory(columns, graph.arenas.rows, results, graph.saving, *scattered)
    if known is None or not all(map(is_, known.tables, memory)):
        known = graph.memory = ArrayTable(memory)
    return known


def _stage(graph: Evaluation, batch: tuple[int, ...], inputs: list[Any] | None) -> None:
    """Put the rows of a `Batch` of sources where they are computed with."""
    kind, row, n, _, begin, _ = batch
    type = graph.table.bound[kind]
    values: Any = None
    if type.type.op.payload:
        if inputs is None:
            return
        integer = graph.integers.item
        values = [inputs[integer(at)] for at in graph.plan.integers[begin : begin + n].tolist()]
    elif type.type.attributes:
        ((_, spec),) = type.type.attributes
        values = parameter_array(spec)
    type.type.op.forward(graph.table.backend, graph.arenas.array(type.window)[row : row + n], values)


def _check(graph: Evaluation, number: int) -> None:
    tables = graph.plan.tables
    kind, row, n, *_ = tables.batch(number)
    end = int(tables.batches["n"][: number + 1].sum())
    out = graph.arenas.array(graph.table.bound[kind].window)[row : row + n]
    check_rows(out, graph.plan.nodes[end - n : end], kind, graph)
