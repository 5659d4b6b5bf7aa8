"""ED-Batch's workloads, and the mini-batches that something is learned from and measured on, which are not the same."""

from __future__ import annotations

from typing import Any, NamedTuple

import edbatch as eb
from edbatch.experiments.experiment import Setting
from edbatch.experiments.mini_batches import MiniBatches, samples_of

TREES = ("tree-lstm", "tree-gru", "mv-rnn", "tree-lstm-2type")
CHAINS = ("tagger", "tagger-characters", "encoder-decoder")
LATTICES = ("lattice-lstm", "lattice-gru")
NINE = (*CHAINS, *TREES, *LATTICES)
LEARNED, HELD_OUT = 3, 3  # mini-batches
QUICK_LEARNED, QUICK_HELD_OUT = 2, 1


class Split(NamedTuple):
    """Mini-batches of a workload.

    Attributes:
        mini_batches: all of them.
        learned, held_out: numbers of those to learn from, and of the others.
    """

    mini_batches: MiniBatches
    learned: range
    held_out: range

    def graphs(self, numbers: range) -> list[Any]:
        """Of some mini-batches, as a policy sees them."""
        return [self.mini_batches.build(number).typed_graph() for number in numbers]

    def policy(self, **how: Any) -> eb.Policy:
        """Learned from those to learn from, with arguments of `edbatch.learn`."""
        return eb.learn(self.graphs(self.learned), progress=False, **how)


def split(name: str, setting: Setting, hidden: int, size: int) -> Split:
    """Mini-batches of so many samples, with a model whose states have `hidden` entries."""
    learned, held_out = (QUICK_LEARNED, QUICK_HELD_OUT) if setting.quick else (LEARNED, HELD_OUT)
    samples = samples_of(name, (learned + held_out) * size, setting.folder)
    found = MiniBatches(name, samples, hidden, size)
    n = len(found.batches)
    learned = min(learned, n - 1)
    return Split(found, range(learned), range(learned, n))
