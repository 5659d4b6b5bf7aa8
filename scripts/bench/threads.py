"""Several threads against one: models forward and training, on cores that are free or beside busy processes.

    EDBATCH_DATA=... python -m scripts.bench.threads [--json] [--rounds 15] [--hidden 256] [--batch 64] [--busy 2]

All from recording on, of one mini-batch, for each number of threads in turns: the fastest of all rounds, since whoever
else computes makes the others slower; the load that there was is said. With `--busy` so many processes compute beside
it. What cuts cost one thread is in the table of products: the same product in one piece. Without EDBATCH_DATA the
samples are made up.
"""

from __future__ import annotations

import argparse
import gc
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from tqdm import tqdm

import edbatch as eb
from edbatch.experiments.measure import Runs, interleaved
from edbatch.experiments.peers.own import Own
from edbatch.experiments.peers.tasks import MODELS
from edbatch.kernels.cpu import pool
from edbatch.kernels.cpu.emitter import multiply_rows
from edbatch.kernels.cpu.products import Gemm, multiply
from edbatch.kernels.tables import Matrix, Sizes
from scripts import data_folder
from scripts.bench.first_hour import busy
from scripts.bench.mini_batches import source
from scripts.bench.report import Tables, command

THREADS = {"1 thread": 1, "2 threads": 2, "4 threads": 4}
PRODUCTS = ((64, 256, 1024), (64, 1024, 256), (64, 512, 2048), (256, 256, 1024), (1024, 256, 1024))
MULTIPLICATIONS = 200_000_000  # of a timed run of products


def by_threads(run: Callable[[], Any], rounds: int) -> dict[str, Runs]:
    """Timed with each number of threads."""

    def with_threads(threads: int) -> Callable[[], None]:
        def timed() -> None:
            with eb.options(threads=threads):
                run()

        return timed

    return interleaved({name: with_threads(threads) for name, threads in THREADS.items()}, rounds, warm_ups=3)


def row(runs: dict[str, Runs], **first: Any) -> dict[str, Any]:
    """The fastest of all, and how many times as fast as one thread the others are."""
    fastest = {name: min(of.wall) for name, of in runs.items()}
    one = fastest["1 thread"]
    times = {f"{name}, times as fast": one / seconds for name, seconds in fastest.items() if name != "1 thread"}
    return {**first, "1 thread, ms": 1e3 * one, **times, "load": os.getloadavg()[0]}


def model(name: str, hidden: int, batch: int, rounds: int) -> list[dict[str, Any]]:
    """One mini-batch, forward, and a step of training."""
    task = MODELS[name](data_folder())
    own, samples = Own(task, hidden, optimizer=lambda model: eb.Adam(model, lr=1e-4)), task.samples[:batch]
    gc.freeze()  # the data is no garbage
    runs = {"forward": lambda: own.loss(samples).value(), "training": lambda: own.step(samples)}
    about = {"model": name, "hidden": hidden, "batch": batch}
    return [row(by_threads(run, rounds), **about, run=what) for what, run in runs.items()]


def product(m: int, k: int, n: int, rounds: int) -> dict[str, Any]:
    """A product of float32."""
    random = np.random.default_rng(0)
    x, w, out = (random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n), (m, n)))
    matrices = [Matrix(array.ctypes.data, array.shape[1], 0) for array in (x, w, out)]
    sizes, table, times = Sizes(m, n, k), pool.device(), max(1, MULTIPLICATIONS // (m * n * k))

    def whole() -> None:
        for _ in range(times):
            multiply(Gemm(table.item(0), 4), sizes, *matrices, 0)

    def cut(threads: int) -> Callable[[], None]:
        def run() -> None:
            with pool.Computing(threads):
                for _ in range(times):
                    multiply_rows(table, 4, sizes, *matrices, 0)

        return run

    runs = interleaved({"one piece": whole} | {name: cut(threads) for name, threads in THREADS.items()}, 2 * rounds)
    piece = min(runs.pop("one piece").wall)
    found = row(runs, product=f"[{m}, {k}] x [{k}, {n}]")
    found = {name.replace("ms", "us"): value for name, value in found.items()}
    found["1 thread, us"] *= 1e3 / times
    return {**found, "1 thread over one piece": min(runs["1 thread"].wall) / piece}


def tables(options: argparse.Namespace) -> Tables:
    """Everything."""
    names = options.model or [*MODELS]
    points = [(name, hidden, batch) for name in names for hidden in options.hidden for batch in options.batch]
    beside = f", beside {options.busy} busy processes" if options.busy else ""
    with busy(options.busy):
        models = [found for point in tqdm(points, disable=None) for found in model(*point, options.rounds)]
        products = [product(*sizes, options.rounds) for sizes in PRODUCTS]
    return {f"Threads on {source()}{beside}": models, f"Products{beside}": products}


main = command(
    __doc__,
    tables,
    rounds=15,
    model={"nargs": "+", "choices": [*MODELS], "help": "default: all"},
    hidden=(64, 256, 512),
    batch=(64, 256),
    busy={"type": int, "default": 0, "help": "processes that compute beside it (default: none)"},
)

if __name__ == "__main__":
    main()
