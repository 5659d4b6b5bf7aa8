"""What a mini-batch costs the host before a GPU has all of it, on any machine: what would be enqueued does nothing.

The GPU backend runs as it is, on a driver whose `cuLaunchKernel` and cuBLAS return at once, and whose arrays are
NumPy's. Values mean nothing; host times are those of EdBatch without NVIDIA's driver (some microseconds a launch more).
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any

import numpy as np
from numba import cfunc, types

from edbatch.experiments.measure import STAGES, interleaved
from edbatch.experiments.peers.own import Own
from edbatch.experiments.peers.tasks import MODELS, Task
from edbatch.kernels.cuda import backend as cuda_backend
from scripts import data_folder
from scripts.bench.report import Tables, command


@cfunc(types.int32())
def nothing() -> int:
    """Success, whatever it is called with: in C, who calls puts the arguments away."""
    return 0


class NothingRecorded:
    """A `Recording` of nothing."""

    stream, blas = 1, 1

    def launch(self) -> None:
        """Nothing was recorded."""


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
    def capture(self) -> Iterator[NothingRecorded]:
        """Of a mini-batch that comes again: small ones do, without a loop that repeats them."""
        yield NothingRecorded()


def host_times(task: Task, size: int, hidden: int, rounds: int) -> dict[str, Any]:
    """Median milliseconds of a mini-batch by stage, forward; and of forward and backward together."""
    own = Own(task, hidden, device="cuda")
    warm_up = 4
    mini_batches = task.mini_batches(size, warm_up + rounds)

    def forward(samples: list[Any]) -> dict[str, float]:
        start = perf_counter()
        graph = own.recorded(samples)
        recorded = perf_counter()
        graph.run()
        end = perf_counter()
        report = graph.report()
        stages = [report.seconds.get(stage, 0.0) for stage in STAGES[1:]]
        named = dict(zip(("lowering", "scheduling", "planning", "enqueueing"), stages, strict=True))
        seconds = {"recording": recorded - start, **named, "forward": end - start}
        return {stage: 1e3 * value for stage, value in seconds.items()} | {"batches": report.batches}

    def both(samples: list[Any]) -> dict[str, float]:
        start = perf_counter()
        own.loss(samples).backward()
        found = {"forward, backward": 1e3 * (perf_counter() - start)}
        own.model.zero_grad()
        return found

    runs = interleaved({"forward": forward, "both": both}, rounds, mini_batches.__getitem__, warm_up)
    return {"model": task.name, "batch": size, **runs["forward"].medians(), **runs["both"].medians()}


def nothing_runs() -> None:
    """From now on, the GPU is one that does nothing."""
    cuda_backend.open_backend = lambda number: cuda_backend.CudaBackend(NothingDriver())  # type: ignore[assignment]


def tables(options: argparse.Namespace) -> Tables:
    """Everything."""
    nothing_runs()
    tasks = [kind(data_folder()) for kind in MODELS.values()]
    rows = [
        host_times(task, size, hidden, options.rounds)
        for hidden in options.hidden
        for task in tasks
        for size in options.batch
    ]
    return {f"Host time of a mini-batch, hidden {', '.join(map(str, options.hidden))}, in ms": rows}


main = command(__doc__, tables, hidden=(256,), batch=(1, 10, 64))

if __name__ == "__main__":
    main()
