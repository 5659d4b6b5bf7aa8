"""Models by name: every one reads its files, and gives probabilities that do not depend on the batching."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.data.sentences import random_sentences, write_sentences
from edbatch.models.workloads import NINE, RARE, WORKLOADS, get_workload
from tests.models.against_torch import randomized

DIM = 6


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


def made(name, n=5, seed=2):
    """A network in float64 with its samples, their labels, and its parameters by name."""
    workload = WORKLOADS[name]
    samples, sizes, labels = workload.number(workload.generate(n, seed))
    model = eb.ParameterCollection(seed=3, dtype="float64")
    network = workload.network(model, *sizes, DIM)
    return network, samples, labels, randomized(model)


def outputs(name, network, samples):
    """Per sample the probabilities at its places."""
    with eb.Graph(dtype="float64"):
        found = WORKLOADS[name].outputs(network, samples)
        values = iter(eb.forward([p for of_sample in found for p in of_sample]))
    return [[next(values) for _ in of_sample] for of_sample in found]


def run(name, samples, policy):
    workload = WORKLOADS[name]
    numbered, sizes, labels = workload.number(samples)
    network = workload.network(eb.ParameterCollection(seed=3), *sizes, 6)
    with eb.Graph(policy=policy) as graph:
        values = eb.forward([p for of_sample in workload.outputs(network, numbered) for p in of_sample])
    assert all(value.ndim == 1 and len(value) <= len(labels) for value in values)
    assert {len(value) for value in values} == {len(labels)}
    np.testing.assert_allclose([value.sum() for value in values], 1, rtol=1e-5)
    return np.concatenate(values), graph.report()


def test_the_nine_of_the_paper():
    assert sorted(NINE) == sorted([
        "tree-lstm", "tree-gru", "mv-rnn", "tree-lstm-2type", "tagger", "tagger-characters", "lattice-lstm",
        "lattice-gru", "encoder-decoder",
    ])  # fmt: skip
    assert list(WORKLOADS)[:9] == list(NINE)


@pytest.mark.parametrize("name", WORKLOADS)
def test_made_up_samples(name):
    samples = WORKLOADS[name].generate(6, 1)
    batched, report = run(name, samples, "sufficient")
    single, unbatched = run(name, samples, "none")
    np.testing.assert_allclose(batched, single, atol=1e-6)
    # Six questions ask few modules in common, and six points few experts.
    at_least = {"module-network": 2, "mixture-of-experts": 2}.get(name, 3)
    assert report.nodes == unbatched.batches > at_least * report.batches


@pytest.mark.parametrize("name", WORKLOADS)
def test_real_samples(data_folder, name):
    workload = WORKLOADS[name]
    if not workload.folder:
        pytest.skip("there is no real data for it")
    samples = workload.read(*(data_folder / path for path in workload.folder), limit=6)
    batched, _ = run(name, samples, "sufficient")
    np.testing.assert_allclose(batched, run(name, samples, "none")[0], atol=1e-6)


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


@pytest.mark.parametrize(("name", "length"), [("language-model-fixed", 64), ("tree-fc", 256)])
def test_pieces_of_one_length(tmp_path, name, length):
    workload = WORKLOADS[name]
    made_up = workload.generate(3, 0)
    assert list(map(len, made_up)) == [length] * 3
    assert made_up[:2] == workload.generate(2, 0)
    path = tmp_path / "text.txt"
    write_sentences(path, random_sentences(60, seed=0))
    assert set(map(len, workload.read(path))) == {length}


@pytest.mark.parametrize("name", WORKLOADS)
def test_other_files_than_it_reads(tmp_path, name):
    workload = WORKLOADS[name]
    paths = [tmp_path / "a.txt"] * 3
    with pytest.raises(eb.EdBatchError, match=f"expected files: {len(workload.files)} .*, got 3"):
        workload.read(*paths)


def test_questions_have_the_answers_of_clevr():
    network, samples, labels, _ = made("module-network")
    assert len(labels) == 28
    with eb.Graph(dtype="float64"):
        (steps, picture), (expected,) = samples[0], outputs("module-network", network, samples)[0]
        h = super(type(network), network).hidden(steps, eb.input(picture))
        np.testing.assert_allclose(network.probabilities(h).value(), expected, rtol=1e-9)
