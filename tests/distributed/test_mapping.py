"""`map`: ordered results whatever the workers do, and lost workers."""

import os
import pickle
import signal

import numpy as np
import pytest

import edbatch as eb
from edbatch import EdBatchError
from edbatch.distributed.mapping import Mapper
from tests.distributed.nets import SAMPLES, Net

pytestmark = pytest.mark.cpu
NET = Net(dropout=0.5)


async def loss(sample):
    return await NET.loss(*sample)


async def twice(x):
    return 2 * x


async def deadly(x):
    if x == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


async def deadly_once(given):
    x, mark = given
    if x == 7 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def wanted():
    with eb.options(training=False):
        return eb.run([loss(sample) for sample in SAMPLES])


def test_a_group_is_run_in_evaluation():
    pytest.importorskip("ray")  # by which results are sent
    found = Mapper(pickle.dumps((loss, {"training": False}))).run(0, SAMPLES)
    np.testing.assert_allclose(found, wanted(), rtol=1e-6)


@pytest.mark.slow
def test_results_are_in_order_and_memory_is_bounded(one_cluster):
    read = []

    def samples():
        for x in range(300):
            read.append(x)
            yield x

    found = []
    for x in eb.distributed.map(twice, samples(), workers=3, batch=5):
        found.append(x)
        assert len(read) - len(found) <= 2 * 3 * 5 + 5
    assert found == [2 * x for x in range(300)]
    assert list(eb.distributed.map(twice, [], workers=1)) == []
    values = list(eb.distributed.map(loss, SAMPLES, workers=2, batch=4))
    np.testing.assert_allclose(values, wanted(), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("readable", [0, 7, 10, 33])
def test_samples_before_one_that_cannot_be_read_have_results(one_cluster, readable):
    def samples():
        yield from range(readable)
        raise OSError("the disk is gone")

    found = []
    with pytest.raises(EdBatchError, match=rf"^map: sample {readable} cannot be read \(OSError: the disk") as error:
        found.extend(eb.distributed.map(twice, samples(), workers=2, batch=5))
    assert found == [2 * x for x in range(readable)]
    assert isinstance(error.value.__cause__, OSError)


@pytest.mark.slow
def test_a_process_that_is_forked_is_told(one_cluster):
    assert list(eb.distributed.map(twice, [1], workers=1)) == [2]
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            list(eb.distributed.map(twice, [1], workers=1))
        except EdBatchError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        assert said.read().startswith("map: this process was forked from one that used Ray; start a new one")
    os.waitpid(child, 0)


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(one_cluster, tmp_path):
    given = [(x, tmp_path / "mark") for x in range(40)]
    assert list(eb.distributed.map(deadly_once, given, workers=2, batch=3, timeout=120)) == list(range(40))
    with pytest.raises(EdBatchError, match=r"^map: a worker was lost 3 times with samples 4 to 7 "):
        list(eb.distributed.map(deadly, range(40), workers=2, batch=4, timeout=120))
