"""What layers and models are made of: anything else is refused by name, before the collection has changed."""

import inspect

import numpy as np
import pytest

import edbatch as eb
from edbatch import models

OTHERS = ("Bidirectional", "Stacked", "State", "Recurrent", "from_torch", "generation")
OF_MODELS = [name for name in models.__all__ if name not in OTHERS]
SIZE = 4  # even, as some models ask
ODD = {
    "int": [None, True, 1.5, "3", [3], -1, np.datetime64("2020"), np.ones(2), np.array([])],
    "dict[str, int]": [None, 3, [], "f", {3: 1}, {"": 1}, {"f": 3}, {"f": None}, {"f": True}],
    "bool": [None, "no", [], 2, np.ones(2), np.array([])],
    "str | None": [3, [], np.ones(2), np.array([])],
    "float": [None, "0", 1.0, -0.1, np.ones(2), 1j],
    "eb.ParameterCollection": [None, [], {}, "model", np.ones(2)],
}


def good(parameter):
    if parameter.name == "model":
        return eb.ParameterCollection()
    if parameter.default is not parameter.empty:
        return parameter.default
    return {"scene": 0} if parameter.annotation == "dict[str, int]" else SIZE


@pytest.mark.parametrize("name", OF_MODELS)
def test_models(name):
    kind = getattr(models, name)
    parameters = inspect.signature(kind).parameters
    for odd_one in parameters.values():
        for odd in ODD[odd_one.annotation]:
            given = {one.name: good(one) for one in parameters.values()}
            model = given["model"]
            given[odd_one.name] = odd
            with pytest.raises(eb.EdBatchError, match=f"{name}.*(expected|no parameter)"):
                kind(**given)
            assert not len(model), (odd_one.name, odd)
    kind(**{one.name: good(one) for one in parameters.values() if one.default is one.empty})


@pytest.mark.parametrize("odd", [None, [], 3, float("nan"), [None], np.array([]), np.ones(2)])
def test_stacks(odd):
    with pytest.raises(eb.EdBatchError, match="Stacked: expected a list of at least one layer, got"):
        models.Stacked(odd)
    with pytest.raises(eb.EdBatchError, match="Bidirectional: backward: expected a recurrent layer or a stack, got"):
        models.Bidirectional(models.LSTM(eb.ParameterCollection(), 3, 4), odd)
