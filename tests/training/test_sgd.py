import numpy as np
import pytest

import edbatch as eb
from tests.training.optimizing import CASES, LR, check_formula, check_torch, check_torch_sparse


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("arguments", CASES)
def test_sgd(arguments, dtype):
    def formula(p, g, state, t):
        p -= LR * (g + arguments["weight_decay"] * p)

    check_formula(formula, eb.SGD, dtype, **arguments)


@pytest.mark.parametrize("arguments", CASES)
def test_sgd_is_pytorchs(arguments):
    check_torch("SGD", {}, eb.SGD, **arguments)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("arguments", CASES)
def test_momentum(arguments, nesterov, dtype):
    def formula(p, g, state, t):
        g = g + arguments["weight_decay"] * p
        v = state["v"] = 0.8 * state.get("v", 0) + g
        p -= LR * (g + 0.8 * v if nesterov else v)

    check_formula(formula, eb.Momentum, dtype, momentum=0.8, nesterov=nesterov, **arguments)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("arguments", CASES)
def test_momentum_is_pytorchs(arguments, nesterov):
    own = {"momentum": 0.8, "nesterov": nesterov}
    check_torch("SGD", own, eb.Momentum, **own, **arguments)


def test_tables_are_pytorchs():
    check_torch_sparse("SGD", eb.SGD)


def test_bad_hyperparameters(model):
    for momentum in (1.0, -0.1, float("nan"), "0.9", None):
        with pytest.raises(eb.EdBatchError, match=r"Momentum: momentum=.*; expected a number in \[0, 1\)"):
            eb.Momentum(model, momentum=momentum)
    for nesterov in (None, "no", [], 2, np.array([]), np.ones(2)):
        with pytest.raises(eb.EdBatchError, match="Momentum: nesterov: expected True or False, got"):
            eb.Momentum(model, nesterov=nesterov)
