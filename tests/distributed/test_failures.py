"""Errors of the caller's code name the place and have their cause, wherever it is called; without Ray."""

import pickle
import threading

import numpy as np
import pytest

import edbatch as eb
from edbatch import EdBatchError
from edbatch.distributed.failures import failed, to_send
from edbatch.distributed.mapper import Mapper
from edbatch.distributed.report import Report
from edbatch.distributed.steps import Steps, Way
from edbatch.distributed.worker import Worker
from edbatch.training.run import Doing
from tests.distributed.nets import SAMPLES, Net, started
from tests.distributed.together import Together

pytestmark = pytest.mark.cpu


def driver(run):
    """Figures of epochs as a driver has them; steps are one process's."""
    steps = Steps(run, Way(1, None, None, False, 1.0, None), None, Report(1), [])
    return run.epochs_by(Doing(run._steps, steps.record, steps.evaluate), 1)


class Exits(Net):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def exits(self, samples):
        for _ in samples:
            raise self.kind(3)


def rate(step):
    return 1 / (1 - step)


class Unreadable(list):
    def __getitem__(self, at):
        if at == 3:
            raise OSError("the disk is gone")
        return super().__getitem__(at)


def test_losses_while_a_policy_is_learned(tmp_path):
    bad = next(number for number, (_, label) in enumerate(SAMPLES) if label == 2)
    with pytest.raises(EdBatchError, match=rf"^train: losses of sample {bad}: KeyError: 2$") as error:
        next(driver(started(tmp_path, losses="failing", batch_size=13)))
    assert isinstance(error.value.__cause__, KeyError)
    run = started(tmp_path)
    run.losses = lambda samples: 1 / 0
    with pytest.raises(EdBatchError, match=r"^train: losses of samples 0, 1, 2 and 3 more: ZeroDivisionError: div"):
        next(driver(run))
    with pytest.raises(EdBatchError, match=r"^train: sample 3 cannot be read \(OSError: the disk is gone\)$"):
        next(driver(started(tmp_path, data=Unreadable(SAMPLES))))


def test_what_is_measured(tmp_path):
    run = started(tmp_path, evaluate=lambda: {}[3])
    with pytest.raises(EdBatchError, match=r"^train: evaluate: KeyError: 3$") as error:
        next(driver(run))
    assert isinstance(error.value.__cause__, KeyError)


def test_a_schedule(tmp_path):
    run = started(tmp_path)
    run.trainer.lr = rate
    with pytest.raises(EdBatchError, match=r"^train: update 2: ZeroDivisionError: division by zero\n") as error:
        Together(run, 2).steps([[0, 1], [2, 3]])
    assert isinstance(error.value.raised, ZeroDivisionError)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_who_exits_is_not_lost(tmp_path, kind):
    together = Together(started(tmp_path, Exits(kind), "exits"), 2)
    together.record([0, 1, 2])
    with pytest.raises(EdBatchError, match=rf"^train: losses of sample \d: {kind.__name__}: 3\n"):
        [worker.gradients() for worker in together.workers]


def test_no_memory_for_gradients(tmp_path, monkeypatch):
    together = Together(started(tmp_path), 1)
    together.record([4, 5])

    def backward(total):
        raise MemoryError

    monkeypatch.setattr(eb.Expression, "backward", backward)
    with pytest.raises(
        EdBatchError,
        match=r"^train: gradients of 2 samples, 4 among them: MemoryError; process \d+ was out of memory, with "
        r"[\d,]+ MiB\n",
    ):
        together.workers[0].gradients()


def test_what_cannot_be_made_again():
    with pytest.raises(EdBatchError, match=r"^train: what is sent, made again in a worker .*: UnpicklingError: "):
        Worker(b"none", 0, 1).ready()


def test_errors_that_cannot_be_sent_are_notes():
    class Own(Exception):
        def __init__(self, a, b):
            super().__init__(a)

    error = to_send(failed("here", Own(1, 2)), Own(1, 2))
    assert str(error) == "here: Own: 1"
    assert not hasattr(error, "raised")
    assert "Own: 1" in pickle.loads(pickle.dumps(error)).__notes__[0]


def plain(x):
    return x


async def locked(x):
    return threading.Lock() if x == 3 else x


async def scaled(x):
    return x


def raises(x):
    raise KeyError(x)


async def exits(x):
    raise SystemExit(4)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (plain, "the program of sample 2: expected a coroutine or a generator, .* got 2$"),
        (raises, "the program of sample 2: KeyError: 2\n"),
        (exits, r"the programs of samples 2 to 3: SystemExit: 4\n"),
        (locked, r"what the program of sample 3 returned cannot be pickled, to be sent \(TypeError: .*lock' object\)$"),
    ],
)
def test_programs_that_are_none(program, message):
    pytest.importorskip("ray")
    with pytest.raises(EdBatchError, match=f"^map: {message}") as error:
        Mapper(pickle.dumps((program, {}))).run(2, [2, 3])
    assert "\n" not in str(error.value)


def test_programs_that_have_begun_are_closed():
    """No warning of a coroutine that was never awaited."""

    def some(x):
        return scaled(x) if x < 2 else x

    mapper = Mapper(b"")
    mapper._made = some, {}
    with pytest.raises(EdBatchError, match="the program of sample 2"):
        mapper.run(0, [0, 1, 2])


def test_losses_alone_are_as_before(tmp_path):
    """One process raises what its functions raise."""
    run = started(tmp_path, Net(), evaluate=lambda: {}[3])
    with pytest.raises(KeyError):
        next(run.epochs(1))
    assert np.isfinite(run.curve.losses).all()
