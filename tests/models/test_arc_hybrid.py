"""The cost of a transition is what an exhaustive search finds."""

from copy import deepcopy
from random import Random

import pytest

from edbatch.data.dependencies import random_dependencies
from edbatch.models.arc_hybrid import Configuration, Move


def after(configuration, move, heads):
    """What a move leads to, and whether it makes a right arc."""
    then = deepcopy(configuration)
    then.apply(move)
    return then, move is not Move.SHIFT and then.heads[(word := configuration.stack[-1]) - 1] == heads[word - 1]


def most(configuration, heads, known):
    """How many right arcs can still be made."""
    if configuration.is_over:
        return 0
    key = (*configuration.stack, -1, *configuration.buffer)
    if key not in known:
        ways = [after(configuration, move, heads) for move in configuration.allowed()]
        known[key] = max(right + most(then, heads, known) for then, right in ways)
    return known[key]


SENTENCES = [sentence for sentence in random_dependencies(300, seed=1) if len(sentence) < 9]


@pytest.mark.parametrize("seed", range(4))
def test_costs_are_those_of_an_exhaustive_search(seed):
    random = Random(seed)
    for sentence in SENTENCES[seed::4][:25]:
        heads, known = sentence.heads, {}
        configuration = Configuration(len(heads))
        while not configuration.is_over:
            now = most(configuration, heads, known)
            for move in configuration.allowed():
                then, right = after(configuration, move, heads)
                assert configuration.cost(move, heads) == now - right - most(then, heads, known)
            configuration.apply(random.choice(configuration.allowed()))


def test_moves_without_cost_lead_to_the_tree():
    for sentence in random_dependencies(50, seed=2):
        configuration = Configuration(len(sentence))
        while not configuration.is_over:
            moves = configuration.allowed()
            configuration.apply(next(move for move in moves if not configuration.cost(move, sentence.heads)))
        assert configuration.heads == sentence.heads
