"""What CUDA graphs save where the same mini-batches come in every epoch."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import edbatch as eb
from edbatch.kernels.cuda.recordings import Recordings
from scripts.bench.contest import Own, Task

EPOCHS = 6


def epochs(task: Task, device: str, batch: int, hidden: int, n: int) -> list[dict[str, Any]]:
    """One row for each epoch of training with `n` mini-batches: milliseconds a step, with CUDA graphs and without.

    Each epoch ends with a wait. MB: of the device's memory, taken in that epoch.
    """
    batches = task.mini_batches(batch, n)
    rows: list[dict[str, Any]] = []
    place = {"model": task.name, "batch": batch, "hidden": hidden, "mini-batches": n}
    for record in (False, True):
        backend = eb.device(device).backend
        backend.recordings = Recordings(backend._driver)
        own = Own(task, hidden, device)
        for epoch in range(EPOCHS):
            before = backend.recordings.recorded, backend.recordings.replayed
            free = _free(backend)
            start = perf_counter()
            with eb.options(record=record):
                for samples in batches:
                    own.step(samples)
            device.synchronize()
            ms = 1e3 * (perf_counter() - start) / n
            if not record:
                rows.append({**place, "epoch": epoch + 1, "ms, no graphs": ms})
                continue
            recorded, replayed = backend.recordings.recorded - before[0], backend.recordings.replayed - before[1]
            megabytes = (free - _free(backend)) / 1e6
            rows[epoch] |= {"ms": ms, "recorded": recorded, "replayed": replayed, "MB": megabytes}
    return rows


def _free(backend: Any) -> int:
    runtime = getattr(backend._driver.xp, "cuda", None)
    return int(runtime.runtime.memGetInfo()[0]) if runtime else 0  # an emulated GPU has none
