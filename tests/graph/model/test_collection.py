"""Collections: found by name, in parts, counted, shown; names and shapes that are none."""

import copy
import pickle

import numpy as np
import pytest

import edbatch as eb
from edbatch.models import LSTM, Classifier


@pytest.fixture
def model():
    """W, an encoder of two layers, a head."""
    model = eb.ParameterCollection(seed=0)
    model.add_parameters((2, 3), name="W")
    encoder = model.sub("encoder")
    for layer in ("low", "high"):
        LSTM(encoder.sub(layer), 3, 3, name="lstm")
    Classifier(model.sub("head"), 3, 2)
    return model


def test_a_collection_is_found_in_by_name(model):
    W = model["W"]
    assert "W" in model
    assert W in model
    assert "V" not in model
    assert 5 not in model
    assert eb.ParameterCollection().add_parameters(2) not in model
    assert next(iter(model)) is W
    assert len(model) == len(list(model)) == len(model.keys()) == len(model.values()) == 9
    assert dict(model)["encoder.low.lstm.U"] is model["encoder.low.lstm.U"]
    assert [name for name, _ in model.items()] == [parameter.name for parameter in model]
    for wrong in ("V", 0, None, ("W",)):
        assert model.get(wrong) is None
        assert model.get(wrong, 1) == 1
    assert model.get("W") is W
    assert model.sub("encoder").get("low.lstm.W") is model["encoder.low.lstm.W"]


def test_parts_of_a_model(model):
    encoder, low = model.sub("encoder"), model.sub("encoder").sub("low")
    assert list(encoder.keys()) == [f"{layer}.lstm.{name}" for layer in ("low", "high") for name in "WUb"]
    assert list(low.keys()) == list(model.sub("encoder.low").keys()) == ["lstm.W", "lstm.U", "lstm.b"]
    assert low["lstm.W"] is model["encoder.low.lstm.W"] is encoder["low.lstm.W"]
    assert "lstm.W" in low
    assert "lstm.W" not in model
    assert "W" not in encoder
    assert model["W"] not in encoder
    assert low["lstm.b"] in encoder
    assert len(model.sub("none")) == 0
    low["lstm.W"].accumulator()[0][...] = 1
    model["W"].accumulator()[0][...] = 1
    encoder.zero_grad()
    assert model["W"].has_grad
    assert not low["lstm.W"].has_grad


def test_a_part_draws_what_the_model_would():
    one, other = eb.ParameterCollection(seed=3), eb.ParameterCollection(seed=3)
    a = [one.add_parameters((2, 2), name=name) for name in "ab"]
    b = [other.sub(name).add_parameters((2, 2), name="W") for name in "ab"]
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x.value(), y.value())


def test_parts_are_saved_and_loaded_without_their_prefix(model, tmp_path):
    path = tmp_path / "encoder.safetensors"
    model.sub("encoder").save(path)
    other = eb.ParameterCollection(seed=9)
    for layer in ("low", "high"):
        LSTM(other.sub("a.b").sub(layer), 3, 3, name="lstm")
    other.sub("a.b").load(path)
    np.testing.assert_array_equal(other["a.b.high.lstm.U"].value(), model["encoder.high.lstm.U"].value())
    model.save(path)
    other = eb.ParameterCollection()
    LSTM(other.sub("encoder").sub("low"), 3, 3, name="lstm")
    assert other.load(path, strict=False).left.keys() == model.keys() - other.keys()
    np.testing.assert_array_equal(other["encoder.low.lstm.W"].value(), model["encoder.low.lstm.W"].value())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_a_model_and_its_parts_are_one_model(model, copied):
    model.sub("head").freeze()
    both = copied({"model": model, "part": model.sub("encoder")})
    assert both["part"]["low.lstm.W"] is both["model"]["encoder.low.lstm.W"]
    assert both["part"]["low.lstm.W"] is not model["encoder.low.lstm.W"]
    both["part"].add_parameters(2, name="new")
    assert "encoder.new" in both["model"]
    assert "encoder.new" not in model
    assert [x.frozen for x in both["model"]][:-1] == [x.frozen for x in model]


def test_counts_and_the_summary(model):
    assert model.count() == sum(x.value().size for x in model)
    model.sub("encoder").freeze()
    assert model.count(frozen=False) == 6 + 8
    text = str(model.summary())
    lines = text.splitlines()
    assert len(lines) == 2 + 9 + 2
    ends = lines[0].index("entries") + len("entries")
    assert all(line[ends - 1].isdigit() and line[ends : ends + 1].strip() == "" for line in lines[2:])
    assert lines[2].split() == ["W", "(2,", "3)", "float32", "6"]
    assert lines[3].split()[-2:] == ["36", "frozen"]
    assert lines[-2].split() == ["(total)", f"{model.count():,}"]
    assert lines[-1].split() == ["(trained)", "14"]
    html = model._repr_html_()
    assert html.startswith("<table>")
    assert html.count("<tr>") == 1 + 9 + 2
    assert "encoder.low.lstm.W" in html
    assert repr(model) == f"ParameterCollection(9 parameters, {model.count():,} entries)"
    assert repr(model.sub("head")) == "ParameterCollection(2 parameters of 'head', 8 entries)"
    strange = eb.ParameterCollection()
    strange.add_parameters(2, name="<b>")
    assert "<b>" not in strange._repr_html_()


def test_names_that_were_not_given_are_free():
    model = eb.ParameterCollection()
    model.add_parameters(2, name="p1")
    assert [model.add_parameters(2).name for _ in range(2)] == ["p2", "p3"]
    assert model.sub("a").add_parameters(2).name == "a.p0"
