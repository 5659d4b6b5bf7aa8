"""Programs that misbehave, requests that are cancelled anywhere: others do not notice, and nobody waits in vain."""

import asyncio
import time
from random import Random

import pytest

import edbatch as eb
from edbatch.serving import Batcher, DeadlineError, OverloadError


async def good(n):
    """Takes `n` rounds."""
    x = eb.scalar(0.0)
    for _ in range(n):
        x = x + 1
        await x
        time.sleep(0.0005)
    return float(await x)


def of_a_graph_that_ended():
    with eb.Graph() as graph:
        x = eb.scalar(3.0)
        graph.successor("it is over")
    return x


def raises(error):
    async def program():
        await eb.scalar(1.0)
        raise error

    return program


async def waits_for_a_socket():
    await asyncio.sleep(1)


async def waits_for_what_is_gone():
    await of_a_graph_that_ended()


async def returns_an_expression():
    return eb.scalar(1.0) + 1


async def calls_itself():
    return await calls_itself()


async def a_part_fails():
    await eb.all(good(3), raises(OSError("a part"))(), good(10**6))


def yields_a_number():
    yield 5


def no_more_of_a_list():
    return next(iter([]))


BAD = [  # programs, and what is raised to who asked
    (raises(ValueError("bad")), ValueError, "^bad$"),
    (raises(SystemExit(3)), RuntimeError, "the program raised SystemExit: 3"),
    (raises(KeyboardInterrupt()), RuntimeError, "the program raised KeyboardInterrupt"),
    (raises(asyncio.CancelledError()), RuntimeError, "the program raised CancelledError"),
    (raises(GeneratorExit()), RuntimeError, "the program raised GeneratorExit"),
    (raises(StopIteration(3)), RuntimeError, "StopIteration"),
    (raises(TimeoutError("the oven's")), TimeoutError, "oven"),
    (waits_for_a_socket, RuntimeError, "no running event loop"),
    (waits_for_what_is_gone, eb.EdBatchError, "it is over"),
    (returns_an_expression, eb.EdBatchError, "expected the program to return values, got an expression"),
    (calls_itself, RecursionError, "recursion"),
    (a_part_fails, OSError, "a part"),
    (yields_a_number, eb.EdBatchError, "can await; got 5"),
    (no_more_of_a_list, RuntimeError, "the program raised StopIteration"),
]


def started(sample):
    """A program for a number of rounds, or the one that is given."""
    return sample() if callable(sample) else good(sample)


async def until(condition):
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not come to that")


@pytest.mark.parametrize(("bad", "kind", "message"), BAD)
def test_others_do_not_notice(bad, kind, message):
    async def main():
        async with Batcher(started) as batcher:
            others = [asyncio.create_task(batcher(200 + k)) for k in range(3)]
            await until(lambda: batcher.counters.rounds > 3)
            for _ in range(2):
                with pytest.raises(kind, match=message):
                    await batcher(bad)
            assert batcher.counters.in_flight == 3
            assert await asyncio.gather(*others) == [200, 201, 202]
            counters = batcher.counters
        assert (counters.answered, counters.failed, counters.in_flight) == (3, 2, 0)

    asyncio.run(main())


@pytest.mark.parametrize("how", ["raises", "waits", "is ended", "returns"])
def test_what_is_cancelled_may_misbehave_once_more(how):
    ended = []

    async def program():
        try:
            while True:
                await eb.scalar(1.0)
        except BaseException:
            ended.append(how)
            if how == "raises":
                raise ValueError("at the end") from None
            if how == "waits":
                await eb.scalar(2.0)
            if how == "is ended":
                raise SystemExit(3) from None
            if how == "returns":
                return 5
            raise

    async def main():
        said = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(str(context["exception"])))
        async with Batcher(started) as batcher:
            others = [asyncio.create_task(batcher(200 + k)) for k in range(3)]
            bad = [asyncio.create_task(batcher(program)) for _ in range(2)]
            await until(lambda: batcher.counters.in_flight == 5 and batcher.counters.rounds > 3)
            for task in bad:
                task.cancel()
            with pytest.raises(DeadlineError):
                await batcher(program, deadline=0.02)
            assert await asyncio.gather(*others) == [200, 201, 202]
            counters = batcher.counters
        assert (counters.answered, counters.cancelled, counters.expired, counters.failed) == (3, 2, 1, 0)
        assert len(ended) >= 2
        expected = {"raises": "at the end", "waits": "ignored GeneratorExit", "is ended": "raised SystemExit: 3"}
        assert all(expected.get(how, "nothing") in text for text in said)
        assert len(said) == (len(ended) if how in expected else 0)

    asyncio.run(main())


def test_a_flood_of_all_sorts():
    """Every request ends as it should, whatever is cancelled when; and each is counted once."""

    async def client(batcher, number):
        random = Random(number)
        await asyncio.sleep(random.random() * 0.5)
        kind = random.choice(["good", "good", "cancelled", "expired", "bad"])
        n = random.randrange(1, 30)
        try:
            if kind == "cancelled":
                task = asyncio.create_task(batcher(n))
                await asyncio.sleep(random.random() * 0.02)
                task.cancel()
                await task
            elif kind == "expired":
                assert await batcher(n, deadline=0.0001 + random.random() * 0.02) == n
            elif kind == "bad":
                bad, *_ = random.choice(BAD)
                await batcher(bad)
                pytest.fail("it should have failed")
            else:
                assert await batcher(n) == n
        except OverloadError:
            return "refused"
        except asyncio.CancelledError:
            assert kind == "cancelled"
            return "cancelled"
        except DeadlineError:
            assert kind == "expired"
            return "expired"
        except Exception:
            if kind != "bad":
                raise
            return "failed"
        return "answered"

    async def main():
        async with Batcher(started, max_in_flight=8, max_waiting=40) as batcher:
            found = await asyncio.wait_for(asyncio.gather(*[client(batcher, k) for k in range(600)]), 120)
            await until(lambda: batcher.counters.in_flight == 0)
            counters = batcher.counters
        assert counters.waiting == 0
        names = ("answered", "failed", "refused", "expired", "cancelled")
        counted = {name: getattr(counters, name) for name in names}
        assert counted == {name: found.count(name) for name in names}
        assert min(counted.values()) > 0, counted

    asyncio.run(main())
