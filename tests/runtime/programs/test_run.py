"""Programs over values: equal to one by one, in fewer batches; what each gets is its own."""

import asyncio
import gc
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.columns import graphs
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


@pytest.mark.parametrize("policy", ["sufficient", "depth", "agenda", "none"])
@pytest.mark.parametrize("limit", [None, 1, 3, 100])
@pytest.mark.parametrize("kind", ["decode", "decode_by_generator"])
def test_words_are_those_of_one_by_one(model, one_by_one, policy, limit, kind):
    with eb.Graph(dtype="float64", policy=policy):
        assert eb.run((getattr(model, kind)(*job) for job in JOBS), limit=limit) == one_by_one


def test_a_round_is_a_batch_of_each_type(model):
    with eb.Graph(dtype="float64", policy="sufficient") as graph:
        eb.run([model.decode(*job) for job in JOBS])
    report = graph.report()
    longest = max(n for _, n in JOBS)
    assert report.batches == report.lower_bound
    assert report.batches <= 3 * longest + 1  # a cell, in two parts, and a product


def test_a_graph_of_its_own_ends():
    async def program():
        return await eb.scalar(2.0) * 3

    assert eb.run([program()]) == [6.0]
    assert graphs.innermost() is None


def test_no_programs():
    assert eb.run([]) == []
    assert eb.run(iter([])) == []


def test_programs_that_wait_for_nothing():
    async def program(k):
        return k

    assert eb.run([program(k) for k in range(5)], limit=2) == list(range(5))


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


def test_parts_are_expressions_too():
    async def program():
        found = await eb.all(eb.scalar(1.0), eb.values([eb.scalar(2.0), eb.scalar(3.0)]), eb.all(), size(("a", "b")))
        return found + await eb.values([])

    assert eb.run([program(), program()]) == [[1, [2, 3], [], 2]] * 2
    assert asyncio.run(in_a_graph(program)) == [1, [2, 3], [], 2]


async def in_a_graph(program):
    with eb.Graph():
        return await program()


def test_lists_of_values_of_generators():
    def program(k):
        a, b = yield [eb.scalar(k), eb.scalar(k) + 1]
        (c,) = yield (eb.scalar(a + b),)
        return c

    assert eb.run([program(k) for k in range(3)]) == [1, 3, 5]


def test_expressions_of_other_graphs():
    with eb.Graph():
        x = eb.scalar(5.0)

    async def program(k):
        with eb.Graph():
            y = eb.scalar(k) * 2
        return await eb.values([y, x, y + 0])

    assert eb.run([program(k) for k in range(3)]) == [[2 * k, 5, 2 * k] for k in range(3)]


def test_what_another_graph_refuses_is_raised_to_who_asked():
    with eb.Graph() as ended:
        gone = eb.scalar(5.0)
        ended.successor("it is over")

    async def program(k):
        return await (eb.values([eb.scalar(k), gone]) if k == 1 else eb.scalar(k) * 2)

    zero, error, two = eb.run([program(k) for k in range(3)], return_exceptions=True)
    assert (zero, two) == (0, 4)
    assert "this graph has no values: it is over" in str(error)


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


def test_what_the_graph_draws_itself_goes_on():
    def masks(between):
        with eb.Graph(seed=3):
            first = eb.dropout(eb.ones(30), 0.5)
            if between:
                one, other = eb.run([draws(2)]), eb.run([draws(2)])
                assert one != other
            second = eb.dropout(eb.ones(30), 0.5)
            return np.array(eb.forward([first, second]))

    np.testing.assert_array_equal(masks(False), masks(True))


def test_contexts_are_a_programs_own():
    async def program(k):
        with eb.options(training=k % 2 == 0):
            for _ in range(k + 1):
                await eb.scalar(k)
                assert current_options().training == (k % 2 == 0)
        return current_options().training

    assert eb.run([program(k) for k in range(5)]) == [True] * 5


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


@pytest.mark.parametrize("limit", [None, 1, 2])
def test_exceptions_in_the_place_of_results(limit):
    found = eb.run([failing(k) for k in range(5)], limit=limit, return_exceptions=True)
    assert isinstance(found[2], ValueError)
    assert [x for x in found if not isinstance(x, ValueError)] == [0, 1, 3, 4]


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
        (5, "for which a program of `run` may wait; got 5"),
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


def test_one_program_is_no_list():
    program = size("a")
    with pytest.raises(eb.EdBatchError, match="run: expected a list of programs"):
        eb.run(program)
    program.close()


def test_values_of_what_is_no_expression():
    for wrong, message in [(5, "values: expected a list"), ([5], "values: value 0: expected an expression, got 5")]:
        with pytest.raises(eb.EdBatchError, match=message):
            eb.values(wrong)


def test_inside_asyncio_and_in_threads(model, one_by_one):
    def run():
        with eb.Graph(dtype="float64", policy="sufficient"):
            return eb.run([model.decode(*job) for job in JOBS])

    async def inside():
        return run()

    assert asyncio.run(inside()) == one_by_one
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: run(), range(8))) == [one_by_one] * 8


def test_a_run_inside_a_program(model, one_by_one):
    async def outer(job):
        await eb.scalar(1.0)
        return eb.run([model.decode(*job)])[0]

    with eb.Graph(dtype="float64", policy="sufficient"):
        assert eb.run(map(outer, JOBS)) == one_by_one


def test_an_interrupt_ends_all():
    ended = []

    async def program(k):
        try:
            await eb.scalar(k)
            if k == 1:
                raise KeyboardInterrupt
            await eb.scalar(k)
        finally:
            ended.append(k)

    with pytest.raises(KeyboardInterrupt):
        eb.run([program(k) for k in range(3)], return_exceptions=True)
    assert sorted(ended) == [0, 1, 2]
    assert graphs.innermost() is None


def test_a_bar(capsys):
    async def program(k):
        return await eb.scalar(k)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        eb.run([program(k) for k in range(3)], progress=True)
    assert "3/3" in capsys.readouterr().err


def test_the_report_counts_rounds():
    async def program(n):
        for k in range(n):
            await (eb.scalar(k) * 2)

    with eb.Graph(policy="sufficient") as graph:
        eb.run([program(3), program(1)])
        eb.run([program(2)])
    report = graph.report()
    assert (report.rounds, report.waited, report.in_flight) == (5, 6, 2)
    assert report.seconds_of_rounds > 0
    assert "rounds of programs" in str(report)
    assert not report.advice
    assert "rounds" not in str(eb.Graph().report())


@pytest.mark.parametrize(
    ("lengths", "limit", "advice"),
    [
        ([9], None, "at most 1 ran at a time"),
        ([9] * 9, 2, "at most 2 ran at a time"),
        ([30, *[1] * 9], None, "though 10"),
    ],
)
def test_the_report_says_where_rounds_are_small(lengths, limit, advice):
    async def program(n):
        for k in range(n):
            await eb.scalar(k)

    with eb.Graph(policy="sufficient") as graph:
        eb.run(map(program, lengths), limit=limit)
    (found,) = graph.report().advice
    assert advice in found


def test_not_inside_a_cell():
    @eb.cell
    def wrong(x):
        eb.run([size("a")])
        return x

    with eb.Graph(), pytest.raises(eb.EdBatchError, match="run: inside a cell"):
        wrong(eb.ones(2))
