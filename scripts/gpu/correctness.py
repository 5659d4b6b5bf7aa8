"""Whether a device computes what the CPU computes: probabilities, losses and all gradients of a model."""

from __future__ import annotations

from typing import Any

import numpy as np

import edbatch as eb
from scripts.bench.contest import Own, Task

ROUNDING = 1e-6  # of float32 sums in another order, relative to the largest entry
ALLOWED = {"float64": 1e-10, "tf32": 2e-2, "bf16": 1e-1}

Values = dict[str, np.ndarray]


def check(task: Task, device: str, hidden: int, size: int) -> list[dict[str, Any]]:
    """One row per comparison, with the array that differs most.

    A difference is the largest of an array, over the array's largest entry. In float32 the device may be off float64
    by ten times what the CPU is. On a GPU float64 and the lower precisions are compared too, and what CUDA graphs give,
    that are recorded the third time at the same addresses.
    """
    (samples,) = task.mini_batches(size, 1)

    def values(device: str, times: int = 1, **numbers: str) -> Values:
        own = Own(task, hidden, device, **numbers)
        for _ in range(times - 1):
            own.values(samples, policy="sufficient")
        return own.values(samples, policy="sufficient")

    exact, cpu, own = values("cpu", dtype="float64"), values("cpu"), values(device)
    of_rounding = 10 * worst(cpu, exact)[0] + ROUNDING
    compared = [
        ("float32 with the CPU's", own, cpu, of_rounding + worst(cpu, exact)[0]),
        ("float32 with float64", own, exact, of_rounding),
    ]
    if device != "cpu":
        compared.append(("float64 with the CPU's", values(device, dtype="float64"), exact, ALLOWED["float64"]))
        recordings = eb.device(device).backend.recordings
        before = recordings.replayed
        later = values(device, times=6)
        served = f"float32, the sixth time ({recordings.replayed - before} CUDA graphs served), with the first"
        compared.append((served, later, own, of_rounding))
        for precision in ("tf32", "bf16"):
            found = values(device, precision=precision)
            compared.append((f"{precision} with float64", found, exact, ALLOWED[precision]))
    rows = []
    for what, found, expected, allowed in compared:
        off, name = worst(found, expected)
        row = {"model": task.name, "hidden": hidden, "compared": what, "most off": name or "probabilities", "by": off}
        rows.append(row | {"allowed": allowed, "right": off <= allowed})
    return rows


def worst(found: Values, expected: Values) -> tuple[float, str]:
    """The largest difference, and of what; NaN and infinity are the largest of all."""
    differences = {name: difference(found[name], value) for name, value in expected.items()}
    name = max(differences, key=lambda name: differences[name])
    return differences[name], name


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference over the largest entry."""
    largest = np.abs(found.astype(np.float64) - expected).max()
    return float(largest / max(np.abs(expected).max(), 1e-30)) if np.isfinite(largest) else float("inf")
