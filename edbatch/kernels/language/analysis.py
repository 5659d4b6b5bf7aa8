"""What is found out about a kernel before it is written in any language.

Over which axes each value varies, so whether there is one a row, a group or an entry; in which pass over its group a
reduction is computed, since what comes of one may be in the next; which values are kept from one pass to another; and
which axis is the innermost loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from edbatch.kernels.language.functions import FUNCTIONS
from edbatch.kernels.language.ir import (
    NEXT,
    Access,
    Compute,
    Index,
    Instruction,
    Kernel,
    Load,
    Reduce,
    Store,
    StoreLargest,
    operands_of,
)

COLUMNS = 256  # groups whose reductions are computed side by side, where the innermost loop is over groups


class Analysis:
    """Of a kernel.

    Attributes:
        outer, inner: sets of axes.
        varies: per value, the axes over which it does.
        entry_stores, group_stores: stores of numbers an entry; of numbers a group.
        reductions: per pass over a group, the values that it reduces; a pass more, if needed, only stores.
        ordered: whether the entries of a group are taken one after the other: indices say where they go (see `Store`),
            or see `StoreLargest`.
        grouped: whether groups are computed, not only entries each by itself.
        kept: costly values that a pass computes and a later one needs again.
        vector_axis: that of the innermost loop; None if there are no axes.
        columns: whether that is an outer axis, with reductions: those of many groups are computed side by side.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.outer = frozenset(range(kernel.outer))
        self.inner = frozenset(range(kernel.outer, kernel.axes))
        self.vector_axis = self._vector_axis()
        has_reductions = any(isinstance(step, Reduce) for step in kernel.instructions)
        self.columns = has_reductions and self.vector_axis in self.outer
        self.varies: list[frozenset[int]] = []
        self._levels: list[int] = []  # the passes that come before a value is known
        for step in kernel.instructions:
            self.varies.append(self._axes(step))
            level = max((self._levels[value] for value in operands_of(step)), default=0)
            self._levels.append(level + isinstance(step, Reduce))
        stores = [(self.store_varies(store) & self.inner, store) for store in kernel.stores]
        self.entry_stores = [store for inner, store in stores if inner]
        self.group_stores = [store for inner, store in stores if not inner]
        needed = self.closure(value for store in kernel.stores for value in store.reads)
        depth = max((self._levels[value] for value in needed), default=0)
        self.reductions: list[list[int]] = [[] for _ in range(depth)]
        for value in sorted(needed):
            if isinstance(kernel.instructions[value], Reduce):
                self.reductions[self._levels[value] - 1].append(value)
        # Stores come last, so that every pass reads what was there before.
        stored = [value for store in self.entry_stores for value in store.reads]
        if stored and depth == max(self._levels[value] for value in stored):
            self.reductions.append([])
        self.ordered = any(isinstance(store, StoreLargest) or store.index is not None for store in kernel.stores)
        self.grouped = depth > 0 or self.ordered or bool(self.inner and self.group_stores)
        self.kept = self._kept()

    def store_varies(self, store: Store) -> frozenset[int]:
        """The axes over which what is stored has entries of its own."""
        found = self._strides(store).union(*(self.varies[value] for value in store.reads))
        return found if store.index is None else found | self.inner

    def closure(self, values: Iterable[int], known: Iterable[int] = ()) -> set[int]:
        """These values and all that they are computed of, except what is known, and what only that is made of."""
        found: set[int] = set()
        waiting, stop = [*values], set(known)
        while waiting:
            value = waiting.pop()
            if value not in found and value not in stop:
                found.add(value)
                waiting += operands_of(self.kernel.instructions[value])
        return found

    def roots(self, number: int) -> list[int]:
        """The values of an entry that a pass reduces or stores."""
        steps = self.kernel.instructions
        found = [value for reduction in self.reductions[number] for value in operands_of(steps[reduction])]
        last = number == len(self.reductions) - 1
        return found + [value for store in self.entry_stores if last for value in store.reads]

    def is_entry(self, value: int) -> bool:
        """Whether a value is one an entry."""
        return bool(self.varies[value] & self.inner)

    def _axes(self, step: Instruction) -> frozenset[int]:
        below = frozenset[int]().union(*(self.varies[value] for value in operands_of(step)))
        match step:
            case Load():
                return self._strides(step) | below
            case Index(axis):
                return frozenset({axis})
            case Reduce():  # side by side, all are computed for each column
                return below - self.inner | ({self.vector_axis} if self.columns else frozenset())  # type: ignore[arg-type]
        return below

    def _strides(self, access: Access) -> frozenset[int]:
        found = frozenset(axis for axis, stride in enumerate(access.strides) if stride)
        axis = self.kernel.list_axis
        return found | {axis} if axis is not None and self.kernel.places[access.place].elements else found

    def _kept(self) -> list[int]:
        """Costly values of an entry that several passes would compute."""
        steps = self.kernel.instructions
        computed: set[int] = set()  # costly values that passes so far have computed
        kept: set[int] = set()
        for number in range(len(self.reductions)):
            groups = [value for value in range(len(steps)) if not self.is_entry(value)]
            kept |= self._reached(self.roots(number), groups, computed)
            computed |= {
                value
                for value in self.closure(self.roots(number), groups)
                if isinstance(step := steps[value], Compute) and FUNCTIONS[step.function].costly
            }
        # What varies along fewer axes is computed in a loop further out.
        everywhere = self.inner | ({self.vector_axis} if self.columns else frozenset())
        return sorted(value for value in kept if self.varies[value] >= everywhere)

    def _reached(self, roots: list[int], known: list[int], computed: set[int]) -> set[int]:
        """Which of the values computed before these are made of directly."""
        around = self.closure(roots, [*known, *computed])
        below = {value for one in around for value in operands_of(self.kernel.instructions[one])}
        return (below | set(roots)) & computed

    @property
    def scratch_rows(self) -> int:
        """How many numbers a CPU keeps for each entry of the largest group from one pass to the next."""
        return len(self.kept) * (COLUMNS if self.columns else 1)

    def lanes(self, groups: int, entries: int) -> int:
        """How many threads of a GPU compute one of a row's groups; 0 if each entry is computed by itself."""
        if not self.grouped:
            return 0
        # Where neighbours in memory are of neighbouring groups, and not of one, a thread each.
        if self.ordered or entries <= 16 or (self.columns and groups >= 32):
            return 1
        return 32 if entries <= 1024 else 256

    def _vector_axis(self) -> int | None:
        """The axis along which most of what is read and written are neighbours; of equals, the last."""
        accesses, axes = self.kernel.accesses, range(self.kernel.axes)
        counts = {axis: sum(one.strides[axis] == NEXT for one in accesses) for axis in axes}
        return max(counts, key=lambda axis: (counts[axis], axis), default=None)


@cache
def analysis_of(kernel: Kernel) -> Analysis:
    """What is found out about a kernel."""
    return Analysis(kernel)
