"""Training by real workers: one process's numbers, whatever is killed; and what a stranger does wrong."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import edbatch as eb
from edbatch import EdBatchError
from edbatch.distributed import train
from edbatch.distributed.cluster import WorkerLost
from edbatch.distributed.team import Team
from tests.distributed.nets import SAMPLES, Net, difference, started

ROOT = Path(__file__).parents[2]
ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.cpu, pytest.mark.slow]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Of one process."""
    run = started(tmp_path_factory.mktemp("whole"))
    list(run.epochs(2))
    return run


def test_two_workers_and_one_process_go_on_with_the_run_of_each_other(one_cluster, tmp_path, whole):
    run = started(tmp_path, evaluate=lambda: {"steps": len(run.curve.losses)})
    training = train(run, 1, workers=2)
    assert [found["steps"] for found in training] == [5]
    assert training.report.steps == 5
    assert training.report.bytes_per_step > 0
    assert "2 workers, 5 steps" in str(training.report)
    again = started(tmp_path, evaluate=lambda: {"steps": 0})
    list(again.epochs(2))  # without workers
    assert difference(again, whole) < 1e-5
    assert ray.is_initialized()


def killing(training, run, at, what):
    """A thread that does something to the processes of the workers after so many steps."""

    def kill():
        while run.step < at:
            time.sleep(0.001)
        what(training.report.processes)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("number", range(10))
def test_workers_killed_in_the_middle_of_a_step(one_cluster, tmp_path, whole, number):
    """At any time of a step, one worker or both, by SIGKILL, or stopped so that it hangs."""
    rng = np.random.default_rng(number)
    run = started(tmp_path)
    training = train(run, 2, workers=2, timeout=20 if number % 5 == 4 else 60)

    def act(processes):
        time.sleep(rng.random() * 0.05)
        for process in processes if number % 5 == 3 else rng.permutation(processes)[:1].tolist():
            os.kill(process, signal.SIGSTOP if number % 5 == 4 else signal.SIGKILL)

    thread = killing(training, run, int(rng.integers(1, 8)), act)
    assert [found["epoch"] for found in training] == [1, 2]
    thread.join()
    assert training.report.replaced >= 1
    assert difference(run, whole) < 1e-5
    assert difference(started(tmp_path), whole) < 1e-5  # of the checkpoint


def test_an_error_of_losses(one_cluster, tmp_path):
    run = started(tmp_path, losses="failing", policy="sufficient")
    with pytest.raises(EdBatchError, match=r"^train: losses of sample \d+: KeyError: 2") as error:
        list(train(run, 1))
    assert "in failing" in error.value.__notes__[0]
    assert (run.step, run.curve.losses) == (0, [])


def test_a_worker_that_is_lost_while_another_is_replaced(one_cluster, tmp_path, whole, monkeypatch):
    run = started(tmp_path)
    training = train(run, 2, workers=2, timeout=120)
    recovered, begun = Team._recovered, []

    def recovered_twice(team, saved):
        told = recovered(team, saved)
        begun.append(team)
        if len(begun) in (2, 3):
            os.kill(training.report.processes[0], signal.SIGKILL)
            raise WorkerLost("again")
        return told

    monkeypatch.setattr(Team, "_recovered", recovered_twice)
    killing(training, run, 4, lambda found: os.kill(found[1], signal.SIGKILL))
    assert len(list(training)) == 2
    assert difference(run, whole) < 1e-5
    assert len(begun) == 4


class Unreadable:
    """Data of which one sample cannot be read."""

    def __len__(self):
        return 26

    def __getitem__(self, at):
        if at == 11:
            raise OSError("the disk is gone")
        return SAMPLES[at]


def test_a_sample_that_cannot_be_read(one_cluster, tmp_path, whole):
    run = started(tmp_path, data=Unreadable(), save_every=1, policy=whole.policy)
    with pytest.raises(EdBatchError, match=r"^train: sample 11 cannot be read \(OSError: the disk is gone\)"):
        list(train(run, 2))
    again = started(tmp_path)
    assert again.step == run.step
    list(train(again, 2))
    assert difference(again, whole) < 1e-5


def test_what_cannot_be_pickled(one_cluster, tmp_path):
    net, lock = Net(), threading.Lock()

    def losses(samples):
        with lock:
            return net.losses(samples)

    run = eb.Run(tmp_path, net.model, eb.SGD(net.model), losses, SAMPLES)
    with pytest.raises(
        EdBatchError, match=r"^train: the function of losses, with all that it refers to, cannot be pickled, .*lock"
    ):
        list(train(run, 1))


def test_a_closure_and_a_lambda_are_sent(one_cluster, tmp_path):
    net = Net()
    run = eb.Run(
        tmp_path, net.model, eb.SGD(net.model, lr=lambda step: 0.1), lambda samples: net.losses(samples), SAMPLES
    )
    [figures] = train(run, 1, workers=3)
    assert np.isfinite(figures["loss"])


def test_a_gradient_that_is_not_finite(one_cluster, tmp_path):
    net = Net()
    net.odd.set_value(np.full((4, 4), np.inf))
    run = started(tmp_path, net)
    with pytest.raises(EdBatchError, match=r"Adam.update: NaN or infinite gradient of"):
        list(train(run, 1))
    assert started(tmp_path / "b").step == 0


PROGRAM = """
import os, signal, sys, threading, time
from edbatch import EdBatchError
from edbatch.distributed import train
from tests.distributed.nets import started
run = started(sys.argv[1])
training = train(run, 400, workers=2, timeout=120)
def act():
    while run.step < 7: time.sleep(0.001)
    {act}
threading.Thread(target=act, daemon=True).start()
try:
    list(training)
except (KeyboardInterrupt, EdBatchError) as error:
    print(type(error).__name__, error)
print(run.step % 3 == 0 or run.step % 5 == 0, 0 < run.step < 2000, len(run.curve.losses) == run.step)
"""
HEAD = """
    for process in os.listdir("/proc"):
        try:
            name = open(f"/proc/{process}/cmdline").read()
        except OSError:
            continue
        program = name.split(chr(0))[0]  # this process has the name in an argument
        if program.endswith("gcs_server") and os.getpgid(int(process)) == os.getpgid(0):
            os.kill(int(process), signal.SIGKILL)
"""


def ended(tmp_path, act):
    code = PROGRAM.replace("{act}", act.strip())
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, env=env, timeout=400, check=True,
        process_group=0,
    )  # fmt: skip
    return found.stdout.splitlines()


def test_an_interrupt_ends_it_and_a_checkpoint_is_left(tmp_path):
    lines = ended(tmp_path, "os.kill(os.getpid(), signal.SIGINT)")
    assert lines[-2:] == ["KeyboardInterrupt ", "True True True"]
    found = started(tmp_path)
    whole = started(tmp_path / "whole")
    list(found.epochs(3))
    list(whole.epochs(3))
    assert found.step >= 15
    assert np.abs(np.subtract(found.curve.losses[:15], whole.curve.losses[:15])).max() < 1e-5


def test_a_head_that_is_gone_ends_it_with_one_error(tmp_path):
    lines = ended(tmp_path, HEAD)
    assert lines[-2:] == ["EdBatchError train: the cluster's head node does not answer; keep it running until the end",
                          "True True True"]  # fmt: skip
    assert started(tmp_path).step > 0
