"""The fewest batches of a small graph, by branch and bound: for static subgraphs, which are batched once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

BUDGET = 2000  # batches tried before the search settles for the best it has found: some 20 milliseconds
LARGEST = 500  # nodes; beyond, the search does not start


class Batching(NamedTuple):
    """Node numbers, batch by batch, operands before their users; and how many batches each batching has at `least`."""

    batches: list[list[int]]
    least: int

    @property
    def gap(self) -> int:
        """Batches more than are known to be needed; 0 if there are as few as can be."""
        return len(self.batches) - self.least


def fewest_batches(kinds: Sequence[Hashable], operands: Sequence[Sequence[int]], budget: int = BUDGET) -> Batching:
    """Batch a graph whose nodes are numbered so that operands precede their users; nodes of one kind may run together.

    A batch is all ready nodes of one kind: to run only some of them is never better. Bounded by equation (2) of
    appendix A.3 on what is left, in the path reading; what brings that bound down is tried first, so the first sequence
    found is mostly the best, and known to be so. `budget` bounds the search.

    Example:
        >>> fewest_batches(["a", "b", "b", "a"], [[], [0], [], [2]])
        Batching(batches=[[2], [0, 3], [1]], least=3)
    """
    if len(kinds) > LARGEST:
        return Batching(_by_depth(kinds, operands), len(set(kinds)))
    search = _Search(kinds, operands, budget)
    search.run()
    return Batching(search.best, len(search.best) if search.left >= 0 else search.bound(search.first))


class _Search:
    """Depth first over sequences of batches; a set of nodes is the bits of an int."""

    def __init__(self, kinds: Sequence[Hashable], operands: Sequence[Sequence[int]], budget: int) -> None:
        number = {kind: at for at, kind in enumerate(dict.fromkeys(kinds))}
        self.kinds = [number[kind] for kind in kinds]
        self.needs = [sum(1 << operand for operand in set(row)) for row in operands]
        self.users: list[list[int]] = [[] for _ in kinds]
        for node, row in enumerate(operands):
            for operand in set(row):
                self.users[operand].append(node)
        # Per node and kind: the largest number of nodes of the kind on a path that starts there.
        self.depths: list[list[int]] = [[0] * len(number) for _ in kinds]
        for node in range(len(kinds) - 1, -1, -1):
            below = [self.depths[user] for user in self.users[node]]
            self.depths[node] = [max(column) for column in zip(*below, strict=True)] or [0] * len(number)
            self.depths[node][self.kinds[node]] += 1
        self.first = [node for node, row in enumerate(operands) if not row]
        self.left = budget
        self.best: list[list[int]] = []

    def bound(self, ready: Sequence[int]) -> int:
        """No batching of what is left has fewer batches; every path through it starts at a ready node."""
        return sum(map(max, zip(*(self.depths[node] for node in ready), strict=True)))

    def run(self) -> None:
        """Find `best`; `left` is negative if the budget ran out before it was known to be the best."""
        least = self.bound(self.first)
        reached: dict[int, int] = {}  # sets of nodes that have run -> in how few batches
        waiting: list[tuple[int, list[int], list[list[int]]]] = [(0, self.first, [])]
        while waiting:
            done, ready, batches = waiting.pop()
            if not ready:
                if not self.best or len(batches) < len(self.best):
                    self.best = batches
                if len(self.best) == least:
                    return
                continue
            if self.best and len(batches) + self.bound(ready) >= len(self.best):
                continue
            if reached.get(done, len(batches) + 1) <= len(batches):
                continue
            reached[done] = len(batches)
            if self.best and self.left < 0:
                return
            by_kind: dict[int, list[int]] = {}
            for node in ready:
                by_kind.setdefault(self.kinds[node], []).append(node)
            ways = []
            for batch in by_kind.values():
                self.left -= 1
                after, still = self._after(done, ready, batch)
                ways.append((self.bound(still) if still else 0, len(batch), after, still, [*batches, batch]))
            # The most promising last: the least bound; of those the smallest batch, for one that waits may grow.
            waiting += [way[2:] for way in sorted(ways, key=lambda way: (-way[0], -way[1]))]

    def _after(self, done: int, ready: list[int], batch: list[int]) -> tuple[int, list[int]]:
        """What has run, and what is ready, after one more batch."""
        for node in batch:
            done |= 1 << node
        fresh = {user for node in batch for user in self.users[node] if self.needs[user] & ~done == 0}
        return done, sorted(fresh.union(ready).difference(batch))


def _by_depth(kinds: Sequence[Hashable], operands: Sequence[Sequence[int]]) -> list[list[int]]:
    """Nodes of one kind and depth."""
    depths: list[int] = []
    batches: dict[tuple[int, Hashable], list[int]] = {}
    for node, row in enumerate(operands):
        depths.append(max((depths[operand] + 1 for operand in row), default=0))
        batches.setdefault((depths[node], kinds[node]), []).append(node)
    return [batches[key] for key in sorted(batches, key=lambda key: key[0])]
