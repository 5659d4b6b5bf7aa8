"""Random programs give what they mean: 300 always, 20,000 with `-m slow`, as many as you like in a terminal.

    EDBATCH_FUZZ=5000:5100 python -m pytest tests/fuzz/test_fuzz.py -k chosen

runs the programs of these seeds. A program that fails is made small and printed as a script.
"""

import os

import pytest

from edbatch.runtime import remembered
from tests.fuzz.generate import generate
from tests.fuzz.program import Program
from tests.fuzz.replayed import Replayed
from tests.fuzz.retold import Retold
from tests.fuzz.run import Counts, check
from tests.fuzz.shrink import shrunk

PROGRAMS, REPLAYED, RETOLD, SLOW = 300, 90, 60, 20_000
CELLS = 30  # different cells are compiled one by one, and that takes most of the time


def run(seeds, cells, kind=Program):
    """Every program of these seeds is right, and rounding leaves nothing of few of their numbers."""
    counts = Counts()
    for seed in seeds:
        program = generate(seed, cells)
        program = kind(program.seed, program.dtype, program.statements)
        failure = check(program, counts)
        if failure is not None:
            program, failure = shrunk(program, failure)
            pytest.fail(f"program {seed}: {failure.message}\n\n{program.script()}", pytrace=False)
    assert counts.blind <= 0.01 * counts.arrays


@pytest.mark.parametrize("first", range(0, PROGRAMS, 50))
def test_random_programs(first):
    run(range(first, first + 50), CELLS)


@pytest.mark.parametrize("first", range(0, REPLAYED, 30))
def test_random_programs_that_are_replayed(first):
    run(range(first, first + 30), CELLS, Replayed)


@pytest.mark.parametrize("first", range(0, RETOLD, 30))
def test_random_programs_whose_structures_are_known(first, monkeypatch):
    monkeypatch.setattr(remembered, "MOST_MISSED", 1 << 30)
    monkeypatch.setattr(remembered.of_graphs, "wants", lambda key: False)  # else they would be found by all integers
    before = remembered.of_structures.hits
    run(range(first, first + 30), CELLS, Retold)
    assert remembered.of_structures.hits > before


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SLOW, 500))
def test_many_random_programs_that_are_replayed(first):
    run(range(first, first + 500), 5 * CELLS, Replayed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SLOW, 500))
def test_many_random_programs(first):
    run(range(first, first + 500), 5 * CELLS)


def test_chosen_random_programs():
    chosen = os.environ.get("EDBATCH_FUZZ")
    if chosen is None:
        pytest.skip("EDBATCH_FUZZ names no seeds")
    first, _, end = chosen.partition(":")
    run(range(int(first), int(end or int(first) + 1)), 5 * CELLS)
