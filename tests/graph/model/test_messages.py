"""What collections, parameters and checkpoints refuse, before anything has changed."""

import os

import numpy as np
import pytest

import edbatch as eb
from tests.refused import Error, check, rows_of


class Elsewhere:
    """A tensor of another device."""

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **arguments):
        raise BufferError("on device 2")


class Tensor:
    """What is known of another library's tensor."""

    def __init__(self, array):
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


# fmt: off
SWITCHES = ["'no'", "None", "3", "2.0", "float('nan')", "np.ones(2)", "object()", "{}", "[]"]
SHAPES = ["2.5", "(2.5, 6)", "'ab'", "None", "(None,)", "-1", "(3, -1)", "{2: 3}", "(2, (3,))", "np.array([2.0])",
          "np.zeros((0, 3))", "np.zeros((0, 0, 1))"]
NAMES = ["''", "'__metadata__'", "5", "'\\ud800'", "'a\\nb'", "'a\\0'", "b'W'", "('W',)", "1.5"]
SEEDS = ["-1", "1.5", "'x'", "{}", "1j", "None", "[]", "[1, 2]", "np.random.default_rng(0)"]

TABLE = [
    *((f"model[{key}]", Error, "no parameter …; there are W, E") for key in ("'V'", "0", "None", "('W',)")),
    ("model['V']", KeyError, "no parameter"),
    *((f"model.add_parameters({shape})", Error, "expected ") for shape in SHAPES),
    *((f"model.add_lookup_parameters({shape})", Error, "expected ") for shape in SHAPES),
    ("model.add_parameters((10**9, 10**9), name='V')", Error, "parameter 'V': expected a shape that fits into memory"),
    ("model.add_parameters((10**9, 10**9), init=0.5)", Error, "expected a shape that fits into memory"),
    ("model.add_parameters((3, 2), init=Tensor(np.ones((2, 3))))", Error, "init has shape"),
    ("model.add_parameters(2, init=1 + 2j)", Error, "number"),
    ("model.add_parameters(2, init=masked)", Error, "mask"),
    *((f"model.add_parameters(2, name={name})", Error, "expected a name") for name in NAMES),
    *((f"model.add_lookup_parameters((2, 2), name={name})", Error, "expected a name") for name in NAMES),
    *((f"model.sub({name})", Error, "expected a name") for name in NAMES),
    ("model.add_parameters(2, name='W')", Error, "'W' exists already"),
    ("eb.models.Classifier(head, 3, 2); eb.models.Classifier(head, 3, 2)", Error,
        "'head.W_out' exists already…model.sub"),
    ("model.add_parameters(2, name='trainer/W')", Error, "names that begin with 'trainer/' are the trainer's"),
    ("model.sub('low').add_parameters(2, name='trainer/W')", Error,
        "names that begin with 'trainer/' are the trainer's"),
    ("model.sub('trainer/low')", Error, "names that begin with 'trainer/' are the trainer's"),
    *((f"eb.ParameterCollection(seed={seed})", Error, "ParameterCollection: seed=…expected an integer of at least 0")
      for seed in SEEDS),
    *((f"eb.Parameter('W', {array})", Error, "parameter 'W': expected an array of float32 or float64") for array in (
        "None", "[1.0]", "np.array(['a'])", "np.array([1])", "np.zeros(2, '>f4')",
    )),
    ("W.name = 'V'", AttributeError, ""),
    *((f"W.freeze({odd})", Error, "expected True or False") for odd in SWITCHES),
    *((f"model.freeze({odd})", Error, "expected True or False") for odd in SWITCHES),
    *((f"{p}.scale_grad({odd})", Error, "expected a finite number") for p in "WE" for odd in (
        "float('nan')", "float('inf')", "10**400", "'2'", "None", "object()", "1j", "[1]", "np.ones(2)", "b'1'",
        "slice(1)", "[[1], [1, 2]]", "W",
    )),
    ("W.set_grad(np.ones(3))", Error, "set_grad: expected shape (2, 3)"),
    ("model.sub('frozen')['V'].set_grad(np.ones(2))", Error, "is frozen"),
    ("W.set_value(Elsewhere())", Error, "Parameter(W[2,3]).set_value: expected numbers in the CPU's memory"),
    ("W.set_value(torch.nn.Parameter(torch.ones(2, 3)))", Error, "expected numbers in the CPU's memory"),
    ("W.set_value(torch.ones(2, 3, dtype=torch.bfloat16))", Error, "expected numbers in the CPU's memory"),
    ("W.set_value(1j)", Error, "number"), ("W.set_value(masked)", Error, "mask"),
    *((f"eb.from_dlpack({value}, 'here')", Error, "here: expected numbers") for value in (
        "'text'", "None", "[1, 'x']", "[[1], [2, 3]]", "1j", "np.array([None])", "object()",
    )),
    # checkpoints
    *((f"model.save(path, metadata={metadata})", Error, f"metadata: expected what JSON can hold{more}")
      for metadata, more in (
        ("{'x': np.zeros(3)}", " …ndarray"), ("{1: 2}", " (keys are text, got 1"),
        ("{'a': [{None: 1}]}", " (keys are text, got None"), ("{'x': deep}", ""), ("{'x': 10**5000}", ""),
    )),
    ("model.save(path, metadata=[3])", Error, "metadata: expected a dictionary, got list"),
    ("model.save(path, trainer=3)", Error, "trainer: expected a trainer, got"),
    ("model.save(path, policy='agenda')", Error, "policy: expected a policy, got"),
    ("model.save(path, policy=eb.Graph)", Error, "policy: expected a policy, got"),
    ("model.save(folder / 'nowhere' / 'm')", Error, "cannot be written"),
    ("model.load(folder / 'none')", Error, "cannot be read"), ("model.load(folder)", Error, "it is a folder"),
    *((f"{use}({path})", Error, "path") for use in ("model.save", "model.load", "eb.get_policy('agenda').save")
      for path in ("'a\\0b'", "'\\ud800'", "5", "None", "b'a\\0b'")),
]
# fmt: on


@pytest.mark.parametrize(("code", "error", "message"), rows_of(TABLE))
def test_what_does_not_fit_is_refused(code, error, message, tmp_path):
    deep = []
    for _ in range(100_000 if "deep" in code else 1):
        deep = [deep]
    model = eb.ParameterCollection(seed=0)
    W, E = model.add_parameters((2, 3), name="W", init=1.0), model.add_lookup_parameters((3, 2), name="E")
    model.sub("frozen").add_parameters(2, name="V").freeze()
    names = {
        "model": model, "W": W, "E": E, "head": model.sub("head"), "folder": tmp_path, "path": tmp_path / "m",
        "deep": deep, "Tensor": Tensor, "Elsewhere": Elsewhere, "masked": np.ma.masked_array([1.0, 2.0], [True, False]),
    }  # fmt: skip
    if "torch" in code:
        names["torch"] = pytest.importorskip("torch")
    check(code, error, message, **names)
    assert [p.name for p in model if not p.name.startswith("head")] == ["W", "E", "frozen.V"]
    assert (W.value() == 1).all()
    assert not any(p.has_grad for p in model)
    assert not W.frozen
    assert os.listdir(tmp_path) == []


def test_what_they_take_still():
    model = eb.ParameterCollection(seed=0)
    W = model.add_parameters((2, 2), name="W")
    for switch in (True, 1, np.True_):
        W.freeze(switch)
        assert W.frozen
    model.freeze(np.False_)
    W.set_grad(np.ones((2, 2)))
    for factor in (2, 0.5, np.float32(2), np.array(2.0), np.int64(1)):
        W.scale_grad(factor)
    assert W.grad().tolist() == [[4, 4], [4, 4]]
    for shape in (np.int64(3), (np.int64(3),), [3], np.uint8(3), np.array(3)):
        assert model.add_parameters(shape).shape == (3,)
    for shape in ((), [], np.array([], int)):
        assert model.add_parameters(shape).shape == ()
    with eb.options(training=0), eb.Graph(policy="none", check_nan=np.True_):
        x = eb.ones(4)
        assert len(eb.split(x, (size for size in (1, 3)))) == len(eb.split(x, np.array(2))) == 2
        assert [len(part.value()) for part in eb.split(x, [4])] == [4]
        assert eb.concatenate([x, 2, np.float32(3), np.array(4.0), True]).shape == (8,)
