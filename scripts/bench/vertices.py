"""Vertex functions: what recording a vertex of an input graph takes, beside Python's recursion over the same structure.

    python -m scripts.bench.vertices [--json] [--rounds 15] [--sizes 1000 10000 100000]

The least processor time of the thread over all rounds, from the call until the nodes are columns of the graph; nothing
runs. Asked are at most 15 ns a vertex.
"""

from __future__ import annotations

import argparse
import gc
import math
from collections.abc import Callable
from time import thread_time
from typing import Any, NamedTuple

import numpy as np

import edbatch as eb
from edbatch.compiling import compiled
from edbatch.models import GRU, TreeLSTM
from scripts.bench.arrays import take_over
from scripts.bench.report import Tables, command

A_VERTEX = 15.0  # ns, asked

WORDS, DIM = 50, 16


class Case(NamedTuple):
    """A structure of some size, and what is recorded over it.

    Attributes:
        graph: as arrays.
        inputs: made in a graph before the clock runs.
        by_arrays, by_recursion: record all vertices, given the inputs.
    """

    graph: eb.InputGraph
    inputs: Callable[[], Any]
    by_arrays: Callable[[Any], Any]
    by_recursion: Callable[[Any], Any]


def random_tree(rng: np.random.Generator, leaves: int) -> Any:
    """As nested tuples of numbers."""
    parts: list[Any] = rng.integers(0, WORDS, leaves).tolist()
    while len(parts) > 1:
        at = int(rng.integers(len(parts) - 1))
        parts[at : at + 2] = [(parts[at], parts[at + 1])]
    return parts[0]


def trees(n: int) -> Case:
    """A binary TreeLSTM, one cell a vertex, over trees of 32 words."""
    rng = np.random.default_rng(0)
    model = TreeLSTM(eb.ParameterCollection(seed=0), WORDS, 5, DIM)
    samples = [random_tree(rng, 32) for _ in range(math.ceil(n / 63))]
    graph, listed = eb.InputGraph.of_tuples(samples)
    words = np.array(listed)

    @eb.vertex
    def leaf(v: eb.Vertex) -> None:
        v.scatter(*model.leaf(v.pull()))

    @eb.vertex
    def inner(v: eb.Vertex) -> None:
        v.scatter(*model.compose(*v.gather(0), *v.gather(1)))

    def walk(part: Any) -> Any:
        return model.compose(*walk(part[0]), *walk(part[1])) if isinstance(part, tuple) else model.leaf(part)

    both = eb.vertex(leaf, inner)
    return Case(graph, lambda: words, lambda given: both(graph, given), lambda _: [walk(sample) for sample in samples])


def chains(n: int) -> Case:
    """A GRU, one cell a vertex, over sequences of 25 words."""
    rng = np.random.default_rng(0)
    model = GRU(eb.ParameterCollection(seed=0), DIM, DIM)
    table = eb.ParameterCollection(seed=0).add_lookup_parameters((WORDS, DIM))

    class Step:
        @eb.cell
        def __call__(self, h: Any, word: int) -> Any:
            return model.step(h, eb.lookup(table, word))

    step = Step()
    graph = eb.InputGraph.of_chains([25] * math.ceil(n / 25))
    words = rng.integers(0, WORDS, len(graph))
    listed = words.reshape(-1, 25).tolist()

    @eb.vertex
    def vertex(v: eb.Vertex) -> None:
        v.scatter(step(v.gather(0) if v.n_children else eb.zeros(DIM), v.pull()))

    def walk(sample: list[int]) -> list[Any]:
        found = [eb.zeros(DIM)]
        for word in sample:
            found.append(step(found[-1], word))
        return found

    return Case(graph, lambda: words, lambda given: vertex(graph, given), lambda _: [walk(sample) for sample in listed])


def dags(n: int) -> Case:
    """Any DAG, of up to three children; four single ops a vertex, whose states are inputs."""
    rng = np.random.default_rng(0)
    W = eb.ParameterCollection(seed=0).add_parameters((DIM, DIM))
    counts = np.minimum(rng.integers(0, 4, n), np.arange(n))
    children = [rng.integers(max(0, at - 50), at, count).tolist() for at, count in enumerate(counts.tolist())]
    graph = eb.InputGraph.of_lists([children])
    given = rng.normal(size=(n, DIM))

    def compute(x: Any, below: list[Any]) -> Any:
        return eb.tanh(W @ eb.sum([x, *below])) + x

    @eb.vertex
    def vertex(v: eb.Vertex) -> None:
        v.scatter(compute(v.pull(), v.gather()))

    def by_recursion(rows: eb.ExpressionArray) -> list[Any]:
        found: list[Any] = []
        for x, below in zip(rows, children, strict=True):
            found.append(compute(x, [found[child] for child in below]))
        return found

    return Case(graph, lambda: eb.array(given), lambda xs: vertex(graph, xs), by_recursion)


CASES = {"trees, a cell": trees, "sequences, a cell": chains, "DAGs, four ops": dags}


def timed(inputs: Callable[[], Any], record: Callable[[Any], Any], times: int) -> float:
    """Seconds."""
    least = math.inf
    gc.collect()
    for _ in range(times):
        with eb.Graph(policy="sufficient") as graph:
            given = inputs()
            take_over(graph)
            start = thread_time()
            found = record(given)
            take_over(graph)
            least = min(least, thread_time() - start)
            del found
    return least


def of_structure(graph: eb.InputGraph, kinds: int) -> float:
    """Seconds to make a structure of arrays, and to group its vertices."""
    given = graph.offsets, graph.children, graph.kinds
    start = thread_time()
    eb.InputGraph(*given)._grouped(kinds)
    return thread_time() - start


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    rows = []
    with compiled.at_once():
        for name, make in CASES.items():
            row: dict[str, Any] = {"ns a vertex": name}
            for size in (10, *given.sizes):
                case = make(size)
                n = len(case.graph)
                kinds = int(case.graph.kinds.max()) + 1
                arrays = recursion = structure = math.inf
                for _ in range(given.rounds):
                    arrays = min(arrays, timed(case.inputs, case.by_arrays, max(3, 20_000 // n)))
                    structure = min(structure, of_structure(case.graph, kinds))
                if size == 10:
                    row["a call, us"] = 1e6 * arrays
                    continue
                row[f"{size:,} vertices"] = 1e9 * arrays / n
            for _ in range(3):
                recursion = min(recursion, timed(case.inputs, case.by_recursion, 1))
            rows.append({**row, "the structure": 1e9 * structure / n, "recursion": 1e9 * recursion / n})
    asked = {"ns a vertex": "asked", **{f"{size:,} vertices": A_VERTEX for size in given.sizes}}
    return {"Recording: vertex functions": [*rows, asked]}


main = command(__doc__, tables, rounds=15, sizes=(1000, 10_000, 100_000))

if __name__ == "__main__":
    main()
