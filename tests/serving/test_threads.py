"""The thread of a batcher: it keeps nobody, ends with its batcher, and is not there in a forked process."""

import asyncio
import gc
import os
import sys
import threading
import time
import weakref

import pytest

import edbatch as eb
from edbatch.serving import Batcher, worker


async def double(x):
    return float(await (eb.scalar(x) * 2))


async def slow(n):
    for _ in range(n):
        await eb.scalar(1.0)
        time.sleep(0.001)
    return n


class Service:
    """Knows its batcher, which knows its program: a cycle."""

    def __init__(self):
        self.batcher = Batcher(self.program)

    async def program(self, x):
        if x < 0:
            raise ValueError("below 0")
        return await slow(x)


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "edbatch.Batcher"]


def gone(reference, others):
    """Whether something is collected soon, and no more threads are left than others."""
    for _ in range(500):
        gc.collect()
        if reference() is None and set(threads()) <= set(others):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("how", ["answered", "failed", "cancelled", "expired", "never asked"])
def test_a_batcher_that_nobody_knows_ends(how):
    before = threads()

    async def main():
        service = Service()
        if how == "answered":
            assert await asyncio.gather(*map(service.batcher, range(5))) == list(range(5))
        if how == "failed":
            with pytest.raises(ValueError, match="below 0"):
                await service.batcher(-1)
        if how == "cancelled":
            task = asyncio.create_task(service.batcher(10**6))
            await asyncio.sleep(0.05)
            task.cancel()
            await asyncio.wait([task])
        if how == "expired":
            with pytest.raises(eb.serving.DeadlineError):
                await service.batcher(10**6, deadline=0.05)
        return weakref.ref(service)

    reference = asyncio.run(main())
    assert gone(reference, before)


def test_a_thread_that_fails_leaves_nobody_waiting(monkeypatch):
    """What is raised outside of all rounds is not to be expected; it is said to all who wait all the same."""
    said = []
    monkeypatch.setattr(threading, "excepthook", said.append)

    def fails(*_):
        raise MemoryError("no graph")

    async def main():
        batcher = Batcher(double)
        with monkeypatch.context() as patched:
            patched.setattr(worker, "Graph", fails)
            found = await asyncio.wait_for(asyncio.gather(*map(batcher, range(3)), return_exceptions=True), 20)
        message = "this Batcher has ended: its thread failed with MemoryError: no graph"
        assert [str(one) for one in found] == [message] * 3
        with pytest.raises(eb.EdBatchError, match=message):
            await batcher(1)
        await asyncio.wait_for(batcher.close(), 20)
        return batcher._worker.thread

    asyncio.run(main()).join(20)  # the thread says it when it has told all who wait
    assert [one.exc_type for one in said] == [MemoryError]


def test_who_closes_may_give_up():
    """Nobody is kept by a program that goes on."""

    async def main():
        batcher = Batcher(slow)
        task = asyncio.create_task(batcher(10**6))
        await asyncio.sleep(0.05)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(batcher.close(), 0.1)
        task.cancel()
        await asyncio.gather(batcher.close(), batcher.close())
        await batcher.close()

    asyncio.run(main())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
class TestForked:
    """A process that was forked has no thread of a batcher."""

    @staticmethod
    def child(function):
        """What a function returns as text, or raises, in a forked process."""
        reading, writing = os.pipe()
        if not (process := os.fork()):
            try:
                said = function()
            except BaseException as error:
                said = f"{type(error).__name__}: {error}"
            finally:
                os.write(writing, said.encode())
                os._exit(0)
        os.close(writing)
        ready = threading.Timer(20, os.kill, (process, 9))
        ready.start()
        with os.fdopen(reading) as file:
            found = file.read()
        os.waitpid(process, 0)
        ready.cancel()
        return found

    def test_one_that_has_begun_is_refused_there(self, tmp_path):
        model = eb.ParameterCollection()
        batcher = Batcher(double, model)
        assert asyncio.run(batcher(2)) == 4
        for coroutine in (batcher(3), batcher.reload(tmp_path / "x")):
            found = self.child(lambda coroutine=coroutine: str(asyncio.run(coroutine)))
            assert found.startswith("BatcherError: this Batcher began in the parent process")
            coroutine.close()
        assert self.child(lambda: f"{asyncio.run(batcher.close())} {batcher.counters.answered}") == "None 1"
        assert asyncio.run(batcher(3)) == 6
        asyncio.run(batcher.close())

    @pytest.mark.cpu  # this process has used the GPU
    def test_one_that_has_not_begun_works_there(self):
        batcher = Batcher(double)
        assert self.child(lambda: str(asyncio.run(batcher(3)))) == "6.0"
        assert asyncio.run(batcher(2)) == 4
        asyncio.run(batcher.close())


if sys.version_info >= (3, 12):  # it warns of threads in the parent, which is what is tested
    TestForked = pytest.mark.filterwarnings("ignore::DeprecationWarning")(TestForked)
