"""Serving: throughput of 64 requests in flight beside one at a time, and what a request waits for beside a bare call.

    python -m scripts.bench.serving [--json] [--rounds 5] [--hidden 64 256] [--requests 256]

A request is a sentence of 5 to 24 words; the answer has as many, said greedily by an encoder-decoder with made-up
weights. Clients are tasks of one event loop, each of which asks again when it has its answer.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from time import perf_counter
from typing import Any

import edbatch as eb
from edbatch.experiments.measure import interleaved
from edbatch.models import EncoderDecoder, generation
from edbatch.serving import Batcher
from scripts.bench.programs import NEVER, WORDS, source
from scripts.bench.report import Tables, command, figure

CLIENTS = (1, 8, 64)


class Served:
    """Requests, and ways to answer them."""

    def __init__(self, hidden: int, requests: int) -> None:
        self.network = EncoderDecoder(eb.ParameterCollection(seed=0), WORDS, WORDS, hidden)
        self.network.end = NEVER
        self.sources = [source(k) for k in range(requests)]

    def program(self, words: list[int]) -> Any:
        """Says as many words."""
        return generation.greedy(self.network, words, len(words))

    def bare(self) -> dict[str, float]:
        """Calls one after the other, without a batcher; figures of a request."""
        seconds = []
        with eb.options(training=False):
            for words in self.sources:
                begun = perf_counter()
                eb.run([self.program(words)])
                seconds.append(perf_counter() - begun)
        return _figures(seconds)

    def batched(self, clients: int) -> dict[str, float]:
        """Requests of so many clients at a time; figures of a request, and of the rounds."""

        async def client(batcher: Batcher, waiting: list[list[int]], seconds: list[float]) -> None:
            while waiting:
                words = waiting.pop()
                begun = perf_counter()
                await batcher(words)
                seconds.append(perf_counter() - begun)

        async def main() -> dict[str, float]:
            waiting, seconds = self.sources[::-1], list[float]()
            async with Batcher(self.program, max_in_flight=max(CLIENTS)) as batcher:
                await asyncio.gather(*[client(batcher, waiting, seconds) for _ in range(clients)])
                counters = batcher.counters
            return _figures(seconds) | {"rounds": counters.rounds, "batches": counters.batches}

        return asyncio.run(main())


def _figures(seconds: list[float]) -> dict[str, float]:
    ms = [1e3 * one for one in seconds]
    return {"median, ms": statistics.median(ms), "99 %, ms": statistics.quantiles(ms, n=100)[-1]}


def of_size(hidden: int, given: argparse.Namespace) -> Tables:
    """A model's figures."""
    served = Served(hidden, given.requests)
    runs = interleaved(
        {"bare call": served.bare} | {f"{n} in flight": lambda n=n: served.batched(n) for n in CLIENTS}, given.rounds
    )
    rows = [
        {"": name, "requests a second": given.requests / run.seconds, **run.medians()} for name, run in runs.items()
    ]
    one, many = runs["1 in flight"], runs[f"{CLIENTS[-1]} in flight"]
    bare = runs["bare call"].medians()["median, ms"]
    figures = [
        figure("throughput at 64 in flight, times that of one", one.seconds / many.seconds, ">= 6"),
        figure("latency at one in flight, times a bare call", one.medians()["median, ms"] / bare, "<= 1.3"),
    ]
    return {
        f"{given.requests} requests, hidden {hidden}": rows,
        f"Figures asked for: serving, hidden {hidden}": figures,
    }


def tables(given: argparse.Namespace) -> Tables:
    """Everything that is measured."""
    found: Tables = {}
    for hidden in given.hidden:
        found |= of_size(hidden, given)
    return found


main = command(
    __doc__,
    tables,
    rounds=5,
    hidden=(64, 256),
    requests={"type": int, "default": 256, "help": "in a run (default: 256)"},
)

if __name__ == "__main__":
    main()
