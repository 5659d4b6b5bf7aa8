"""The networks that EdBatch is measured against compute what it computes: in float64, on samples of any form."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edbatch as eb
from edbatch.models.workloads import WORKLOADS, Labelled

torch = pytest.importorskip("torch", reason="the extra bench")

SIZES = {"tagger": (3, 3), "tree": (3, 5), "lattice": (3, 3, 3), "encoder-decoder": (5, 5)}


@st.composite
def trees(draw):
    """Single words among them."""
    words, children, roots = [], [], []

    def add(word, below):
        words.append(word)
        children.append(below)
        roots.append(len(words) - 1)

    for _ in range(draw(st.integers(1, 8))):
        add(draw(st.integers(0, 2)), ())
        while len(roots) > 1 and draw(st.booleans()):
            add(None, (roots.pop(-2), roots.pop()))
    while len(roots) > 1:
        add(None, (roots.pop(-2), roots.pop()))
    return Labelled((words, children), [draw(st.integers(0, 4)) for _ in words])


@st.composite
def lattices(draw):
    """Words of any length, and words twice."""
    arcs = [[], [(0, 1)]]
    for node in range(2, draw(st.integers(2, 7))):
        word = st.tuples(st.integers(0, node - 2), st.integers(0, 2))
        arcs.append([(node - 1, draw(st.integers(0, 2))), *draw(st.lists(word, max_size=2))])
    return Labelled((arcs,), [draw(st.integers(0, 2)) for _ in arcs[1:]])


def numbers(low, high):
    return st.lists(st.integers(low, high), min_size=1, max_size=6)


SENTENCES = numbers(0, 2).map(lambda words: Labelled((words,), [word % 3 for word in words]))
PAIRS = st.tuples(numbers(0, 4), numbers(3, 4)).map(lambda pair: Labelled(pair, [*pair[1], 2]))
SAMPLES = {
    "tree-lstm": trees(), "tree-gru": trees(), "mv-rnn": trees(), "tree-lstm-2type": trees(), "tagger": SENTENCES,
    "encoder-decoder": PAIRS, "lattice-lstm": lattices(), "lattice-gru": lattices(),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
@settings(max_examples=10, deadline=None)
@given(st.data())
def test_probabilities_losses_and_gradients_are_the_same(name, data):
    from scripts.bench.contest import loss_of, probabilities_of
    from scripts.bench.torch_sides import PEERS, answers

    samples = data.draw(st.lists(SAMPLES[name], min_size=1, max_size=4))
    sizes = next(of for kind, of in SIZES.items() if kind in name or (kind, name) == ("tree", "mv-rnn"))
    model = eb.ParameterCollection(seed=0, dtype="float64")
    network = WORKLOADS[name].network(model, *sizes, 4)
    random = np.random.default_rng(0)
    for parameter in model:  # biases too
        parameter.set_value(random.normal(scale=0.5, size=parameter.shape))
    with eb.Graph(policy="sufficient", dtype="float64"):
        loss = eb.sum([loss_of(network, sample) for sample in samples])
        probabilities = eb.forward([p for sample in samples for p in probabilities_of(network, sample)])
    loss.backward()
    expected = {"": np.array(probabilities), "loss": np.array(loss.value())}
    expected |= {parameter.name: parameter.grad() for parameter in model}
    for kind in PEERS[name].values():
        found, own = answers(kind(model), samples, expected)
        assert found.keys() == own.keys()
        for array, value in own.items():
            np.testing.assert_allclose(found[array], value, rtol=1e-9, atol=1e-11, err_msg=f"{kind} {array}")


@pytest.mark.parametrize("adam", [True, False], ids=["Adam", "SGD"])
def test_updates_are_the_same(adam):
    from scripts.bench.contest import Own, Task
    from scripts.peers.peer import training_step
    from scripts.peers.trees import PEERS

    task = Task("tree-lstm", 20, None)
    own = Own(task, 4, dtype="float64", adam=adam)
    peer = PEERS["tree-lstm"]["by hand"](own.model)
    step = training_step(peer, peer.optimizers(1e-5, adam))
    for begin in (0, 10, 5):
        mini_batch = task.samples[begin : begin + 10]
        own.step(mini_batch, policy="sufficient")
        step(peer.batch([peer.prepare(sample) for sample in mini_batch]))
    for name, parameter in peer.named_parameters():  # Adam's of tables adds epsilon before it corrects the bias
        np.testing.assert_allclose(parameter.detach().numpy(), own.model[name].value(), rtol=1e-5, atol=1e-8)
