"""Programs over values: equal to one by one, in fewer batches; what each gets is its own."""

import asyncio
import gc
import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.opened import graphs
from edbatch.graph.options import current_options

SIZE = 6


class Model:
    """A decoder: the next word is the one with the largest score."""

    def __init__(self, dtype="float64"):
        self.model = eb.ParameterCollection(seed=1, dtype=dtype)
        self.W, self.U = (self.model.add_parameters((SIZE, SIZE), name=name) for name in "WU")
        self.words = self.model.add_lookup_parameters((9, SIZE), name="words")
        self.O = self.model.add_parameters((9, SIZE), name="O")

    @eb.cell
    def step(self, h, word: int):
        return eb.tanh(self.W @ h + self.U @ eb.lookup(self.words, word))

    def scores(self, h):
        return self.O @ h

    async def decode(self, word, n):
        h, found = eb.zeros(SIZE), []
        for _ in range(n):
            h = self.step(h, word)
            word = int(np.argmax(await self.scores(h)))
            found.append(word)
        return found

    def decode_by_generator(self, word, n):
        h, found = eb.zeros(SIZE), []
        for _ in range(n):
            h = self.step(h, word)
            word = int(np.argmax((yield self.scores(h))))
            found.append(word)
        return found


JOBS = [(k % 9, 1 + k * 7 % 12) for k in range(20)]


@pytest.fixture(scope="module")
def model():
    return Model()


@pytest.fixture(scope="module")
def one_by_one(model):
    """The words of all jobs, by plain Python."""

    async def all_of_them():
        with eb.Graph(dtype="float64", policy="sufficient"):
            return [await model.decode(*job) for job in JOBS]

    return asyncio.run(all_of_them())


@pytest.mark.parametrize(("policy", "limit"), [("sufficient", None), ("depth", 3), ("agenda", 100), ("none", 1)])
@pytest.mark.parametrize("kind", ["decode", "decode_by_generator"])
def test_words_are_those_of_one_by_one(model, one_by_one, policy, limit, kind):
    with eb.Graph(dtype="float64", policy=policy):
        assert eb.run((getattr(model, kind)(*job) for job in JOBS), limit=limit) == one_by_one


def test_a_graph_of_its_own_ends():
    async def program():
        return await eb.scalar(2.0) * 3

    assert eb.run([program()]) == [6.0]
    assert graphs.innermost() is None


async def size(tree):
    if not isinstance(tree, tuple):
        return await eb.scalar(1.0)
    return await eb.sum([eb.scalar(x) for x in await eb.all(*map(size, tree))])


def size_by_generator(tree):
    if not isinstance(tree, tuple):
        return (yield eb.scalar(1.0))
    return (yield eb.sum([eb.scalar(x) for x in (yield eb.all(*map(size_by_generator, tree)))]))


TREES = [("a", ("b", "c")), "a", (("a", "b"), ("c", ("d", "e", "f")))]


@pytest.mark.parametrize("kind", [size, size_by_generator])
def test_parts_of_a_sample_side_by_side(kind):
    with eb.Graph(policy="sufficient") as graph:
        assert eb.run(map(kind, TREES)) == [3, 1, 6]
    assert graph.report().batches <= 4  # leaves take none; one for each level


def test_gradients_of_all_rounds(model):
    """Scheduled sampling: the words are read on the way, the loss is one."""

    async def loss(word, n):
        h, losses = eb.zeros(SIZE), []
        for k in range(n):
            h = model.step(h, word)
            scores = model.scores(h)
            losses.append(eb.cross_entropy(scores, k % 9))
            word = int(np.argmax(await scores))
        return eb.sum(losses)

    def gradients(run):
        model.model.zero_grad()
        with eb.Graph(dtype="float64", policy="sufficient"):
            total = eb.sum(run())
        total.backward()
        return [float(total.value()), *(p.grad() for p in model.model)]

    found = gradients(lambda: eb.run([loss(*job) for job in JOBS]))
    alone = gradients(lambda: [x for job in JOBS for x in eb.run([loss(*job)])])
    for a, b in zip(found, alone, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    before, step = model.W.value(), 1e-6
    direction = np.random.default_rng(0).standard_normal(before.shape)
    ends = []
    for sign in (1, -1):
        model.W.set_value(before + sign * step * direction)
        ends.append(gradients(lambda: eb.run([loss(*job) for job in JOBS]))[0])
    model.W.set_value(before)
    np.testing.assert_allclose((ends[0] - ends[1]) / (2 * step), np.sum(found[1] * direction), rtol=1e-6)


async def draws(n, deep=False):
    found = [(await eb.dropout(eb.ones(30), 0.5)).tolist() for _ in range(n)]
    if deep:
        found += await eb.all(draws(1), draws(2))
    return found


def test_what_is_drawn_is_a_samples_own():
    def run(count, limit=None, before=0):
        with eb.Graph(seed=3):
            eb.dropout(eb.ones(3), 0.5)
            return eb.run([draws(1 + k % 3, deep=True) for k in range(count)], limit=limit)

    all_of_them = run(7)
    assert run(7) == all_of_them == run(7, limit=1) == run(7, limit=2)
    assert run(3) == all_of_them[:3]
    masks = [tuple(mask) for found in all_of_them for mask in found if not isinstance(mask[0], list)]
    assert len(set(masks)) == len(masks)
    parts = [found[-2:] for found in all_of_them]
    assert parts[0][0][0] != parts[0][1][0] != parts[1][0][0]


def test_contexts_are_a_programs_own():
    async def program(k):
        with eb.options(recompute=k % 2 == 0):
            for _ in range(k + 1):
                await eb.scalar(k)
                assert current_options().recompute == (k % 2 == 0)
        return current_options().recompute

    assert eb.run([program(k) for k in range(5)]) == [False] * 5


async def failing(k, at=2):
    for step in range(4):
        if (k, step) == (at, 1):
            raise ValueError("two is bad")
        await eb.scalar(step)
    return k


def test_an_exception_names_its_program():
    ended = []

    async def watched(k):
        try:
            return await failing(k)
        finally:
            ended.append(k)

    with pytest.raises(ValueError, match="two is bad") as raised:
        eb.run([watched(k) for k in range(5)])
    assert raised.value.__notes__ == ["in program 2 of `run`"]
    assert sorted(ended) == list(range(5))
    assert any(frame.name == "failing" for frame in raised.traceback)


def test_what_a_part_raises_comes_out_of_what_waits_for_it():
    ended = []

    async def slow():
        try:
            while True:
                await eb.scalar(1)
        finally:
            ended.append("slow")

    async def program():
        try:
            await eb.all(slow(), eb_all_of(slow()), failing(2))
        except ValueError as error:
            return str(error), await eb.scalar(7)

    async def eb_all_of(part):
        return await eb.all(part)

    assert eb.run([program(), failing(1)]) == [("two is bad", 7), 1]
    assert ended == ["slow", "slow"]


def test_none_is_left_that_nobody_awaited():
    """Python would warn of it, which is an error here."""
    with pytest.raises(ValueError, match="two is bad"):
        eb.run([failing(k) for k in range(9)], limit=3)
    with pytest.raises(eb.EdBatchError, match="run: program 1: expected a coroutine or a generator"):
        eb.run([failing(1), 5, failing(2)])
    with pytest.raises(eb.EdBatchError, match="all: part 1: expected a coroutine"):
        eb.all(failing(1), 5)
    gc.collect()


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (5, "which a program of `run` can await; got 5"),
        ([eb], "yield: value 0: expected an expression, got <module"),
        (None, "got None"),
    ],
)
def test_what_nobody_answers(request_, message):
    def program():
        yield request_

    with pytest.raises(eb.EdBatchError, match=message) as raised:
        eb.run([program()])
    assert raised.traceback[-1].name == "program" or any(frame.name == "program" for frame in raised.traceback)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"programs": 5}, "run: expected a list of programs, got 5"),
        ({"programs": [], "limit": 0}, "run: limit=0; expected an integer of at least 1"),
        ({"programs": [], "limit": 1.5}, "run: limit=1.5; expected an integer"),
        ({"programs": [], "return_exceptions": "no"}, "run: return_exceptions"),
        ({"programs": [], "progress": "x"}, "run: progress"),
        ({"programs": [size]}, "run: program 0: expected a coroutine or a generator"),
    ],
)
def test_arguments(arguments, message):
    with pytest.raises(eb.EdBatchError, match=message):
        eb.run(**arguments)


def test_inside_asyncio_and_in_threads(model, one_by_one):
    def run():
        with eb.Graph(dtype="float64", policy="sufficient"):
            return eb.run([model.decode(*job) for job in JOBS])

    async def inside():
        return run()

    assert asyncio.run(inside()) == one_by_one
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: run(), range(8))) == [one_by_one] * 8


@pytest.mark.parametrize("kind", ["coroutine", "generator"])
def test_a_program_runs_once(kind):
    async def awaiting():
        return float(await eb.scalar(2))

    def yielding():
        return float((yield eb.scalar(2)))

    one = awaiting if kind == "coroutine" else yielding

    async def twice(part):
        return await eb.all(part, part)

    again = r"this program has begun already"
    program = one()
    with pytest.raises(eb.EdBatchError, match=again) as caught:
        eb.run([program, program])
    assert caught.value.__notes__ == ["in program 1 of `run`"]
    program = one()
    first, second = eb.run([program, program], return_exceptions=True)
    assert first == 2
    assert again in str(second)
    with pytest.raises(eb.EdBatchError, match=again):
        eb.run([program])
    with pytest.raises(eb.EdBatchError, match=again):
        eb.run([twice(one())])


def test_what_ends_all_is_what_was_raised():
    """Not what comes of closing the others, which is in a note."""
    closed = []

    async def stubborn():
        try:
            while True:
                await eb.scalar(1)
        finally:
            await eb.scalar(2)  # which a program that is closed cannot wait for

    async def tidy():
        try:
            while True:
                await eb.scalar(1)
        finally:
            closed.append(True)

    async def raising():
        await eb.scalar(1)
        raise KeyError("the error")

    async def parts():
        await eb.all(tidy(), stubborn(), raising(), tidy())

    for programs in ([tidy(), stubborn(), raising(), tidy()], [parts()]):
        closed.clear()
        with pytest.raises(KeyError, match="the error") as caught:
            eb.run(programs)
        assert len(closed) == 2
        assert any("ignored GeneratorExit" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("times", [3, None])
def test_a_program_that_catches_its_end(times):
    """As a bare `except` in a loop does: it ends where it does at last, and never runs where nobody drives it."""
    ran = []

    async def retrying(x):
        for _ in range(times) if times else itertools.count():
            try:
                while True:
                    x = eb.tanh(x)
                    ran.append(await eb.sum(x))
            except:  # noqa: E722 (as people write it)
                pass

    async def failing():
        for _ in range(3):
            await eb.scalar(1)
        raise KeyError("the error")

    async def fine():
        return float(await eb.sum(eb.tanh(eb.ones(3))))

    with eb.Graph():
        with pytest.raises(KeyError, match="the error") as caught:
            eb.run([retrying(eb.ones(3)), failing()])
        assert any("coroutine ignored GeneratorExit" in note for note in caught.value.__notes__)
        steps = len(ran)
        for _ in range(3):
            gc.collect()
            assert eb.run([fine()]) == [pytest.approx(3 * np.tanh(1.0), rel=1e-6)]
    assert len(ran) == steps


def test_arrays_of_expressions_are_values():
    async def program(n):
        array = eb.array([eb.ones(2) * k for k in range(n)])
        alone, (both, single) = await array, await eb.values([array * 2, eb.scalar(n)])
        (part,) = await eb.all(array + 1)
        return alone, both, single, part

    for graph in (nullcontext(), eb.Graph()):
        with graph:
            found = eb.run([program(n) for n in (2, 3)])
        for n, (alone, both, single, part) in zip((2, 3), found, strict=True):
            rows = np.repeat(np.arange(n)[:, None], 2, 1)
            np.testing.assert_array_equal(alone, rows)
            np.testing.assert_array_equal(both, 2 * rows)
            np.testing.assert_array_equal(part, rows + 1)
            assert single == n


def test_the_dtype_and_policy_of_its_own_graph():
    model = eb.ParameterCollection(seed=0, dtype="float64")
    W = model.add_parameters((3, 3))

    async def program():
        return await (W @ eb.ones(3) * 0.1)

    (found,) = eb.run([program()], dtype="float64", policy="depth")
    np.testing.assert_allclose(found, W.value().sum(1) * 0.1, rtol=1e-14)
    assert found.dtype == np.float64
    for given in ({"dtype": "float64"}, {"policy": "depth"}):
        with eb.Graph(dtype="float64"), pytest.raises(eb.EdBatchError, match="run: policy and dtype"):
            eb.run([], **given)


def test_memory_is_free_as_soon_as_all_have_ended():
    async def halves(n):
        x = await eb.all(*(half(n) for _ in range(2)))
        return sum(x)

    async def half(n):
        return await (eb.scalar(1) / n) if n else 1 / 0

    def alive():
        return sum(issubclass(type(thing), eb.Graph) for thing in gc.get_objects())  # some warn of `__class__`

    gc.collect()
    gc.disable()
    try:
        before = alive()
        assert eb.run([halves(n) for n in (1, 2)], limit=1) == [2, 1]
        assert alive() == before
        for failing in (halves(0), (1 / 0 for _ in range(1))):
            try:  # `pytest.raises` would keep what was raised, and that the frames it came through
                eb.run([halves(2), failing])
            except ZeroDivisionError:
                assert alive() == before + 1
            else:
                pytest.fail("nothing was raised")
            assert alive() == before
    finally:
        gc.enable()
