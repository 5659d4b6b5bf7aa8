"""Models and layers that are given something else say what they expect, and nothing is made."""

import inspect

import numpy as np
import pytest

import edbatch as eb
from edbatch import models
from tests.refused import Error, check, rows_of

pytestmark = pytest.mark.cpu  # of no device

# fmt: off
REFUSED = [
    ("LSTM(None, 3, 4)", Error, "LSTM: model=None; expected a ParameterCollection"),
    ("LSTM(model, 3, dim='4')", Error, "LSTM: dim='4'; expected an integer of at least 0"),
    ("LSTM(model, 3, 4, name=5)", Error, "LSTM: name=5; expected a name"),
    ("LSTM(model, 3, 4, recurrent_dropout=1.0)", Error, "LSTM: recurrent_dropout=1.0; expected a number in [0, 1)"),
    ("LSTM(model, 3)", TypeError, "missing 1 required positional argument: 'dim'"),
    ("Mine(model, 3, dim=2.0)", Error, "Mine: dim=2.0; expected an integer"),
    ("BiLSTMTagger(model, 5, 3, 4, layers=10**30)", Error, "BiLSTMTagger: layers=1000…of at most 10,000"),
    ("BiLSTMTagger(model, 5, 3, 4, layers=0)", Error, "Stacked: expected at least one layer"),
    ("MixtureOfExperts(model, 10**9, 3, 4)", Error, "experts=1000000000; expected an integer of at most 10,000"),
    ("TransitionParser(model, 5, 10**9, 4)", Error, "relations=1000000000; expected an integer of at most 10,000"),
    ("Classifier(model, 2**31, 3)", Error, "dim=2147483648; expected an integer of at most 2,147,483,647"),
    ("ModuleNetwork(model, ['a'], 3, 4, 2, 3)", Error, "modules=['a']; expected a dictionary of numbers by name"),
    ("ModuleNetwork(model, {'a': 1.5}, 3, 4, 2, 3)", Error, "modules['a']=1.5; expected an integer"),
    ("Stacked(3)", Error, "Stacked: layers=3; expected a list of layers"),
    ("Stacked([3])", Error, "Stacked: layers=[3]; expected a list of layers"),
    ("Bidirectional(3, None)", Error, "Bidirectional: forward=3; expected a layer, or several stacked"),
]
# fmt: on


class Mine(models.LSTM):
    """As users write them."""


@pytest.mark.parametrize(("code", "error", "message"), rows_of(REFUSED))
def test_it_says_what_it_expects(code, error, message):
    model = eb.ParameterCollection(seed=0)
    check(code, error, message, **vars(models), Mine=Mine, model=model)
    assert not list(model) or "layers=0" in code


GIVEN = {"dim": 4, "modules": {"a": 1}, "layers": 1, "side": 4}
ODD = [None, "x", 1.5, -1, 10**30, [1], object(), np.array([1, 2]), float("nan"), {1: 2}, b"x", int]
CLASSES = [one for one in map(vars(models).get, models.__all__) if inspect.isclass(one) and one is not models.State]


@pytest.mark.parametrize("kind", CLASSES)
def test_each_argument_may_be_anything(kind):
    for odd_one in (known := inspect.signature(kind).parameters):
        for odd in ODD:
            model = eb.ParameterCollection(seed=0)
            layer = models.LSTM(model, 4, 4)
            given = {"model": model, "forward": layer, "backward": layer, **GIVEN}
            if kind is models.Stacked:
                given["layers"] = [layer]
            needed = [name for name, p in known.items() if p.default is p.empty]
            try:
                kind(**{name: given.get(name, 3) for name in needed} | {odd_one: odd})
            except eb.EdBatchError:
                continue
            assert odd is None or isinstance(odd, str), (odd_one, odd)  # a layer's name
