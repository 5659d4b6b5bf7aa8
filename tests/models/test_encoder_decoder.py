"""LSTM encoder-decoder against its equations in float64 NumPy, one pair at a time."""

import numpy as np

import edbatch as eb
from edbatch.data.parallel import random_parallel, read_parallel
from edbatch.data.vocabulary import Vocabulary
from edbatch.models import EncoderDecoder
from tests.models.equations import cross_entropy, every_way, forward, lstm, randomized, softmax

DIM, START, END = 4, 1, 2


def oracle(p, source, target):
    """Scores of the words of `target`, and of its end."""
    h, c = np.zeros(DIM), np.zeros(DIM)
    for word in source:
        h, c = lstm(p, "encoder", p["embed_source"][word], h, c)
    scores = []
    for word in [START, *target]:
        h, c = lstm(p, "decoder", p["embed_target"][word], h, c)
        scores.append(p["W_out"] @ h + p["b_out"])
    return scores


def check(samples, sizes, way):
    model = eb.ParameterCollection(dtype="float64")
    made = EncoderDecoder(model, *sizes, DIM)
    p = randomized(model)
    got, report = forward(way, lambda: [made.probabilities(h) for sample in samples for h in made.hidden(*sample)])
    scores = [oracle(p, *sample) for sample in samples]
    np.testing.assert_allclose(got, [softmax(row) for rows in scores for row in rows], rtol=1e-10)
    losses, _ = forward(way, lambda: [made.loss(*sample) for sample in samples])
    want = [sum(map(cross_entropy, rows, [*target, END])) for rows, (_, target) in zip(scores, samples, strict=True)]
    np.testing.assert_allclose(losses, want, rtol=1e-10)
    return report


def numbered(pairs, source, target):
    return [([source[w] for w in pair.source], [target[w] for w in pair.target]) for pair in pairs]


@every_way
def test_made_up_pairs(way):
    pairs = random_parallel(8, seed=2)
    source = Vocabulary(word for pair in pairs for word in pair.source)
    target = Vocabulary(["<s>", "</s>"] + [word for pair in pairs for word in pair.target])
    check(numbered(pairs, source, target), (len(source), len(target)), way)


def test_real_pairs(data_folder):
    folder = data_folder / "iwslt15"
    pairs = sorted(read_parallel(folder / "tst2012.en", folder / "tst2012.vi"), key=lambda pair: len(pair.source))[:12]
    words = [(folder / name).read_text(encoding="utf-8").split("\n") for name in ("vocab.en", "vocab.vi")]
    vocabularies = [Vocabulary(lines[1:]) for lines in words]
    check(numbered(pairs, *vocabularies), map(len, vocabularies), "batched")


def test_nothing_to_read_or_to_say():
    check([([], []), ([], [3]), ([3], [])], (4, 4), "batched")


def test_start_and_end_are_words_of_ones_own():
    made = EncoderDecoder(eb.ParameterCollection(seed=1), 4, 6, DIM, start=5, end=4)
    with eb.Graph(policy="sufficient"):
        first, *_ = hidden = made.hidden([3], [0])
        start = made.encode([3]).add_input(eb.lookup(made.embed_target, 5)).output()
        want = eb.cross_entropy(made.scores(hidden[0]), 0) + eb.cross_entropy(made.scores(hidden[1]), 4)
        values = eb.forward([first, start, made.loss([3], [0]), want])
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6)
    np.testing.assert_allclose(values[2], values[3], rtol=1e-5)
