"""The parts of `scripts.gpu.check`, as a process of their own runs them: each gets the tasks first."""

from __future__ import annotations

import gc
import importlib.util
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from edbatch.experiments import machine as host
from edbatch.experiments.measure import message
from edbatch.experiments.peers.tasks import MODELS, Task
from scripts.gpu.ceilings import hardware_ceilings
from scripts.gpu.correctness import check
from scripts.gpu.measure import run_point
from scripts.gpu.points import Point


class Tasks(dict[str, Task]):
    """By name; the data is read when a task is first asked for, or made up without a folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def __missing__(self, name: str) -> Task:
        found = self[name] = MODELS[name](self._folder)
        gc.collect()
        gc.freeze()  # the data stays; the collector's work is then that of what is measured
        return found


def tasks_for(device: str, folder: Path | None) -> Tasks:
    """What all parts get; readies the process for the device."""
    if device == "cpu":
        torch.set_num_threads(1)
    else:
        torch.cuda.set_device(torch.device(device).index or 0)
    return Tasks(folder)


def machine(_: Tasks, device: str) -> dict[str, Any]:
    """Machine, GPU, versions."""
    found: dict[str, Any] = {"device": device, **host.machine()}
    if device == "cpu":
        return found
    where = torch.device(device).index or 0
    properties = torch.cuda.get_device_properties(where)
    found |= {
        "GPU": properties.name,
        "multiprocessors": properties.multi_processor_count,
        "memory, GB": 1e-9 * properties.total_memory,
        "compute capability": f"{properties.major}.{properties.minor}",
        "CUDA of PyTorch": torch.version.cuda,
        "cuDNN": torch.backends.cudnn.version(),
    }
    asked = ["nvidia-smi", f"--id={where}", "--query-gpu=driver_version,clocks.max.sm,clocks.max.mem",
             "--format=csv,noheader"]  # fmt: skip
    try:
        said = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
        found |= dict(zip(("driver", "largest SM clock", "largest memory clock"), said.split(", "), strict=False))
    except (OSError, subprocess.SubprocessError) as error:
        found["driver"] = f"unknown ({type(error).__name__})"
    if importlib.util.find_spec("cupy"):
        try:
            import cupy

            found |= {"cupy": cupy.__version__, "CUDA of CuPy": cupy.cuda.runtime.runtimeGetVersion()}
        except Exception as error:  # of a CuPy that is broken, of any kind
            found["cupy"] = message(error)
    return found


def correctness(tasks: Tasks, name: str, device: str, hidden: int, size: int) -> list[dict[str, Any]]:
    """Rows; see `correctness.check`."""
    return check(tasks[name], device, hidden, size)


def ceilings(_: Tasks, device: str, quick: bool) -> dict[str, float]:
    """See `hardware_ceilings`."""
    return hardware_ceilings(device, quick)


def measured(tasks: Tasks, point: Point, device: str, ceilings: dict[str, float], rounds: int) -> list[dict[str, Any]]:
    """Rows; see `measure.run_point`. Afterwards the memory is free for the next."""
    rows = run_point(point, tasks[point.model], device, ceilings, rounds, seconds=4)
    gc.collect()
    if device != "cpu":
        with suppress(Exception):  # where the rows say what is broken
            import cupy

            torch.cuda.empty_cache()  # each has a pool of its own, of which the other gets nothing
            cupy.get_default_memory_pool().free_all_blocks()
    return rows
