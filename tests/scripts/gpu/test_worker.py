"""Parts that fail, die, or hang, in a process of their own."""

import os
import signal
from time import sleep

import pytest

from scripts.gpu.worker import Failed, Worker

LONG = 300  # a busy machine takes a while to start a process

pytestmark = pytest.mark.cpu  # other processes


def fail(*words):
    raise ValueError("\n".join(words))


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def odd():
    return lambda: None  # nothing that can be sent


@pytest.fixture
def worker():
    found = Worker()
    yield found
    found.end()


@pytest.mark.parametrize(
    ("part", "given", "seconds", "reason"),
    [
        (fail, ("out of", "memory"), LONG, "^ValueError: out of memory$"),
        (die, (), LONG, r"^its process died \(signal SIGKILL\)$"),
        (os._exit, (3,), LONG, r"^its process died \(exit code 3\)$"),
        (sleep, (LONG,), 0.2, "^took longer than 0 s$"),
        (odd, (), LONG, r"local object .*odd\.<locals>"),
    ],
)
def test_after_one_that_fails_the_next_begins_anew(worker, part, given, seconds, reason):
    before = worker.run(LONG, os.getpid)
    assert before == worker.run(LONG, os.getpid) != os.getpid()
    with pytest.raises(Failed, match=reason):
        worker.run(seconds, part, *given)
    assert worker.run(LONG, os.getpid) != before


def test_a_process_that_dies_between_parts_is_seen(worker):
    os.kill(worker.run(LONG, os.getpid), signal.SIGKILL)
    with pytest.raises(Failed, match="died"):
        worker.run(LONG, os.getpid)
    assert worker.run(LONG, abs, -7) == 7
