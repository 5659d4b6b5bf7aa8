"""Workers that run out of memory: real processes of which the address space is limited, or that Ray's monitor kills."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from edbatch import EdBatchError
from edbatch.distributed import train
from tests.distributed.nets import Net, started

ROOT = Path(__file__).parents[2]
resource = pytest.importorskip("resource")
ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.cpu, pytest.mark.slow]


class Greedy(Net):
    """In a worker it may have 300 MiB more than it has, and asks for 1 GiB."""

    def __init__(self):
        super().__init__()
        self.here = os.getpid()

    def greedy(self, samples):
        if os.getpid() != self.here:
            with open("/proc/self/statm") as file:
                has = int(file.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (has + 300 * 2**20, has + 300 * 2**20))
            np.ones(2**27)
        return self.losses(samples)


def test_losses_that_need_too_much(tmp_path):
    run = started(tmp_path, Greedy(), "greedy", policy="sufficient")
    with pytest.raises(
        EdBatchError,
        match=r"^train: losses of samples .*: MemoryError: Unable to allocate 1.00 GiB",
    ) as error:
        list(train(run, 1, timeout=60))
    assert isinstance(error.value.__cause__, MemoryError)
    assert run.step == 0


KILLED = """
import sys, time
from edbatch import EdBatchError
from edbatch.distributed import train
from tests.distributed.nets import Net, started
class Slow(Net):
    def slow(self, samples):
        time.sleep(1)
        return self.losses(samples)
run = started(sys.argv[1], Slow(), "slow", policy="sufficient")
try:
    list(train(run, 3, timeout=60))
except EdBatchError as error:
    print(error)
"""


def test_ray_ends_workers_where_memory_is_short(tmp_path):
    """A monitor that finds any use too much."""
    monitor = {"RAY_memory_usage_threshold": "0.001", "RAY_memory_monitor_refresh_ms": "50"}
    env = {**os.environ, "PYTHONPATH": str(ROOT)} | monitor
    found = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path], capture_output=True, text=True, env=env, timeout=200, check=True
    )
    assert found.stdout.startswith("train: a worker was lost 4 times in step ") or "cannot begin" in found.stdout
    assert "low on memory" in found.stdout
