"""What a long-running program on a GPU meets: threads, streams, memory that ends, processes that are killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import edbatch as eb
from scripts import ROOT, data_folder
from scripts.bench.contest import Own, Task
from scripts.gpu.correctness import Values, worst

HIDDEN, BATCH, ALLOWED = 64, 16, 1e-4
BUSY = """
import sys
from scripts.gpu.robust import model
own, samples = model(sys.argv[1])
while True:
    own.step(samples)
    print("step", flush=True)
"""


def model(device: str) -> tuple[Own, Any]:
    """A TreeLSTM, and a mini-batch of its samples."""
    task = Task("tree-lstm", 200, data_folder())
    return Own(task, HIDDEN, device), task.mini_batches(BATCH, 1)[0]


def same(found: Values, expected: Values) -> str:
    """What is wrong; "": nothing."""
    off, name = worst(found, expected)
    return "" if off <= ALLOWED else f"{name or 'probabilities'} is off by {off:.2g}"


def checks(device: str) -> list[dict[str, Any]]:
    """One row for each check: whether it is right, and what was seen."""
    own, samples = model(device)
    expected = own.values(samples)
    rows = []
    for check in (_memory, _threads, _other_streams, _out_of_memory, _killed):
        try:
            wrong, seen = check(own, samples, expected)
        except Exception as error:
            wrong, seen = f"{type(error).__name__}: {error}"[:300], ""
        what = (check.__doc__ or "").partition("\n")[0].rstrip(".")
        rows.append({"check": what, "right": not wrong, "wrong": wrong, "seen": seen})
    return rows


def _memory(own: Own, samples: Any, expected: Values) -> tuple[str, str]:
    """No memory is taken by later steps of training."""
    import cupy

    trained, _ = model(own.device)
    held = cupy.get_default_memory_pool().total_bytes
    for _ in range(10):
        trained.step(samples)
    before = held()
    for _ in range(100):
        trained.step(samples)
    return ("" if held() <= before else f"{held() - before} bytes more after 100 steps"), f"{before / 1e6:.0f} MB held"


def _threads(own: Own, samples: Any, expected: Values) -> tuple[str, str]:
    """Four threads with models of their own get what one gets."""

    def run(_: int) -> str:
        mine, _samples = model(own.device)
        want = mine.values(samples)
        return next(filter(None, (same(mine.values(samples), want) for _ in range(5))), "")

    with ThreadPoolExecutor(4) as threads:
        return next(filter(None, threads.map(run, range(4))), ""), "5 mini-batches each"


def _other_streams(own: Own, samples: Any, expected: Values) -> tuple[str, str]:
    """What a user's CuPy code writes to a parameter on the default stream is read, in order."""
    import cupy

    mine, (peer, _) = model(own.device)[0], model("cpu")
    written, twin = next(iter(mine.model)), next(iter(peer.model))
    shared = cupy.from_dlpack(written)
    wrong = ""
    for scale in (np.float32(0.5), np.float32(4)):
        busy = cupy.ones((4096, 4096), np.float32)
        for _ in range(20):
            busy = busy @ busy * 1e-4  # the default stream is behind
        shared *= scale
        written.touch()
        twin.set_value(twin.value() * scale)
        wrong = wrong or same(mine.values(samples), peer.values(samples))
    with cupy.cuda.Stream(non_blocking=True):
        wrong = wrong or same(mine.values(samples), peer.values(samples))
    return wrong, "with work waiting on the default stream, and inside another"


def _out_of_memory(own: Own, samples: Any, expected: Values) -> tuple[str, str]:
    """Without memory there is one error, and afterwards the right numbers."""
    import cupy

    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    pool.set_limit(size=pool.total_bytes() + (16 << 20))  # not the whole GPU, which others may use
    try:
        with eb.device(own.device), eb.Graph():
            eb.sum([eb.input(np.ones(1 << 22, np.float32)) for _ in range(64)]).value()
        error = ""
    except (MemoryError, eb.EdBatchError) as raised:
        error = f"{type(raised).__name__}: {raised}"[:120]
    finally:
        pool.set_limit(size=0)
    return (same(own.values(samples), expected) if error else "there was no error"), error


def _killed(own: Own, samples: Any, expected: Values) -> tuple[str, str]:
    """A process that is killed while it computes leaves others alone."""
    command = [sys.executable, "-c", BUSY, own.device]
    with subprocess.Popen(command, cwd=Path(ROOT), stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        said = other.stdout.readline()
        other.send_signal(signal.SIGKILL)
    if not said:
        return "the other process did not begin", ""
    return same(own.values(samples), expected), "killed in its first steps"
