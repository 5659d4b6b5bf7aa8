"""Random programs give what they mean: 200 always, 20,000 with `-m slow`, as many as you like in a terminal.

    python -m tests.fuzz 5000:5100

runs the programs of these seeds. A program that fails is made small and printed as a script.
"""

import pytest

from tests.fuzz.__main__ import failures
from tests.fuzz.run import Counts

PROGRAMS, SLOW = 200, 20_000
CELLS = 30


def run(seeds, cells):
    """Every program of these seeds is right, and rounding leaves nothing of few of their numbers."""
    counts = Counts()
    for text in failures(seeds, cells, counts=counts):
        pytest.fail(text, pytrace=False)
    assert counts.blind <= 0.01 * counts.arrays


@pytest.mark.parametrize("first", range(0, PROGRAMS, 50))
def test_random_programs(first):
    run(range(first, first + 50), CELLS)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SLOW, 500))
def test_many_random_programs(first):
    run(range(first, first + 500), 5 * CELLS)
