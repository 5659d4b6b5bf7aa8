"""Running a plan: sources are put in their rows, then compiled loops run batch after batch."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edbatch.compiling.array_table import ArrayTable
from edbatch.errors import EdBatchError
from edbatch.graph.node_type import parameter_array
from edbatch.kernels.tables import Memory
from edbatch.memory.plan.format import STRIDED
from edbatch.memory.plan.growing import Used
from edbatch.runtime.compile.program_table import ProgramTable
from edbatch.runtime.graph_errors import lines
from edbatch.runtime.store import Store

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
    graph: Evaluation, store: Store, begin: Used, end: Used, n_sources: int, inputs: list[Any] | None,
    saves: bool,
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
    programs, backend = table.saving_programs if saves else table.programs, table.backend
    ready = None if known is None else known.ready.get(saves)
    if ready is None or (_held := ready.held(programs)) is None:
        ready, _held = programs.prepare(plan.types[first:last].tolist(), table, plan, first, last)
        if known is not None:
            known.ready[saves] = ready
    scratch, _ = store.scratch.take(ready.scratch, _BYTES)
    memory, values = memory_of(graph, store, saves), graph.integers.take(plan.integers[begin.integers : end.integers])
    tables = plan, backend.lists(plan, values, begin.indices, begin.integers), memory
    run_batches(graph, first, last, tables, programs, scratch, lambda at: _check(graph, at))


def run_batches(
    graph: Evaluation, first: int, last: int, tables: tuple[Any, Any, ArrayTable[Memory]], programs: ProgramTable,
    scratch: int, check: Callable[[int], None],
) -> None:  # fmt: skip
    """Compute batch after batch of a plan; one by one, where each is timed or checked.

    Args:
        tables: the plan, what a `Backend` has made of its lists, and where values are.
        scratch: the address of memory that any of the batches may use.
        check: called with the number of a batch, raises an error if results are NaN.
    """
    backend, profile, (plan, *_) = graph.table.backend, graph.profile, tables
    if not graph.check_nan and profile is None:
        backend.run_batches(first, last, *tables, programs, scratch)
        return
    for at in range(first, last):
        started = perf_counter()
        backend.run_batches(at, at + 1, *tables, programs, scratch)
        if profile is not None:
            backend.synchronize()
            seconds, of = perf_counter() - started, plan.tables
            batch, begins = of.batch(at), of.batches["operand"][at + 1 : at + 2].tolist()
            access = of.operands["access"][batch.operand : begins[0] if begins else None]
            viewed = int((access <= STRIDED).sum())
            profile.append(Timed(batch.type, batch.n, viewed, len(access) - viewed, started, seconds))
        if graph.check_nan:
            check(at)


def memory_of(graph: Evaluation, store: Store, saves: bool = False, adds: bool = False) -> ArrayTable[Memory]:
    """Where values are; rows of all arenas are reserved: they stay where they are.

    Args:
        saves, adds: whether values are saved, and whether rows are added to others.
    """
    table, rows = graph.table, graph.arenas.rows
    saving = store.saving if saves else table.saving
    columns, known = table.windows.columns(), store.memory.get((saves, adds))
    if (
        known is None
        or known.tables.windows is not columns
        or known.tables.arenas is not rows
        or known.tables.results is not table.window
        or known.tables.saving is not saving
    ):
        graph.arenas.see_layouts()
        rows, scattered = graph.arenas.rows, table.scattered.tables(adds)
        known = store.memory[saves, adds] = ArrayTable(Memory(columns, rows, table.window, saving, *scattered))
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
    type = graph.table.bound[kind]
    out = graph.arenas.array(type.window)[row : row + n]
    found = graph.table.backend.to_host((out != out).reshape(n, -1).any(axis=1))
    if found.any():
        end = int(tables.batches["n"][: number + 1].sum())
        where = lines(graph, graph.plan.nodes[end - n : end][found])
        raise EdBatchError(f"NaN in a result of {type.type} ({found.sum()} of {n} in its batch){where}")
