"""Scores, probabilities and cross-entropies against float64 NumPy."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.models import Classifier
from tests.models.equations import cross_entropy, every_way, forward, randomized, softmax

DIM, LABELS = 4, 3


@every_way
def test_against_the_equations(way):
    made = Classifier(model := eb.ParameterCollection(dtype="float64"), DIM, LABELS)
    p = randomized(model)
    hidden, labels = np.random.default_rng(0).normal(size=(5, DIM)), [2, 0, 1, 1, 0]

    def build():
        inputs = [eb.input(h) for h in hidden]
        made_of = [f(h) for f in (made.scores, made.probabilities) for h in inputs]
        return [*made_of, made.cross_entropies(inputs, labels)]

    got, _ = forward(way, build)
    scores = [p["W_out"] @ h + p["b_out"] for h in hidden]
    np.testing.assert_allclose(got[:5], scores, rtol=1e-12)
    np.testing.assert_allclose(got[5:10], list(map(softmax, scores)), rtol=1e-12)
    np.testing.assert_allclose(got[10], sum(map(cross_entropy, scores, labels)), rtol=1e-12)


def test_bad_labels():
    made = Classifier(eb.ParameterCollection(), DIM, LABELS)
    with eb.Graph():
        with pytest.raises(eb.EdBatchError, match=r"cell Classifier.cross_entropy"):
            made.cross_entropy(eb.zeros(DIM), LABELS)
        with pytest.raises(ValueError, match="argument 2 is"):
            made.cross_entropies([eb.zeros(DIM)], [0, 1])
