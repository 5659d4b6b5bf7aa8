import pytest

import edbatch as eb
from tests.training.optimizing import LR, check_formula, check_torch, check_torch_sparse

CASES = [{}, {"weight_decay": 0.1}, {"clip": 1.5, "weight_decay": 0.1}]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("arguments", CASES)
def test_sgd(arguments, dtype):
    decay = arguments.get("weight_decay", 0)

    def formula(p, g, state, t):
        p -= LR * (g + decay * p)

    check_formula(formula, eb.SGD, dtype, **arguments)
    check_torch(lambda optim, ps: optim.SGD(ps, LR, weight_decay=decay), eb.SGD, **arguments)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("arguments", CASES)
def test_momentum(arguments, nesterov, dtype):
    decay = arguments.get("weight_decay", 0)

    def formula(p, g, state, t):
        g = g + decay * p
        v = state["v"] = 0.8 * state.get("v", 0) + g
        p -= LR * (g + 0.8 * v if nesterov else v)

    check_formula(formula, eb.Momentum, dtype, momentum=0.8, nesterov=nesterov, **arguments)
    check_torch(
        lambda optim, ps: optim.SGD(ps, LR, momentum=0.8, nesterov=nesterov, weight_decay=decay),
        eb.Momentum,
        momentum=0.8,
        nesterov=nesterov,
        **arguments,
    )


def test_tables():
    check_torch_sparse(lambda optim, ps: optim.SGD(ps, LR), eb.SGD)


def test_bad_hyperparameters(model):
    for momentum in (1.0, -0.1, float("nan"), "0.9", None):
        with pytest.raises(eb.EdBatchError, match=r"Momentum: momentum=.*; expected a number in \[0, 1\)"):
            eb.Momentum(model, momentum=momentum)
