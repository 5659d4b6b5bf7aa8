"""Parts that fail, die, or hang, in a process of their own."""

import os
import signal
from time import perf_counter, sleep

import pytest

from scripts.gpu.worker import Elsewhere, Failed, Here

LONG = 300  # a busy machine takes a while to start a process


def state(value):
    return {"value": value, "process": os.getpid()}


def no_state():
    raise FileNotFoundError("train.txt")


def look(state):
    return dict(state)


def change(state, value):
    state["value"] = value


def fail(state, *words):
    raise ValueError("\n".join(words))


def die(state):
    os.kill(os.getpid(), signal.SIGKILL)


def leave(state):
    os._exit(3)


def hang(state):
    sleep(LONG)


def odd(state):
    return lambda: None  # nothing that can be sent


@pytest.fixture
def worker():
    found = Elsewhere(perf_counter() + LONG, state, 7)
    yield found
    found.renew()


def test_parts_run_in_one_process(worker):
    first = worker.run(LONG, look)
    assert first["value"] == 7
    assert first["process"] != os.getpid()
    worker.run(LONG, change, 8)
    assert worker.run(LONG, look) == {**first, "value": 8}
    worker.renew()
    assert worker.run(LONG, look)["process"] != first["process"]


@pytest.mark.parametrize(
    ("part", "given", "seconds", "reason"),
    [
        (fail, ("out of", "memory"), LONG, "^ValueError: out of memory$"),
        (die, (), LONG, r"^its process died \(signal SIGKILL\)$"),
        (leave, (), LONG, r"^its process died \(exit code 3\)$"),
        (hang, (), 0.2, "^took longer than 0 s$"),
        (odd, (), LONG, r"local object .*odd\.<locals>"),
    ],
)
def test_after_one_that_fails_the_next_begins_anew(worker, part, given, seconds, reason):
    before = worker.run(LONG, look)
    with pytest.raises(Failed, match=reason):
        worker.run(seconds, part, *given)
    after = worker.run(LONG, look)
    assert after["value"] == 7
    assert after["process"] != before["process"]


def test_a_process_that_dies_between_parts_is_seen(worker):
    os.kill(worker.run(LONG, look)["process"], signal.SIGKILL)
    with pytest.raises(Failed, match="died"):
        worker.run(LONG, look)
    assert worker.run(LONG, look)["value"] == 7


def test_when_time_is_over_everything_ends():
    worker = Elsewhere(perf_counter() + 2, state, 7)
    begin = perf_counter()
    for _ in range(3):
        with pytest.raises(Failed, match="took longer than"):
            worker.run(LONG, hang)
    assert perf_counter() - begin < LONG / 4


def test_state_that_cannot_be_made_is_told():
    worker = Elsewhere(perf_counter() + LONG, no_state)
    with pytest.raises(Failed, match=r"^no process to run it in: FileNotFoundError: train.txt$"):
        worker.run(LONG, look)


def test_the_same_in_this_process():
    here = Here(0, state, 7)
    here.run(0, change, 8)
    assert here.run(0, look) == {"value": 8, "process": os.getpid()}
    with pytest.raises(Failed, match=r"^ValueError: no$"):
        here.run(0, fail, "no")
    here.renew()
    assert here.run(0, look)["value"] == 8
