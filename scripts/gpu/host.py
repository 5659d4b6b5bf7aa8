"""What a mini-batch costs the host before a GPU has all of it, on any machine: what would be enqueued does nothing.

The GPU backend runs as it is, on a driver whose `cuLaunchKernel` and cuBLAS return at once, and whose arrays are
NumPy's. Values mean nothing; host times are those of EdBatch without NVIDIA's driver (some microseconds a launch more).
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any

import numpy as np
from numba import cfunc, types

import edbatch as eb
from edbatch.kernels.cuda import backend as cuda_backend
from scripts import data_folder
from scripts.bench import report as bench
from scripts.peers.tasks import Task, all_tasks


@cfunc(types.int32())
def nothing() -> int:
    """Success, whatever it is called with: in C, who calls puts the arguments away."""
    return 0


class NothingDriver:
    """A `Driver` that does nothing; see `edbatch.kernels.cuda.driver`."""

    name, xp, processors, stream, blas = "cuda:0", np, 132, 1, 1

    launch = gemm = gemm_strided = nothing.address

    def load(self, source: str, names: Sequence[str]) -> list[int]:
        """Handles that are never called."""
        return [1] * len(names)

    def empty(self, entries: int, dtype: np.dtype) -> Any:
        """An array."""
        return np.empty(entries, dtype)

    def address(self, array: Any) -> int:
        """Where an array's entries begin."""
        return array.__array_interface__["data"][0]

    def upload(self, host: np.ndarray, target: Any) -> None:
        """A copy, as into pinned memory."""
        np.copyto(target, host)

    def download(self, array: Any) -> np.ndarray:
        """A copy."""
        return array.copy()

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def active(self) -> AbstractContextManager[Any]:
        """Nothing to make current."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def capture(self) -> Iterator[Any]:
        """No mini-batch comes again here."""
        raise NotImplementedError
        yield


def measure(task: Task, size: int, hidden: int, rounds: int) -> dict[str, Any]:
    """Median milliseconds of a mini-batch by stage, forward; and of forward and backward together."""
    model = eb.ParameterCollection(seed=0)
    network = task.network(model, hidden)
    forward: list[list[float]] = []
    both: list[float] = []
    warm_up = 4
    for samples in task.mini_batches(size, warm_up + rounds):
        start = perf_counter()
        with eb.Graph() as graph:
            for sample in samples:
                for h in network.hidden(*sample[:-1]):
                    network.probabilities(h)
        recorded = perf_counter()
        graph.run()
        end = perf_counter()
        report = graph.report()
        stages = [report.seconds.get(stage, 0.0) for stage in ("lowering", "scheduling", "planning", "execution")]
        forward.append([1e3 * x for x in (recorded - start, *stages, end - start)] + [report.batches])
        start = perf_counter()
        with eb.Graph() as graph:
            loss = eb.sum([network.loss(*sample) for sample in samples])
        loss.backward()
        both.append(1e3 * (perf_counter() - start))
        model.zero_grad()
    columns = [statistics.median(column) for column in zip(*forward[warm_up:], strict=True)]
    names = ("recording", "lowering", "scheduling", "planning", "enqueueing", "forward", "batches")
    return {
        "model": task.name,
        "batch": size,
        **dict(zip(names, columns, strict=True)),
        "forward, backward": statistics.median(both[warm_up:]),
    }


def main(arguments: argparse.Namespace) -> None:
    """Print the table."""
    cuda_backend.open_backend = lambda number: cuda_backend.CudaBackend(NothingDriver())  # type: ignore[assignment]
    with eb.device("cuda"):
        rows = [
            measure(task, size, 256, arguments.rounds)
            for task in all_tasks(data_folder()).values()
            for size in (1, 10, 64)
        ]
    bench.finish({"Host time of a mini-batch, hidden 256, in ms": rows}, arguments.json)


if __name__ == "__main__":
    main(bench.arguments(__doc__ or ""))
