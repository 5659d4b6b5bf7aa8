"""TreeLSTM builders and the hierarchical softmax: values and gradients that DyNet's C++ library gave, and more.

`scripts/dynet/record_builders.cc` asked it.
"""

from pathlib import Path

import numpy as np
import pytest

import edbatch.dynet as dy

DATA = Path(__file__).parent / "data" / "builders"
CHILDREN = [[], [], [], [0], [3, 1, 2], [4, 0]]
WORDS = {f"w{number}": number for number in range(8)}


@pytest.fixture
def model():
    dy.reset_random_seed(2)
    return dy.ParameterCollection()


def vector(size, number):
    return dy.inputVector(np.cos(np.arange(size) + 3.0 * number))


def told(name):
    lines = [line.split() for line in (DATA / "values.txt").read_text().splitlines()]
    return [[float(x) for x in line[1:]] for line in lines if line[0] == name]


def grown(builder, size):
    return [builder.add_input(node, children, vector(size, node)) for node, children in enumerate(CHILDREN)]


def expect_same_file(model, name, tmp_path):
    """Names, dimensions, values and gradients of all parameters, as DyNet wrote them."""
    model.save(str(tmp_path / "ours"))
    ours, theirs = ((folder).read_text().splitlines() for folder in (tmp_path / "ours", DATA / f"{name}.txt"))
    assert len(ours) == len(theirs)
    for own, other in zip(ours, theirs, strict=True):
        if own.startswith("#"):
            assert own == other
        else:
            values, expected = np.array(own.split(), float), np.array(other.split(), float)
            np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-7)


MAKERS = {
    "nary": (lambda model: dy.NaryTreeLSTMBuilder(2, 2, 3, 4, model), 3),
    "unidirectional": (lambda model: dy.UnidirectionalTreeLSTMBuilder(2, 4, 4, model), 4),
    "bidirectional": (lambda model: dy.BidirectionalTreeLSTMBuilder(1, 4, 4, model), 4),
}


@pytest.mark.parametrize("name", MAKERS)
class TestTrees:
    def test_values_and_gradients_are_dynets(self, model, name, tmp_path):
        make, size = MAKERS[name]
        builder = make(model)
        model.populate(str(DATA / f"{name}.txt"))
        builder.start_new_sequence()
        hs = grown(builder, size)
        dy.esum([dy.squared_norm(h) for h in hs]).backward()
        np.testing.assert_allclose([h.value() for h in hs], told(name), rtol=1e-4, atol=1e-6)
        expect_same_file(model, name, tmp_path)

    def test_as_constants(self, model, name):
        make, size = MAKERS[name]
        builder = make(model)
        builder.start_new_sequence(update=False)
        dy.squared_norm(grown(builder, size)[-1]).backward()
        assert not any(x.has_grad for x in model)

    def test_children_come_first(self, model, name):
        make, size = MAKERS[name]
        builder = make(model)
        builder.start_new_sequence()
        with pytest.raises(RuntimeError, match=r"children \[1\] were not added"):
            builder.add_input(0, [1], vector(size, 0))

    def test_saved_and_loaded(self, model, name, tmp_path):
        make, size = MAKERS[name]
        builder = make(model)
        dy.save(str(tmp_path / "saved"), [builder])
        (loaded,) = dy.load(str(tmp_path / "saved"), dy.ParameterCollection())
        values = []
        for one in (builder, loaded):
            one.start_new_sequence()
            values.append(grown(one, size)[-1].value())
        assert values[0] == values[1]
        assert loaded.whoami() == type(builder).__name__


def test_what_trees_begin_with(model):
    builder = dy.UnidirectionalTreeLSTMBuilder(1, 4, 4, model)
    builder.start_new_sequence([dy.ones(4), dy.zeros(4)])
    lstm = dy.LSTMBuilder(1, 4, 4, dy.ParameterCollection())
    for own, other in zip(lstm.param_collection(), builder.param_collection(), strict=True):
        own.set_value(other.as_array())
    expected = lstm.initial_state([dy.ones(4), dy.zeros(4)]).add_input(vector(4, 0)).output()
    assert builder.add_input(0, [], vector(4, 0)).value() == expected.value()
    with pytest.raises(RuntimeError, match="no vectors"):
        dy.NaryTreeLSTMBuilder(2, 1, 3, 4, model).start_new_sequence([dy.ones(4), dy.zeros(4)])
    with pytest.raises(RuntimeError, match="even"):
        dy.BidirectionalTreeLSTMBuilder(1, 3, 3, model)
    with pytest.raises(RuntimeError, match="start_new_sequence"):
        dy.UnidirectionalTreeLSTMBuilder(1, 4, 4, model).add_input(0, [], vector(4, 0))


class TestHierarchical:
    def test_losses_and_gradients_are_dynets(self, model, tmp_path):
        builder = dy.HierarchicalSoftmaxBuilder(3, str(DATA / "clusters"), WORDS, model)
        model.populate(str(DATA / "hierarchical.txt"))
        losses = [builder.neg_log_softmax(vector(3, 0), word) for word in WORDS.values()]
        dy.esum(losses).backward()
        np.testing.assert_allclose([[loss.value()] for loss in losses], told("hierarchical"), rtol=1e-5)
        expect_same_file(model, "hierarchical", tmp_path)

    def test_distribution_and_samples(self, model):
        builder, x = dy.HierarchicalSoftmaxBuilder(3, str(DATA / "clusters"), WORDS, model), vector(3, 1)
        logs = builder.full_log_distribution(x).npvalue()
        assert np.exp(logs).sum() == pytest.approx(1)
        losses = [builder.neg_log_softmax(x, word).value() for word in WORDS.values()]
        np.testing.assert_allclose(losses, -logs, rtol=1e-5)
        assert builder.full_logits(x).dim() == ((8,), 1)
        drawn = np.bincount([builder.sample(x) for _ in range(400)], minlength=8) / 400
        np.testing.assert_allclose(drawn, np.exp(logs), atol=0.1)

    def test_a_word_alone_is_certain(self, model, tmp_path):
        (tmp_path / "clusters").write_text("0\tw0\n")
        builder = dy.HierarchicalSoftmaxBuilder(3, str(tmp_path / "clusters"), WORDS, model)
        assert builder.neg_log_softmax(vector(3, 0), 0).value() == 0.0
        assert builder.sample(vector(3, 0)) == 0

    def test_lines_of_other_files(self, model, tmp_path):
        (tmp_path / "clusters").write_text("0 w0\n")
        with pytest.raises(RuntimeError, match="formatting"):
            dy.HierarchicalSoftmaxBuilder(3, str(tmp_path / "clusters"), WORDS, model)
