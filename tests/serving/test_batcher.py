"""Requests that come, wait, fail, are cancelled and run out of time: every answer is that of the request alone."""

import asyncio
import re
import time
from random import Random

import numpy as np
import pytest

import edbatch as eb
from edbatch.serving import Batcher, DeadlineError, OverloadError

SIZE = 8


class Model:
    def __init__(self, seed=0):
        self.model = eb.ParameterCollection(seed=seed)
        self.W = self.model.add_parameters((SIZE, SIZE), name="W")
        self.words = self.model.add_lookup_parameters((20, SIZE), name="words")

    @eb.cell
    def step(self, h, word: int):
        return eb.tanh(self.W @ h + eb.lookup(self.words, word))

    async def program(self, sample):
        """The words that follow one another, as many as asked for."""
        word, n = sample
        if n > 50:
            raise ValueError(f"{n} words are too many")
        h, found = eb.zeros(SIZE), []
        for _ in range(n):
            h = self.step(h, word)
            word = int(np.argmax(np.abs(await h))) + len(found) % 10
            found.append(word)
        return found

    def alone(self, sample):
        (found,) = eb.run([self.program(sample)])
        return found


@pytest.fixture(scope="module")
def model():
    return Model()


@pytest.fixture(scope="module")
def answers(model):
    return {(word, n): model.alone((word, n)) for word in range(20) for n in range(12)}


def test_answers_are_those_of_each_request_alone(model, answers):
    async def main():
        random = Random(0)
        samples = [random.choice(list(answers)) for _ in range(400)]

        async def client(sample):
            await asyncio.sleep(random.random() * 0.02)
            return await batcher(sample)

        async with Batcher(model.program, max_in_flight=16) as batcher:
            found = await asyncio.gather(*map(client, samples))
            counters = batcher.counters
        assert found == [answers[sample] for sample in samples]
        assert (counters.answered, counters.waiting, counters.in_flight, counters.failed) == (400, 0, 0, 0)
        assert counters.rounds < sum(n for _, n in samples) / 3

    asyncio.run(main())


def test_a_failing_request_fails_alone(model, answers):
    async def main():
        async with Batcher(model.program) as batcher:
            found = await asyncio.gather(*map(batcher, [(3, 5), (1, 99), "x", (30, 2), (4, 2)]), return_exceptions=True)
            assert batcher.counters.failed == 3
        assert [found[0], found[4]] == [answers[3, 5], answers[4, 2]]
        assert str(found[1]) == "99 words are too many"
        assert isinstance(found[2], ValueError | TypeError)
        assert isinstance(found[3], eb.EdBatchError)  # no such word

    asyncio.run(main())


async def slow(sample):
    for _ in range(sample):
        await eb.scalar(1.0)
        time.sleep(0.001)
    return sample


def test_who_has_left_is_given_up():
    ended = []

    async def program(sample):
        try:
            return await slow(sample)
        finally:
            ended.append(sample)

    async def main():
        async with Batcher(program, max_in_flight=2) as batcher:
            first = asyncio.create_task(batcher(10**6))
            second = asyncio.create_task(batcher(10**6 + 1))
            third = asyncio.create_task(batcher(10**6 + 2))
            await asyncio.sleep(0.1)
            assert (batcher.counters.in_flight, batcher.counters.waiting) == (2, 1)
            third.cancel()
            first.cancel()
            with pytest.raises(DeadlineError, match=r"not answered in 0.05 s"):
                await batcher(10**6 + 3, deadline=0.05)
            assert await batcher(3) == 3
            second.cancel()
            await asyncio.gather(first, second, third, return_exceptions=True)
            assert await batcher(4) == 4
            counters = batcher.counters
        assert (counters.cancelled, counters.expired, counters.answered) == (3, 1, 2)
        assert sorted(ended) == [3, 4, 10**6, 10**6 + 1, *([10**6 + 3] if 10**6 + 3 in ended else [])]

    asyncio.run(main())


def test_one_more_than_may_wait_is_refused():
    async def main():
        async with Batcher(slow, max_in_flight=2, max_waiting=3) as batcher:
            tasks = [asyncio.create_task(batcher(100 + k)) for k in range(9)]
            found = await asyncio.gather(*tasks, return_exceptions=True)
            refused = [one for one in found if isinstance(one, OverloadError)]
            assert len(refused) == 4 == batcher.counters.refused
            said = (
                r"5 requests wait or are in flight \([012]\), "
                r"the most that max_in_flight=2 and max_waiting=3 allow: try again later"
            )
            assert all(re.fullmatch(said, str(one)) for one in refused)
            assert found[:5] == [100, 101, 102, 103, 104]
            assert await batcher(1) == 1

    asyncio.run(main())


def test_parameters_are_loaded_between_requests(tmp_path, answers):
    model, other = Model(), Model(seed=7)
    other.model.save(tmp_path / "other.safetensors")
    samples = [(word, 10) for word in range(20)]
    expected = [other.alone(sample) for sample in samples]
    assert expected != [answers[sample] for sample in samples]

    async def main():
        async with Batcher(model.program, model.model, max_in_flight=4) as batcher:
            before = [asyncio.create_task(batcher(sample)) for sample in samples[:4]]
            while batcher.counters.in_flight < 4 and batcher.counters.answered < 4:
                await asyncio.sleep(0.001)
            await batcher.reload(tmp_path / "other.safetensors")
            after = await asyncio.gather(*map(batcher, samples))
            assert await asyncio.gather(*before) == [answers[sample] for sample in samples[:4]]
            assert after == expected
            with pytest.raises(eb.EdBatchError, match="cannot be read"):
                await batcher.reload(tmp_path / "none.safetensors")
            assert await batcher(samples[0]) == expected[0]

    asyncio.run(main())


def test_who_cancels_loading_has_nothing_loaded(tmp_path, answers):
    """It waits for a request that goes on; the others wait for it, and go on when it is cancelled."""
    model, other = Model(), Model(seed=7)
    other.model.save(tmp_path / "other.safetensors")

    async def program(sample):
        return await (slow(sample) if isinstance(sample, int) else model.program(sample))

    async def main():
        async with Batcher(program, model.model) as batcher:
            endless = asyncio.create_task(batcher(10**6, deadline=60))
            while not batcher.counters.in_flight:
                await asyncio.sleep(0.001)
            loading = [asyncio.create_task(batcher.reload(tmp_path / "other.safetensors")) for _ in range(2)]
            await asyncio.sleep(0.01)
            later = asyncio.create_task(batcher((3, 5)))
            await asyncio.sleep(0.1)
            assert (batcher.counters.in_flight, batcher.counters.waiting) == (1, 1)
            for task in loading:
                task.cancel()
            assert await asyncio.wait_for(later, 20) == answers[3, 5]
            endless.cancel()
            await asyncio.wait([endless])
            assert await batcher((3, 5)) == answers[3, 5]
            assert all(task.cancelled() for task in loading)

    asyncio.run(main())


def test_closing_answers_what_has_come():
    async def main():
        batcher = Batcher(slow, max_in_flight=3)
        tasks = [asyncio.create_task(batcher(20 + k)) for k in range(9)]
        await asyncio.sleep(0.01)
        await batcher.close()
        assert await asyncio.gather(*tasks) == list(range(20, 29))
        with pytest.raises(eb.EdBatchError, match="this Batcher is closed"):
            await batcher(1)
        await batcher.close()

    asyncio.run(main())
    asyncio.run(Batcher(slow).close())


async def large():
    """Takes more memory than an address can name."""
    x, y = eb.ones((46_340, 1)), eb.ones((1, 46_340))
    await eb.scalar(1.0)
    await eb.sum([x @ y for _ in range(17_000)])


async def large_of_its_own():
    await eb.scalar(1.0)
    return np.ones(1 << 50)


@pytest.mark.cpu  # whose memory it is
@pytest.mark.parametrize("guilty", [large, large_of_its_own])
def test_who_takes_more_memory_than_there_is_fails_alone(guilty):
    calls = []

    def program(sample):
        calls.append(sample)
        return guilty() if sample < 0 else slow(sample)

    async def main():
        async with Batcher(program, max_in_flight=5) as batcher:
            samples = [200, -1, 30, -2, 3, 4, 5]
            found = await asyncio.gather(*map(batcher, samples), return_exceptions=True)
            counters = batcher.counters
        assert [one if sample > 0 else type(one) for sample, one in zip(samples, found, strict=True)] == [
            sample if sample > 0 else type(found[1]) for sample in samples
        ]
        assert isinstance(found[1], MemoryError)
        assert (counters.answered, counters.failed, counters.in_flight, counters.waiting) == (5, 2, 0, 0)
        assert max(map(calls.count, samples)) == 2 == calls.count(-1) == calls.count(-2)

    asyncio.run(main())


def test_what_is_wrong_for_all_is_found_with_each_alone(monkeypatch):
    """Two that cannot be computed, among some that can; another comes meanwhile, and waits until they were found."""
    from edbatch.runtime.programs import rounds

    answer, bad = rounds.Rounds._answer, []

    def fails(self):
        if any(task.asked is expression for task in self._waiting for expression in bad):
            raise eb.EdBatchError("no kernel")
        answer(self)

    monkeypatch.setattr(rounds.Rounds, "_answer", fails)

    async def program(sample):
        await slow(sample)
        if sample in (51, 53):
            bad.append(eb.scalar(2.0))
            await bad[-1]
        return sample

    async def main():
        async with Batcher(program) as batcher:
            tasks = [asyncio.create_task(batcher(50 + k)) for k in range(5)]
            while not bad:
                await asyncio.sleep(0.001)
            found = await asyncio.gather(*tasks, batcher(9), return_exceptions=True)
            for k in (1, 3):
                assert isinstance(found[k], eb.serving.BatcherError)
                assert str(found[k]) == "values could not be computed: EdBatchError: no kernel"
            assert [found[0], found[2], found[4], found[5]] == [50, 52, 54, 9]
            assert batcher.counters.failed == 2

    asyncio.run(main())


def test_programs_run_in_evaluation():
    async def program(sample):
        return (await eb.dropout(eb.ones(20), 0.5)).tolist()

    async def main():
        async with Batcher(program) as batcher:
            assert await batcher(None) == [1.0] * 20

    asyncio.run(main())


def test_generators_and_what_is_no_program():
    def doubled(x):
        y = yield eb.scalar(x) * 2
        return float(y)

    async def main():
        async with Batcher(doubled) as batcher:
            assert await asyncio.gather(*map(batcher, range(5))) == [0, 2, 4, 6, 8]
        async with Batcher(len) as batcher:
            with pytest.raises(eb.EdBatchError, match="expected a function that returns a program, it returned 3"):
                await batcher([1, 2, 3])

    asyncio.run(main())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"program": 5}, "Batcher: expected a function that returns a program, got 5"),
        ({"model": 5}, "Batcher: model: expected a ParameterCollection, got 5"),
        ({"max_in_flight": 0}, "max_in_flight=0"),
        ({"max_waiting": -1}, "max_waiting=-1"),
        ({"deadline": 0}, "deadline=0; expected seconds above 0, or None"),
        ({"deadline": float("inf")}, "deadline=inf"),
        ({"policy": "unknown"}, "unknown"),
        ({"dtype": "int8"}, "int8"),
    ],
)
def test_arguments(arguments, message):
    with pytest.raises(eb.EdBatchError, match=message):
        Batcher(**{"program": slow} | arguments)
