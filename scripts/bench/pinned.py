"""The library of one checkout, timed when it is asked: what `scripts/bench/pins.py` has two of.

    python scripts/bench/pinned.py PROGRAM

Run in the root of a checkout, of whose public API alone it makes use. Each line of the standard input is [pin, seed] as
JSON, the answer the pin's figure. PROGRAM is what a cold start runs.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable
from itertools import count, repeat
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import process_time, thread_time
from typing import Any, NamedTuple

import numpy as np

import edbatch as eb

CALLS, GRAPHS, LENGTHS, TREES = 10_000, 100, 5, 20  # in a round
DIM, WORDS, LABELS, BATCH = 16, 1000, 5, 64
PER_SECOND = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}

Measure = Callable[[Random], float]  # seconds of one of what is measured; equal seeds give equal samples


class Pin(NamedTuple):
    """A figure that may not get worse: what is made once, then measured in every round."""

    unit: str
    make: Callable[[], Measure]
    warm_ups: int = 2  # rounds that are not timed
    rounds: float = 1.0  # for each one that is asked for


def seconds(run: Callable[[], Any], clock: Callable[[], float] = thread_time) -> float:
    """Of a run, of this thread, without collections of garbage."""
    gc.collect()
    gc.disable()
    begin = clock()
    run()
    end = clock()
    gc.enable()
    return end - begin


def each(run: Callable[[Any], None], given: Iterable[Any]) -> None:
    """Run it with everything that is given."""
    for one in given:
        run(one)


class Small:
    """A small model: what is recorded, and read at once."""

    def __init__(self) -> None:
        model = eb.ParameterCollection(seed=0)
        self.W, self.s = model.add_parameters((DIM, DIM)), model.add_parameters(DIM)
        self.table = model.add_lookup_parameters((WORDS, DIM))
        self.lengths = (20 + number * 37 % 101 + number // 101 * 101 for number in count())  # each once, mixed

    @eb.cell
    def compose(self, h1: Any, c1: Any, h2: Any, c2: Any) -> Any:
        """Of two children."""
        c = eb.tanh(self.W @ (h1 + h2)) * c1 + c2
        return eb.tanh(c), c

    def read(self, given: tuple[list[int], list[tuple[int, int]]]) -> None:
        """A graph of 20 nodes: 4 words, 15 steps, each over the last value, and a sum."""
        words, steps = given
        with eb.Graph():
            values = [eb.lookup(self.table, word) for word in words]
            for kind, other in steps:
                last = values[-1]
                values.append((eb.tanh(last), last + values[other], last - values[other])[kind])
            eb.sum(values[-1]).value()

    def matrix(self, n: int) -> Any:
        """Attention over the rows of a matrix."""
        h = eb.tanh(eb.input(np.ones((n, DIM), np.float32)) @ self.W)
        return eb.sum(eb.softmax(h @ self.s) @ h) + eb.sum(eb.max(h, axis=0))

    def list(self, n: int) -> Any:
        """Attention over a list, and its sum."""
        xs = [eb.tanh(eb.lookup(self.table, word)) for word in range(n)]
        return eb.sum(eb.attention(eb.parameter(self.s), xs, xs)) + eb.sum(eb.sum(xs))


def recording(form: Callable[[Small, Any], tuple[Any, ...]]) -> Pin:
    """Calls of a function with the same arguments, in one graph, which is not run."""

    def measure(random: Random) -> float:
        with eb.Graph():
            call, *arguments = form(Small(), eb.input(np.ones(DIM, np.float32)))
            call(*arguments), call(*arguments)
            calls = map(call, *(repeat(argument, CALLS) for argument in arguments))
            return seconds(lambda: deque(calls, 0)) / CALLS

    return Pin("ns", lambda: measure, rounds=4)


def reading(new_words: bool, new_steps: bool) -> Pin:
    """Small graphs, one after another."""

    def make() -> Measure:
        small = Small()

        def graph(random: Random) -> tuple[list[int], list[tuple[int, int]]]:
            for_words, for_steps = (random if is_new else Random(0) for is_new in (new_words, new_steps))
            steps = [(for_steps.randrange(3), for_steps.randrange(4 + step)) for step in range(15)]
            return for_words.choices(range(WORDS), k=4), steps

        def measure(random: Random, graphs: int = GRAPHS) -> float:
            given = [graph(random) for _ in range(graphs)]
            return seconds(lambda: each(small.read, given)) / graphs

        measure(Random(0), 1500)  # after so many in vain, fewer plans are kept
        return measure

    return Pin("us", make, rounds=4)


def lengths(of: Callable[[Small, int], Any]) -> Pin:
    """Graphs whose shapes are new to the process, forward and backward."""

    def make() -> Measure:
        small = Small()

        def run(n: int) -> None:
            with eb.Graph():
                loss = of(small, n)
            loss.backward()
            loss.value()

        def measure(random: Random) -> float:
            given = [next(small.lengths) for _ in range(LENGTHS)]
            return seconds(lambda: each(run, given)) / LENGTHS

        return measure

    return Pin("ms", make, warm_ups=6)


def tree(random: Random, n: int) -> tuple[Any, ...]:
    """Of `n` words: words, children, labels."""
    words: list[int | None] = []
    children: list[tuple[int, ...]] = []

    def grow(n: int) -> int:
        left = random.randrange(1, n) if n > 1 else 0
        below = (grow(left), grow(n - left)) if left else ()
        words.append(None if left else random.randrange(WORDS))
        children.append(below)
        return len(words) - 1

    grow(n)
    return words, children, random.choices(range(LABELS), k=len(words))


def sentence(random: Random, n: int) -> tuple[Any, ...]:
    """Of `n` words: these and tags."""
    return random.choices(range(WORDS), k=n), random.choices(range(LABELS), k=n)


def lattice(random: Random, n: int) -> tuple[Any, ...]:
    """Of `n` characters, with a word for two of them: arcs and tags."""
    arcs: list[list[tuple[int, int]]] = [[]]
    for node in range(1, n + 1):
        begins = [node - 1] if node % 2 else [node - 1, random.randrange(max(0, node - 4), node - 1)]
        arcs.append([(begin, random.randrange(WORDS)) for begin in begins])
    return arcs, random.choices(range(LABELS), k=n + 1)


# By name: the network over its collection and hidden size, a sample of a length, and the lengths, as in real data.
MODELS: dict[str, tuple[Callable[..., Any], Callable[[Random, int], Any], range]] = {
    "tree": (lambda model, hidden: eb.models.TreeLSTM(model, WORDS, LABELS, hidden), tree, range(3, 38)),
    "tagger": (lambda model, hidden: eb.models.BiLSTMTagger(model, WORDS, LABELS, hidden), sentence, range(4, 46)),
    "lattice": (
        lambda model, hidden: eb.models.LatticeLSTM(model, WORDS, WORDS, LABELS, hidden),
        lattice,
        range(5, 80),
    ),
}


def running(name: str, hidden: int, trains: bool, size: int = BATCH) -> Pin:
    """Mini-batches of new samples, all of the same lengths: from the first node to the loss, or updated parameters."""
    network_of, sample, lengths = MODELS[name]
    sizes = [lengths[(2 * number + 1) * len(lengths) // (2 * size)] for number in range(size)]
    runs = TREES if size == 1 else 3 if hidden < 256 else 1

    def make() -> Measure:
        model = eb.ParameterCollection(seed=0)
        network, trainer = network_of(model, hidden), eb.Adam(model, lr=1e-5)

        def run(samples: list[Any]) -> None:
            with eb.Graph():
                loss = eb.sum([network.loss(*sample) for sample in samples])
            if trains:
                loss.backward()
                trainer.update()
            else:
                loss.value()

        def measure(random: Random) -> float:
            given = [[sample(random, n) for n in random.sample(sizes, size)] for _ in range(runs)]
            return seconds(lambda: each(run, given)) / runs

        return measure

    return Pin("ms", make, warm_ups=3)


def new_cell() -> Measure:
    """A cell of a structure that was never seen, forward and backward; time of all threads."""
    W = eb.ParameterCollection(seed=0).add_parameters((DIM, DIM))
    kinds = (eb.tanh, eb.sigmoid, eb.relu, eb.abs)

    def measure(random: Random) -> float:
        ops = Random().sample(3 * kinds, 12)  # in an order of its own: what one checkout compiled the other would find

        @eb.cell
        def step(h: Any, c: Any, x: Any) -> Any:
            h = W @ x + h
            for op in ops:
                h = op(h) - c
            return h, eb.tanh(h) * c

        def run() -> None:
            with eb.Graph():
                loss = eb.sum([eb.sum(part) for part in step(eb.ones(DIM), eb.zeros(DIM), eb.ones(DIM))])
            loss.backward()
            loss.value()

        return seconds(run, process_time)

    return measure


def process(code: Callable[[], str], is_cold: bool) -> Callable[[], Measure]:
    """User time of a process of its own and of its children; cold: with nothing compiled."""

    def measure(random: Random) -> float:
        from resource import RUSAGE_CHILDREN, getrusage  # Windows has none

        with TemporaryDirectory() as folder:
            environment = os.environ | ({"XDG_CACHE_HOME": folder} if is_cold else {})
            begin = getrusage(RUSAGE_CHILDREN).ru_utime
            subprocess.run([sys.executable, "-c", code()], env=environment, check=True, stdout=subprocess.DEVNULL)
            return getrusage(RUSAGE_CHILDREN).ru_utime - begin

    return lambda: measure


PINS = {
    "record-op": recording(lambda small, x: (eb.tanh, eb.tanh(x))),
    "record-cell": recording(lambda small, x: (small.compose, x, x, x, x)),
    "record-lookup": recording(lambda small, x: (eb.lookup, small.table, 3)),
    "record-list": recording(lambda small, x: (eb.sum, [eb.tanh(x) for _ in range(10)])),
    "read-again": reading(new_words=False, new_steps=False),
    "read-other-words": reading(new_words=True, new_steps=False),
    "read-new-structure": reading(new_words=True, new_steps=True),
    "new-matrix-length": lengths(Small.matrix),
    "new-list-length": lengths(Small.list),
    **{f"one-tree-{way}": running("tree", 64, way == "train", size=1) for way in ("forward", "train")},
    **{
        f"{name}-{way}-{hidden}": running(name, hidden, way == "train")
        for name in MODELS
        for way in ("forward", "train")
        for hidden in (64, 256)
    },
    "new-cell": Pin("ms", new_cell, rounds=0.6),
    "import": Pin("s", process(lambda: "import edbatch", is_cold=False), warm_ups=1, rounds=0.6),
    "cold-start": Pin("s", process(lambda: sys.argv[1], is_cold=True), warm_ups=0, rounds=0.2),
}


def main() -> None:
    """Answer until there is nothing more."""
    if (Path.cwd() / "edbatch" / "__init__.py").resolve() != Path(eb.__file__).resolve():
        sys.exit(f"{Path.cwd()}: expected its own library, got {eb.__file__}")
    at, measure = "", None
    for line in sys.stdin:
        name, seed = json.loads(line)
        if name != at:
            at, measure = name, PINS[name].make()
        assert measure is not None
        print(json.dumps(PER_SECOND[PINS[name].unit] * measure(Random(seed))), flush=True)


if __name__ == "__main__":
    main()
