"""The transition parser: its moves cost what an exhaustive search finds; together as one by one; it learns."""

from copy import deepcopy
from random import Random

import numpy as np
import pytest

import edbatch as eb
from edbatch.data.dependencies import random_dependencies
from edbatch.models import TransitionParser
from edbatch.models.arc_hybrid import Configuration, Move

SENTENCES = random_dependencies(12, seed=0)
WORDS = {word: i for i, word in enumerate(sorted({word for s in SENTENCES for word in s.words}))}
RELATIONS = {name: i for i, name in enumerate(sorted({name for s in SENTENCES for name in s.relations}))}


def numbered(sentence):
    return [WORDS[w] for w in sentence.words], sentence.heads, [RELATIONS[r] for r in sentence.relations]


def made(dtype="float64", dim=8):
    model = eb.ParameterCollection(seed=3, dtype=dtype)
    return model, TransitionParser(model, len(WORDS), len(RELATIONS), dim)


@pytest.mark.parametrize(("policy", "explore"), [("sufficient", 0.7), ("none", 0.0)])
def test_losses_and_gradients_are_those_of_one_by_one(policy, explore):
    model, parser = made()
    found = []
    for limit in (None, 1):
        model.zero_grad()
        with eb.Graph(dtype="float64", policy=policy):
            programs = [parser.loss(*numbered(s), explore, Random(k)) for k, s in enumerate(SENTENCES)]
            losses = eb.run(programs, limit=limit)
            total = eb.sum([loss for of_sentence in losses for loss in of_sentence])
        total.backward()
        found.append([total.value(), *(p.grad() for p in model)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_trees_are_those_of_one_by_one():
    _, parser = made()
    with eb.Graph(dtype="float64", policy="sufficient") as graph:
        together = eb.run([parser.parse(numbered(s)[0]) for s in SENTENCES])
    with eb.Graph(dtype="float64", policy="sufficient"):
        assert eb.run([parser.parse(numbered(s)[0]) for s in SENTENCES], limit=1) == together
    assert graph.report().batches == graph.report().lower_bound
    for (heads, relations), sentence in zip(together, SENTENCES, strict=True):
        assert len(heads) == len(relations) == len(sentence)
        assert all(0 <= head <= len(sentence) for head in heads)
        assert all(0 <= relation < len(RELATIONS) for relation in relations)


def test_an_empty_sentence():
    _, parser = made("float32")
    assert eb.run([parser.parse([]), parser.parse([1])])[0] == ([], [])


def after(configuration, move, heads):
    """The configuration that a move leads to, and whether it makes a right arc."""
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


def test_costs_are_those_of_an_exhaustive_search():
    random = Random(0)
    for sentence in [sentence for sentence in random_dependencies(200, seed=1) if len(sentence) < 9][:60]:
        heads, known = sentence.heads, {}
        configuration = Configuration(len(heads))
        while not configuration.is_over:
            now = most(configuration, heads, known)
            for move in configuration.allowed():
                then, right = after(configuration, move, heads)
                assert configuration.cost(move, heads) == now - right - most(then, heads, known)
            configuration.apply(random.choice(configuration.allowed()))
