"""Forward runs that save what a backward run will read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edbatch.base.records import words_of
from edbatch.memory.plan.addresses import SAVING
from edbatch.memory.plan.arenas import Arenas
from edbatch.memory.plan.growing import Used
from edbatch.runtime.compile.derivatives import Saving, has_body, saving

if TYPE_CHECKING:
    from edbatch.runtime.evaluation import Evaluation


class Saved(NamedTuple):
    """What the nodes of one type saved in one run.

    Attributes:
        how: what is saved, in a row for each node, in the order in which they ran.
        first, n: the first of the run's, and how many.
    """

    how: Saving
    first: int
    n: int

    def value(self, node: int, arenas: Arenas) -> Any:
        """What was saved of a node of the body, [n, *shape]."""
        column, spec = self.how.places[node]
        rows = arenas.array(self.how.window)[self.first : self.first + self.n]
        return rows[:, column : column + spec.size].reshape(self.n, *spec.shape)


def claim_saved(graph: Evaluation, batches: np.ndarray) -> dict[int, Saved]:
    """Have rows for what batches of a run will save, per number of a type; `graph.saving` says where."""
    table, arenas, found = graph.table, graph.arenas, dict[int, Saved]()
    claimed = [
        (kind, how, table.windows.windows[how.window].arena)
        for kind in dict.fromkeys(batches["type"].tolist())
        if has_body((type := table.bound[kind]).type) and (how := saving(type)) is not None
    ]
    if not claimed:
        return found
    counts = np.bincount(batches["type"], batches["n"]).astype(np.int64)
    arenas.see_layouts()
    is_full = False
    for kind, how, arena in claimed:
        one = found[kind] = Saved(how, arenas.used.item(arena), counts.item(kind))
        arenas.used[arena] = one.first + one.n
        is_full = is_full or one.first + one.n > arenas.words.item(arena, 3)
    if is_full:
        arenas.make_room()
    if len(graph.saving) != table.count:
        graph.saving = np.zeros(table.count, SAVING)
    words = words_of(graph.saving)
    for kind, _, arena in claimed:
        address, stride, _, _ = arenas.words[arena].tolist()
        words[kind, :2] = address + found[kind].first * stride, stride
    return found


class Ran(NamedTuple):
    """A run, as it is kept for going back through it, or several that are gone back through as one.

    Attributes:
        begin, end: what was in use of the graph's plan before and after it.
        n_sources: how many of its batches, the first, hold sources.
        saved: what it saved, per type.
        time: when it was, see `graph.model.writes`.
    """

    begin: Used
    end: Used
    n_sources: int
    saved: dict[int, Saved]
    time: int

    @property
    def extent(self) -> tuple[int, int, int]:
        """The first of its batches, the batch after the last, where its nodes begin among those of the plan."""
        return self.begin.batches, self.end.batches, self.begin.nodes


def stretches(ran: Sequence[Ran]) -> list[Ran]:
    """The runs of a graph as few, the earliest first: those that saved nothing while no parameter changed are one."""
    found: list[Ran] = []
    for one in ran:
        if found and not one.saved and not found[-1].saved and found[-1].time == one.time:
            found[-1] = found[-1]._replace(end=one.end)
        else:
            found.append(one)
    return found
