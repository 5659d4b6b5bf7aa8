"""Programs over values: what runs together, its bound, and serving."""

import pytest

import edbatch as eb
from scripts.bench import programs, rounds, serving
from scripts.bench.waiting import Watched


def test_figures_of_programs(tables_of):
    pytest.importorskip("torch")
    tables = tables_of(programs.main, "--hidden", "8", "--samples=3", "--decoder=8")
    rows = tables["3 samples together, hidden 8"]
    assert [row["model"] for row in rows] == list(programs.MODELS)
    for row in rows:
        assert row["bound"] <= row["batches"] == row["bound"] * row["batches / bound"]
        assert row["rounds"] > 1
    figures = {row["figure"]: row for row in tables["Figures asked for: decoding"]}
    assert figures["the same words"]["measured"] >= 0.99


def test_figures_of_rounds(tables_of, monkeypatch):
    monkeypatch.setattr(rounds, "WORKLOADS", ("lattice-lstm", "tree-lstm"))
    monkeypatch.setattr(rounds, "LEARNED", 20)
    monkeypatch.setattr(rounds, "PROGRAMS", 4)
    cost, policies = tables_of(rounds.main).values()
    assert [row["asked, us"] for row in cost] == [41, 48, 104]
    for row in policies:
        assert row["bound"] <= row["run"] <= min(row["sufficient"], row["of whole graphs"])


def test_figures_of_serving(tables_of):
    tables = tables_of(serving.main, "--hidden", "8", "--requests=20")
    rows = tables["20 requests, hidden 8"]
    assert [row[""] for row in rows] == ["bare call", "1 in flight", "8 in flight", "64 in flight"]
    assert rows[1]["rounds"] > rows[2]["rounds"] > rows[3]["rounds"]


def bound_and_batches(program, samples):
    with eb.Graph(policy="sufficient") as graph:
        watched = Watched(graph)
        eb.run([watched.program(program(k)) for k in samples])
    return watched.bound(), graph.report().batches


def test_what_was_waited_for_comes_first():
    """Between the steps of a chain a value is read: no operand ties them, but what is read does."""

    async def chain(n):
        for k in range(n):
            await eb.tanh(eb.input([float(k)]))

    assert bound_and_batches(chain, [3, 5, 2]) == (5, 5)

    async def at_once(n):
        await eb.values([eb.tanh(eb.input([float(k)])) for k in range(n)])

    assert bound_and_batches(at_once, [3, 5, 2]) == (1, 1)


def test_parts_wait_for_what_was_before_them_and_are_waited_for():
    async def step(k):
        await eb.tanh(eb.input([float(k)]))

    async def program(k):
        await step(k)
        await eb.all(step(k + 1), step(k + 2), eb.values([eb.tanh(eb.ones(1))]))
        await step(k + 3)

    assert bound_and_batches(program, [0, 10]) == (3, 3)


def test_rounds_may_take_more_than_the_bound():
    """What one does first and another last could run together, if somebody waited; rounds wait for nobody."""

    async def program(k):
        for name in ("tanh", "exp") if k else ("exp", "tanh"):
            await getattr(eb, name)(eb.ones(1))

    assert bound_and_batches(program, [0, 1]) == (2, 4)
