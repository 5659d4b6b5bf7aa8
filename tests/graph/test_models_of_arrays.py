"""Whole models written with arrays of expressions compute what PyTorch does, sample by sample."""

import numpy as np
import pytest

import edbatch as eb

torch = pytest.importorskip("torch")

SIZE, WORDS, TAGS = 6, 20, 4


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def assert_gradients(parameters, tensors):
    for parameter, tensor in zip(parameters, tensors, strict=True):
        np.testing.assert_allclose(parameter.grad(), tensor.grad.numpy(), rtol=1e-9, atol=1e-12)


def added(model, rng, *shapes):
    """Parameters of these shapes, and tensors with the same numbers."""
    arrays = [rng.normal(size=shape) * 0.5 for shape in shapes]
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    return [model.add_parameters(array.shape, init=array) for array in arrays], tensors


@pytest.mark.parametrize("policy", ["none", "depth", "agenda", "sufficient"])
def test_a_tagger_of_sentences_of_all_lengths(rng, policy):
    model = eb.ParameterCollection(dtype="float64")
    (W, U, b, out), tensors = added(model, rng, (4 * SIZE, SIZE), (4 * SIZE, SIZE), (4 * SIZE,), (TAGS, SIZE))
    table = rng.normal(size=(WORDS, SIZE))
    embed, embedded = model.add_lookup_parameters(table.shape, init=table), torch.tensor(table, requires_grad=True)
    lengths = rng.integers(1, 9, 12)
    words, tags = rng.integers(0, WORDS, (12, 9)), rng.integers(0, TAGS, (12, 9))

    @eb.cell
    def step(h, c, word: int):
        i, f, o, u = eb.split(W @ eb.lookup(embed, word) + U @ h + b, 4)
        c = eb.sigmoid(i) * eb.tanh(u) + eb.sigmoid(f) * c
        return eb.sigmoid(o) * eb.tanh(c), c

    with eb.Graph(policy, "float64"):
        h = c = eb.array([eb.zeros(SIZE)] * 12)
        losses, there = [], np.arange(12)
        for t in range(lengths.max()):
            goes_on = lengths[there] > t
            there = there[goes_on]
            h, c = step(h[goes_on], c[goes_on], words[there, t])
            losses.append(eb.cross_entropy(out @ h, tags[there, t]))
        total = eb.sum(eb.array(losses))
    total.backward()

    expected = torch.zeros((), dtype=torch.float64)
    w, u, bias, scores = tensors
    for sentence, labels, length in zip(words, tags, lengths, strict=True):
        h, c = torch.zeros(2, SIZE, dtype=torch.float64)
        for word, label in zip(sentence[:length], labels[:length], strict=True):
            i, f, o, g = (w @ embedded[word] + u @ h + bias).chunk(4)
            c = torch.sigmoid(i) * torch.tanh(g) + torch.sigmoid(f) * c
            h = torch.sigmoid(o) * torch.tanh(c)
            expected = expected + torch.nn.functional.cross_entropy(scores @ h, torch.tensor(label))
    expected.backward()
    np.testing.assert_allclose(total.value(), expected.item(), rtol=1e-12)
    assert_gradients([W, U, b, out, embed], [*tensors, embedded])


def test_trees_level_by_level(rng):
    """Parents of all trees whose children are there are an array, whatever the trees are."""
    model = eb.ParameterCollection(dtype="float64")
    (W, b, out), tensors = added(model, rng, (SIZE, 2 * SIZE), (SIZE,), (TAGS, SIZE))
    table = rng.normal(size=(WORDS, SIZE))
    embed, embedded = model.add_lookup_parameters(table.shape, init=table), torch.tensor(table, requires_grad=True)
    n_words, n_inner = 15, 14
    children = np.array([rng.choice(n_words + at, 2) for at in range(n_inner)])  # of a graph without cycles
    words, labels = rng.integers(0, WORDS, n_words), rng.integers(0, TAGS, n_inner)

    depth = np.zeros(n_words + n_inner, np.int64)
    for at, pair in enumerate(children):
        depth[n_words + at] = 1 + depth[pair].max()

    @eb.cell
    def compose(left, right):
        return eb.tanh(W @ eb.concatenate([left, right]) + b)

    with eb.Graph("sufficient", "float64") as graph:
        states, place = eb.tanh(eb.lookup(embed, words)), np.full(n_words + n_inner, -1)
        place[:n_words] = np.arange(n_words)
        for level in range(1, depth.max() + 1):
            these = np.flatnonzero(depth == level)
            left, right = place[children[these - n_words].T]
            place[these] = len(states) + np.arange(len(these))
            states = eb.array([states, compose(states[left], states[right])])
        total = eb.sum(eb.cross_entropy(out @ states[place[n_words:]], labels))
    total.backward()

    w, bias, scores = tensors
    found = [torch.tanh(embedded[word]) for word in words]
    expected = torch.zeros((), dtype=torch.float64)
    for (left, right), label in zip(children, labels, strict=True):
        found.append(torch.tanh(w @ torch.cat([found[left], found[right]]) + bias))
        expected = expected + torch.nn.functional.cross_entropy(scores @ found[-1], torch.tensor(label))
    expected.backward()
    np.testing.assert_allclose(total.value(), expected.item(), rtol=1e-12)
    assert_gradients([W, b, out, embed], [*tensors, embedded])
    assert graph.report().batches == graph.report().lower_bound
