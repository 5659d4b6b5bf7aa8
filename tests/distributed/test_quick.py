"""One training by real workers, on a Ray of its own; other such tests are slow: `pytest -m slow tests/distributed`."""

import os
import signal
import threading
import time

import pytest

from edbatch.distributed import train
from tests.distributed.nets import difference, started

ray = pytest.importorskip("ray")


@pytest.mark.cpu
def test_two_workers_of_which_one_is_killed_make_the_updates_of_one_process(tmp_path):
    whole, run = started(tmp_path / "whole"), started(tmp_path)
    list(whole.epochs(2))
    training = train(run, 2, workers=2)

    def kill():
        while run.step < 4:
            time.sleep(0.001)
        os.kill(training.report.processes[1], signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
    assert [found["epoch"] for found in training] == [1, 2]
    assert training.report.replaced == 1
    assert difference(run, whole) < 1e-5
    assert training.report.bytes_per_step > 0
    assert "2 workers" in str(training.report)
    assert not ray.is_initialized()
