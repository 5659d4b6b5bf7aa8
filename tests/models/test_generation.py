"""Sentences said word by word: together as one by one; a beam finds what a search of all sentences finds."""

from itertools import product

import numpy as np
import pytest

import edbatch as eb
from edbatch.models import AttentionEncoderDecoder, EncoderDecoder, generation

WORDS = 9
KINDS = [EncoderDecoder, AttentionEncoderDecoder]
SOURCES = [[3, 4, 5], [1], [2, 2, 7, 8, 1], [6, 5]] * 3


def made(kind, words=WORDS, scale=3.0, dtype="float64"):
    """A network whose words follow from the source: its parameters are larger than those that are learned from."""
    model = eb.ParameterCollection(seed=2, dtype=dtype)
    network = kind(model, WORDS, words, 6)
    for parameter in model:
        parameter.set_value(scale * parameter.value())
    return model, network


WAYS = {
    "greedy": lambda network, k: generation.greedy(network, SOURCES[k], longest=5 + k),
    "sampled": lambda network, k: generation.sampled(network, SOURCES[k], np.random.default_rng(k), 5 + k, 0.7),
    "beam": lambda network, k: generation.beam(network, SOURCES[k], 1 + k % 4, longest=5),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_together_as_one_by_one(kind, way):
    _, network = made(kind)
    found = []
    for most in (None, 1):
        with eb.Graph(dtype="float64", policy="sufficient"):
            found.append(eb.run([WAYS[way](network, k) for k in range(len(SOURCES))], limit=most))
    if way == "beam":
        for a, b in zip(*found, strict=True):
            assert [one.words for one in a] == [one.words for one in b]
            np.testing.assert_allclose([one.score for one in a], [one.score for one in b], rtol=1e-12)
    else:
        assert found[0] == found[1]
        assert len({tuple(words) for words in found[0]}) > 2


def test_draws_have_their_probabilities():
    p, random = np.array([0.0, 0.1, 0.0, 0.6, 0.3, 0.0], np.float32), np.random.default_rng(0)
    n = 20_000
    found = np.bincount([generation.drawn(p * 3, random.random()) for _ in range(n)], minlength=6) / n
    assert (np.abs(found - p) <= 4 * np.sqrt(p * (1 - p) / n)).all()
    assert [generation.drawn(p, share) for share in (0.0, np.nextafter(1.0, 0.0))] == [1, 4]


class Fixed:
    """Says the same whatever was said before."""

    start, end = 0, 1

    def __init__(self, scores):
        self.scores = scores

    def encode(self, source):
        return None

    def speak(self, state, word):
        return None, eb.input(self.scores)


@pytest.mark.parametrize("width", [1, 3, 6, 50])
def test_a_beam_keeps_the_best_of_equals_the_first(width):
    scores = np.array([0.5, -9.0, 2.0, 2.0, -np.inf, 1.0])
    p = scores - np.log(np.exp(scores).sum())
    with eb.Graph(dtype="float64", policy="sufficient"):
        (found,) = eb.run([generation.beam(Fixed(scores), None, width, longest=2)])
    ways = [(words, sum(p[list(words)])) for words in product([0, 2, 3, 4, 5], repeat=2)]
    ways += [((), p[1]), *(((word,), p[word] + p[1]) for word in (0, 2, 3, 4, 5))]
    if width == 50:
        assert sorted(one.words for one in found) == sorted(words for words, _ in ways)
    np.testing.assert_allclose([one.score for one in found], sorted((s for _, s in ways), reverse=True)[: len(found)])
    assert found[0].words == (2, 2)
    if width > 1:
        assert [one.words for one in found[:3]] == [(2, 2), (2, 3), (3, 2)][: len(found)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_wide_beam_finds_the_best_of_all_sentences(kind):
    words, longest = 4, 3
    _, network = made(kind, words, scale=1.0)
    others = [word for word in range(words) if word != network.end]
    sentences = [*(s for n in range(longest) for s in product(others, repeat=n))]
    with eb.Graph(dtype="float64", policy="sufficient"):
        losses = eb.forward([network.loss([1, 2], sentence) for sentence in sentences])
        (found,) = eb.run([generation.beam(network, [1, 2], width=200, longest=longest)])
    ended = {s: -loss for s, loss in zip(sentences, losses, strict=True)}
    best = sorted(ended, key=ended.get, reverse=True)
    known = [one for one in found if one.words in ended]
    assert [one.words for one in known] == best
    np.testing.assert_allclose([one.score for one in known], [ended[s] for s in best], rtol=1e-10)
    assert len(found) == len(best) + len(others) ** longest  # those that have not ended are there, too
    assert [one.score for one in found] == sorted([one.score for one in found], reverse=True)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda n: generation.beam(n, [1], width=0), "top_k"),
        (lambda n: generation.sampled(n, [1], np.random.default_rng(), temperature=0), "temperature=0; expected"),
        (lambda n: generation.greedy(n, []), "expected at least one expression"),
    ],
)
def test_arguments(program, message):
    _, network = made(AttentionEncoderDecoder, dtype="float32")
    with pytest.raises(eb.EdBatchError, match=message):
        eb.run([program(network)])
