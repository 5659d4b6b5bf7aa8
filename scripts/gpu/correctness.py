"""Whether a device computes what the CPU computes: probabilities, losses and all gradients of three models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.experiments.peers.tasks import Task

ROUNDING = 1e-6  # of float32 sums in another order, relative to the largest entry
ALLOWED = {"float64": 1e-10, "tf32": 2e-2, "bf16": 1e-1}


def check(task: Task, device: str, hidden: int, size: int) -> list[dict[str, Any]]:
    """One row per comparison, with the array that differs most.

    A difference is the largest of an array, over the array's largest entry. In float32 the device may be off float64
    by ten times what the CPU is. On a GPU float64 and the lower precisions are compared too, and what CUDA graphs give,
    that are recorded the second time and served the third.
    """
    (samples,) = task.mini_batches(size, 1)
    exact = values(task, samples, hidden, "cpu", "float64")
    cpu = values(task, samples, hidden, "cpu")
    own = values(task, samples, hidden, device)
    of_rounding = 10 * worst(cpu, exact)[0] + ROUNDING
    rows = [
        _row(task, hidden, "float32 with the CPU's", own, cpu, of_rounding + worst(cpu, exact)[0]),
        _row(task, hidden, "float32 with float64", own, exact, of_rounding),
    ]
    if device != "cpu":
        of_device = values(task, samples, hidden, device, "float64")
        rows.append(_row(task, hidden, "float64 with the CPU's", of_device, exact, ALLOWED["float64"]))
        recordings = eb.device(device).backend.recordings
        before = recordings.replayed
        third = values(task, samples, hidden, device, times=3)
        what = f"float32, the third time ({recordings.replayed - before} CUDA graphs served), with the first"
        rows.append(_row(task, hidden, what, third, own, of_rounding))
        for precision in ("tf32", "bf16"):
            with eb.options(precision=precision):
                found = values(task, samples, hidden, device)
            rows.append(_row(task, hidden, f"{precision} with float64", found, exact, ALLOWED[precision]))
    return rows


def values(
    task: Task, samples: Sequence[Any], hidden: int, device: str, dtype: str = "float32", times: int = 1
) -> dict[str, np.ndarray]:
    """Probabilities of a forward run, the loss of another, and the gradients that follow from it; the last time."""
    with eb.device(device):
        model = eb.ParameterCollection(seed=0, dtype=dtype)
        network = task.network(model, hidden)
        for _ in range(times):
            with eb.Graph(policy="sufficient", dtype=dtype):
                found = [network.probabilities(h) for sample in samples for h in network.hidden(*sample[:-1])]
            probabilities = np.array(eb.forward(found))
            with eb.Graph(policy="sufficient", dtype=dtype):
                loss = eb.sum([network.loss(*sample) for sample in samples])
            model.zero_grad()
            loss.backward()
            computed = {"probabilities": probabilities, "loss": np.asarray(loss.value())}
            computed |= {f"gradient of {parameter.name}": on_host(parameter.grad()) for parameter in model}
            del found, loss  # their memory is what the next time finds
        return computed


def on_host(array: Any) -> np.ndarray:
    """A NumPy array of CuPy's or NumPy's."""
    return array.get() if hasattr(array, "get") else np.asarray(array)


def worst(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> tuple[float, str]:
    """The largest difference, and of what; NaN and infinity are the largest of all."""
    differences = {name: difference(found[name], value) for name, value in expected.items()}
    name = max(differences, key=lambda name: differences[name])
    return differences[name], name


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference over the largest entry."""
    largest = np.abs(found.astype(np.float64) - expected).max()
    return float(largest / max(np.abs(expected).max(), 1e-30)) if np.isfinite(largest) else float("inf")


def _row(
    task: Task, hidden: int, what: str, found: dict[str, np.ndarray], expected: dict[str, np.ndarray], allowed: float
) -> dict[str, Any]:
    off, name = worst(found, expected)
    return {
        "model": task.name, "hidden": hidden, "compared": what, "most off": name, "by": off, "allowed": allowed,
        "right": off <= allowed,
    }  # fmt: skip
