"""What `train`, `map` and `Recipe` refuse before anything begins; and errors of the caller's code, without Ray.

These name the place and have their cause, wherever the code is called.
"""

import pickle
import socket
import sys
import threading

import pytest

import edbatch as eb
from edbatch import EdBatchError
from edbatch.distributed import Recipe, map, train
from edbatch.distributed.failures import failed, for_another_process
from edbatch.distributed.mapping import Mapper
from edbatch.distributed.team import Report, Team
from edbatch.distributed.worker import Worker
from edbatch.training.run import Doing
from tests.distributed.nets import SAMPLES, started
from tests.distributed.together import Together

pytestmark = pytest.mark.cpu


async def twice(x):
    return 2 * x


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"run": "runs"}, "run: expected an edbatch.Run, got 'runs'"),
        ({"workers": 0}, "workers=0; expected an integer of at least 1"),
        ({"workers": 2.5}, "workers=2.5; expected an integer"),
        ({"workers": 10**6}, "workers=1000000; expected an integer of at most 1,024"),
        ({"epochs": -1}, "epochs=-1; expected"),
        ({"timeout": 0}, "timeout: expected seconds, got 0"),
        ({"timeout": "1"}, "timeout: expected seconds, got '1'"),
        ({"mean": "no"}, "mean: expected True or False"),
    ],
)
def test_arguments_of_train(tmp_path, given, message):
    with pytest.raises(EdBatchError, match=f"^train: {message}"):
        train(**{"run": started(tmp_path), "epochs": 1} | given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"program": 3}, "program: expected a function of a sample, got 3"),
        ({"samples": 3}, "samples: expected samples"),
        ({"samples": "abc"}, "samples: expected samples"),
        ({"workers": 0}, "workers=0; expected"),
        ({"batch": 0}, "batch=0; expected"),
        ({"timeout": -1}, "timeout: expected seconds"),
        ({"progress": "yes"}, "progress: expected True or False"),
    ],
)
def test_arguments_of_map(given, message):
    with pytest.raises(EdBatchError, match=f"^map: {message}"):
        map(**{"program": twice, "samples": [1]} | given)


@pytest.mark.parametrize("data", [3, "file.txt", {0: 1}, iter([1])])
def test_what_is_no_data(data):
    with pytest.raises(EdBatchError, match=r"^Recipe: data: expected len\(data\) and data\[number\], got "):
        Recipe(data)


def test_a_missing_ray_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EdBatchError, match=r"needs Ray, which is not installed .* pip install 'edbatch\[ray\]'$"):
        train(started(tmp_path), 1)


@pytest.mark.parametrize("address", ["127.0.0.1:{}", "ray://127.0.0.1:{}", "nowhere.invalid:99", 7])
def test_addresses_where_nobody_answers(tmp_path, address):
    """They are refused at once: Ray would ask for minutes."""
    pytest.importorskip("ray")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    address = address.format(port) if isinstance(address, str) else address
    with pytest.raises(EdBatchError, match=r"^train: (Ray at .*: no answer|address: expected text .* got 7)"):
        next(train(started(tmp_path), 1, address=address))


def driver(run):
    """Figures of epochs as a driver has them; steps are one process's."""
    team = Team(run, None, Report(1), False, 1.0)
    return run.epochs_by(Doing(run._steps, team.evaluate), 1)


def test_errors_of_what_is_measured_here(tmp_path):
    with pytest.raises(EdBatchError, match=r"^train: evaluate: KeyError: 3$") as error:
        next(driver(started(tmp_path, evaluate=lambda: {}[3])))
    assert isinstance(error.value.__cause__, KeyError)


class Own(Exception):
    """It cannot be pickled."""

    def __init__(self, a, b):
        super().__init__(a)


BAD = next(number for number, (_, label) in enumerate(SAMPLES) if label == 2)  # for `Net.failing`


@pytest.mark.parametrize(
    ("losses", "numbers", "message", "kind"),
    [
        ("failing", [BAD], f"losses of sample {BAD}: KeyError: 2\n", KeyError),
        ("interrupted", [0, 1, 2], r"losses of sample \d: KeyboardInterrupt\n", KeyboardInterrupt),
        ("exiting", [0, 1, 2], r"losses of sample \d: SystemExit: 3\n", SystemExit),
        ("without_memory", [4, 5, 6, 7, 8], "gradients of samples 4, 5, 6 and 2 more: MemoryError\n", MemoryError),
    ],
)
def test_errors_in_a_worker(tmp_path, monkeypatch, losses, numbers, message, kind):
    def backward(total):
        raise MemoryError

    if losses == "without_memory":
        monkeypatch.setattr(eb.Expression, "backward", backward)
        losses = "losses"
    with pytest.raises(EdBatchError, match=f"^train: {message}") as error:
        Together(started(tmp_path, losses=losses), 1).gradients(numbers)
    assert isinstance(error.value.raised, kind)
    assert "Traceback" in error.value.__notes__[0]


def rate(step):
    return 1 / (1 - step)


def test_a_schedule(tmp_path):
    run = started(tmp_path)
    run.trainer.lr = rate
    with pytest.raises(EdBatchError, match=r"^train: update 2: ZeroDivisionError: division by zero\n") as error:
        Together(run, 2).steps([[0, 1], [2, 3]])
    assert isinstance(error.value.raised, ZeroDivisionError)


def test_what_cannot_be_made_again():
    with pytest.raises(EdBatchError, match=r"^train: what is sent, made again in a worker .*: UnpicklingError: "):
        Worker(b"none").begin(None, 0)


def test_errors_that_cannot_be_sent_are_notes():
    @for_another_process
    def raises():
        raise failed("here", Own(1, 2)) from Own(1, 2)

    with pytest.raises(EdBatchError, match=r"^here: Own: 1\n") as error:
        raises()
    assert not hasattr(error.value, "raised")
    assert "Own: 1" in pickle.loads(pickle.dumps(error.value)).__notes__[0]


def plain(x):
    return x


async def locked(x):
    return threading.Lock() if x == 3 else x


def raises(x):
    raise KeyError(x)


async def fails(x):
    raise KeyError(x)


async def exits(x):
    raise SystemExit(4)


async def expression(x):
    return eb.ones(2)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (plain, "the programs of samples 2 to 3: run: .* got 2\n"),
        (raises, "the program of sample 2: KeyError: 2\n"),
        (fails, "the program of sample 2: KeyError: 2\n"),
        (exits, "the programs of samples 2 to 3: SystemExit: 4\n"),
        (expression, "the program of sample 2: expected values, got an expression; write `return await x`$"),
        (locked, r"what the program of sample 3 returned cannot be pickled, to be sent \(TypeError: .*lock' object\)$"),
    ],
)
def test_programs_that_are_none(program, message):
    pytest.importorskip("ray")
    with pytest.raises(EdBatchError, match=f"^map: {message}") as error:
        Mapper(pickle.dumps((program, {}))).run(2, [2, 3])
    assert "\n" not in error.value.args[0]
