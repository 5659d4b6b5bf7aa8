"""Equal subgraphs once (`options(share=True)`): what finding them takes, and what it gains, off against on.

    EDBATCH_DATA=... python -m scripts.bench.share [--json] [--rounds 15] [--hidden 64 256]

Processor time of the thread, medians of runs that take turns, from construction to values ("forward") and to gradients
("train"); policy `sufficient`. Finding: the least and the median over all runs of `Sharing.share`, a node of the graph.
Asked are at most 15 ns a node. Trees: a TreeLSTM over 256 trees, classes at every node. Hypotheses: 8 for each of 32
sentences, which begin alike and are scored one by one, each with its sentence, by an encoder-decoder. Words: two layers
over each word of 256 sentences, then a bidirectional LSTM. Without EDBATCH_DATA all data is made up.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from time import thread_time
from typing import Any, NamedTuple

import edbatch as eb
from edbatch.experiments.measure import interleaved
from edbatch.models import LSTM, Bidirectional
from edbatch.models.workloads import WORKLOADS
from edbatch.runtime.sharing import Sharing
from scripts.bench.mini_batches import samples, source
from scripts.bench.report import Tables, command

A_NODE = 15.0  # ns, asked


class Case(NamedTuple):
    """A mini-batch.

    Attributes:
        model: its parameters.
        losses: records it, one for each sample.
    """

    model: eb.ParameterCollection
    losses: Callable[[], list[eb.Expression]]


def trees(hidden: int) -> Case:
    """Common phrases."""
    workload, read, model = WORKLOADS["tree-lstm"], samples("tree-lstm", 256), eb.ParameterCollection(seed=0)
    numbered, sizes, labels = workload.number(read)
    network = workload.network(model, *sizes, hidden)
    at = {label: number for number, label in enumerate(labels)}
    given = [(*x, [at[label] for label in tree.labels]) for x, tree in zip(numbered, read, strict=True)]
    return Case(model, lambda: [network.loss(*sample) for sample in given])


def hypotheses(hidden: int) -> Case:
    """Common prefixes, and a common sentence."""
    workload, model, random = WORKLOADS["encoder-decoder"], eb.ParameterCollection(seed=0), Random(0)
    numbered, sizes, _ = workload.number(samples("encoder-decoder", 32))
    network = workload.network(model, *sizes, hidden)
    given = []
    for sentence, target in numbered:
        for _ in range(8):
            begin = random.randrange(len(target) + 1)
            given.append((sentence, [*target[:begin], *(random.randrange(3, sizes[1]) for _ in target[begin:])]))
    return Case(model, lambda: [network.loss(*sample) for sample in given])


class Words:
    """Two layers over each word alone, an LSTM each way, scores."""

    def __init__(self, model: eb.ParameterCollection, words: int, tags: int, dim: int) -> None:
        self.embed = model.add_lookup_parameters((words, dim), name="embed")
        self.W, self.V = (model.add_parameters((dim, dim), name=name) for name in "WV")
        self.O = model.add_parameters((tags, 2 * dim), name="O")
        self.layer = Bidirectional(*(LSTM(model, dim, dim, name=way) for way in ("right", "left")))

    @eb.cell
    def word(self, number: int) -> Any:
        """Of a word alone."""
        return eb.tanh(self.V @ eb.tanh(self.W @ eb.lookup(self.embed, number)))

    @eb.cell
    def scored(self, h: Any, tag: int) -> Any:
        """A loss."""
        return eb.cross_entropy(self.O @ h, tag)

    def loss(self, words: list[int], tags: list[int]) -> eb.Expression:
        """Of a sentence."""
        hidden = self.layer.transduce([self.word(number) for number in words])
        return eb.sum([self.scored(h, tag) for h, tag in zip(hidden, tags, strict=True)])


def words(hidden: int) -> Case:
    """Repeated words."""
    read, model = samples("tagger", 256), eb.ParameterCollection(seed=0)
    known: dict[str, int] = {}
    tags: dict[str, int] = {}
    given = [
        ([known.setdefault(word, len(known)) for word in x.words], [tags.setdefault(tag, len(tags)) for tag in x.tags])
        for x in read
    ]
    network = Words(model, len(known), len(tags), hidden)
    return Case(model, lambda: [network.loss(*sample) for sample in given])


CASES = {"trees": trees, "hypotheses": hypotheses, "words": words}


def run(case: Case, share: bool, trains: bool) -> eb.Graph:
    """Once, from construction on."""
    with eb.options(share=share), eb.Graph("sufficient") as graph:
        loss = eb.sum(case.losses())
    if trains:
        loss.backward()
        case.model.zero_grad()
    loss.value()
    return graph


@contextmanager
def finding() -> Iterator[list[float]]:
    """In its block, what finding equal nodes takes is noted: nanoseconds a node, run by run."""
    found: list[float] = []
    share = Sharing.share

    def timed(self: Sharing, nodes: Any, first: int, base: int) -> None:
        start = thread_time()
        share(self, nodes, first, base)
        found.append(1e9 * (thread_time() - start) / (nodes.n - first))

    Sharing.share = timed  # type: ignore[method-assign]
    try:
        yield found
    finally:
        Sharing.share = share  # type: ignore[method-assign]


def measured(name: str, hidden: int, rounds: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Of one case, what finding takes, and what it gains."""
    case = CASES[name](hidden)
    runs = {
        (what, share): lambda what=what, share=share: run(case, share, what == "train") and None
        for what in ("forward", "train")
        for share in (False, True)
    }
    with finding() as found:
        timed = interleaved(runs, rounds)  # type: ignore[arg-type]
    report = run(case, share=True, trains=False).report()
    gone = sum(report.shared.values())
    least, median = min(found), statistics.median(found)
    some = {"case": name, "hidden": hidden}
    gains = []
    for what in ("forward", "train"):
        off, on = (1e3 * statistics.median(timed[what, share].cpu) for share in (False, True))
        gains.append({**some, "what": what, "off, CPU ms": off, "on, CPU ms": on, "off / on": off / on})
    shared = 100 * gone / (report.nodes + gone)  # parts of cells that were split count as nodes
    ns = {"least, ns a node": least, "median, ns a node": median, "asked": A_NODE}
    return {**some, "nodes": report.nodes + gone, "shared, %": shared, **ns}, gains


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    found = [measured(name, hidden, given.rounds) for name in CASES for hidden in given.hidden]
    return {
        f"Equal nodes: finding them, {source()}": [of for of, _ in found],
        f"Equal nodes: computed once, {source()}": [gain for _, gains in found for gain in gains],
    }


main = command(__doc__, tables, rounds=15, hidden=(64, 256))

if __name__ == "__main__":
    main()
