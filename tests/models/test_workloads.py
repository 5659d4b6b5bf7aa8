"""Models by name: every one reads its files, and gives probabilities that do not depend on the batching."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.models.workloads import RARE, WORKLOADS, get_workload
from tests.models.equations import forward


def run(name, samples, way):
    workload = WORKLOADS[name]
    numbered, sizes, labels = workload.number(samples)
    network = workload.network(eb.ParameterCollection(seed=3), *sizes, 6)
    values, report = forward(
        way, lambda: [p for sample in numbered for p in workload.probabilities(network, sample)], "float32"
    )
    assert all(value.shape == (len(labels),) for value in values)
    np.testing.assert_allclose([value.sum() for value in values], 1, rtol=1e-5)
    return np.array(values), report


@pytest.mark.parametrize("name", WORKLOADS)
def test_made_up_samples(name):
    samples = WORKLOADS[name].generate(6, 1)
    batched, report = run(name, samples, "batched")
    single, unbatched = run(name, samples, "one at a time")
    np.testing.assert_allclose(batched, single, atol=1e-6)
    assert report.nodes == unbatched.batches > 3 * report.batches


@pytest.mark.parametrize("name", WORKLOADS)
def test_real_samples(data_folder, name):
    workload = WORKLOADS[name]
    samples = workload.read(*(data_folder / path for path in workload.folder))[:6]
    batched, _ = run(name, samples, "batched")
    np.testing.assert_allclose(batched, run(name, samples, "one at a time")[0], atol=1e-6)


def test_only_rare_words_are_spelled():
    workload = WORKLOADS["tagger-characters"]
    sentences = workload.generate(40, 0)
    words = [word for sentence in sentences for word in sentence.words]
    numbered, sizes, _ = workload.number(sentences)
    seen = [word for (sample,) in numbered for word in sample]
    for word, number in zip(words, seen, strict=True):
        assert isinstance(number, int) == (words.count(word) >= RARE)
        assert isinstance(number, int) or len(number) == len(word)
    assert sizes[0] == 1 + len({word for word in words if words.count(word) >= RARE})


def test_sentences_begin_and_end_with_words_of_their_own():
    workload = WORKLOADS["encoder-decoder"]
    _, sizes, labels = workload.number(workload.generate(10, 0))
    network = workload.network(eb.ParameterCollection(), *sizes, 2)
    assert (labels[network.start], labels[network.end], len(labels)) == ("<s>", "</s>", sizes[1])


def test_no_such_model():
    with pytest.raises(eb.EdBatchError, match="no model is named 'bert'; expected one of tree-lstm, "):
        get_workload("bert")
