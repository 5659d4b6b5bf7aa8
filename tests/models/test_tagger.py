"""BiLSTM tagger against its equations in float64 NumPy, one sentence at a time."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.data.tagged import random_tagged, read_tagged
from edbatch.data.vocabulary import Vocabulary
from edbatch.models import BiLSTMTagger
from tests.models.equations import cross_entropy, every_way, forward, lstm_outputs, randomized, softmax

DIM = 5


def samples_of(sentences, at_least=1):
    """Sentences as numbers, rare words as characters; and sizes of vocabulary, tags and characters."""
    words = Vocabulary((word for sentence in sentences for word in sentence.words), at_least)
    tags = Vocabulary(tag for sentence in sentences for tag in sentence.tags)
    letters = Vocabulary(letter for sentence in sentences for word in sentence.words for letter in word)
    samples = [
        (
            [words[word] if word in words else [letters[letter] for letter in word] for word in sentence.words],
            [tags[tag] for tag in sentence.tags],
        )
        for sentence in sentences
    ]
    return samples, len(words), len(tags), len(letters)


def oracle(p, words):
    """Scores of every word."""
    xs = []
    for word in words:
        if isinstance(word, list):
            letters = [p["characters"][letter] for letter in word]
            right, left = lstm_outputs(p, "spell_right", letters), lstm_outputs(p, "spell_left", letters[::-1])
            xs.append(np.append(right[-1], left[-1]))
        else:
            xs.append(p["embed"][word])
    right, left = xs, xs[::-1]
    for layer in range(2):
        right, left = lstm_outputs(p, f"right{layer}", right), lstm_outputs(p, f"left{layer}", left)
    hidden = [np.tanh(p["W_hidden"] @ np.append(a, b) + p["b_hidden"]) for a, b in zip(right, left[::-1], strict=True)]
    return [p["W_out"] @ h + p["b_out"] for h in hidden]


def check(sentences, way, at_least=1, dtype="float64"):
    samples, words, tags, letters = samples_of(sentences, at_least)
    model = eb.ParameterCollection(dtype=dtype)
    tagger = BiLSTMTagger(model, words, tags, DIM, characters=letters if at_least > 1 else 0)
    p = randomized(model)
    got, report = forward(
        way, lambda: [tagger.probabilities(h) for sentence, _ in samples for h in tagger.hidden(sentence)], dtype
    )
    want = [softmax(scores) for sentence, _ in samples for scores in oracle(p, sentence)]
    exact = {"rtol": 1e-10} if dtype == "float64" else {"atol": 2e-6}
    np.testing.assert_allclose(got, want, **exact)
    losses, _ = forward(way, lambda: [tagger.loss(*sample) for sample in samples], dtype)
    want = [sum(map(cross_entropy, oracle(p, sentence), right)) for sentence, right in samples]
    np.testing.assert_allclose(losses, want, rtol=1e-10 if dtype == "float64" else 1e-5)
    return report


@every_way
def test_made_up_sentences(way):
    check(random_tagged(6, seed=3), way)


@every_way
def test_rare_words_by_their_characters(way):
    check(random_tagged(8, seed=4), way, at_least=2)


@pytest.mark.parametrize("at_least", [1, 3])
def test_real_sentences(data_folder, at_least):
    sentences = read_tagged(data_folder / "wikiner" / "dev.txt")[:12]
    report = check(sentences, "batched", at_least)
    if at_least == 1:
        assert report.batches == report.lower_bound
        # Embeddings for the second direction, inputs of two layers, two of the perceptron; none in the recurrences.
        assert report.gathered <= 5
    check(sentences, "batched", at_least, dtype="float32")


def test_words_that_cannot_be_read():
    tagger = BiLSTMTagger(eb.ParameterCollection(), words=4, tags=2, dim=2)
    with (
        eb.Graph(),
        pytest.raises(eb.EdBatchError, match=r"word\(\[1, 2\]\): .* number of a word; made without charac"),
    ):
        tagger.hidden([3, [1, 2]])
    tagger = BiLSTMTagger(eb.ParameterCollection(), words=4, tags=2, dim=2, characters=3)
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=r"word\(\[\]\): .* or at least one character"):
        tagger.hidden([[]])
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=r"index 9|9.*out of range"):
        tagger.hidden([9])
