import numpy as np
import pytest

import edbatch as eb
from tests.training.optimizing import CASES, LR, check_formula, check_torch, check_torch_sparse

RMSPROP = {"alpha": 0.9, "eps": 1e-3}
ADADELTA = {"rho": 0.8, "eps": 1e-3}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("arguments", CASES)
def test_adagrad(arguments, dtype):
    def formula(p, g, state, t):
        g = g + arguments["weight_decay"] * p
        state["s"] = state.get("s", 0) + g**2
        p -= LR * g / (np.sqrt(state["s"]) + 1e-10)

    check_formula(formula, eb.Adagrad, dtype, **arguments)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("arguments", CASES)
def test_rmsprop(arguments, dtype):
    def formula(p, g, state, t):
        g = g + arguments["weight_decay"] * p
        state["s"] = 0.9 * state.get("s", 0) + 0.1 * g**2
        p -= LR * g / (np.sqrt(state["s"]) + 1e-3)

    check_formula(formula, eb.RMSProp, dtype, **RMSPROP, **arguments)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("arguments", CASES)
def test_adadelta(arguments, dtype):
    def formula(p, g, state, t):
        g = g + arguments["weight_decay"] * p
        state["s"] = 0.8 * state.get("s", 0) + 0.2 * g**2
        step = np.sqrt(state.get("u", 0) + 1e-3) / np.sqrt(state["s"] + 1e-3) * g
        state["u"] = 0.8 * state.get("u", 0) + 0.2 * step**2
        p -= LR * step

    check_formula(formula, eb.Adadelta, dtype, **ADADELTA, **arguments)


@pytest.mark.parametrize("arguments", CASES)
def test_steps_are_pytorchs(arguments):
    check_torch("Adagrad", {}, eb.Adagrad, **arguments)
    check_torch("RMSprop", RMSPROP, eb.RMSProp, **RMSPROP, **arguments)
    check_torch("Adadelta", ADADELTA, eb.Adadelta, **ADADELTA, **arguments)


def test_tables_are_pytorchs():
    check_torch_sparse("Adagrad", eb.Adagrad)


def test_defaults_are_pytorchs(model):
    torch = pytest.importorskip("torch")
    p = [torch.zeros(1, requires_grad=True)]
    for ours, theirs, names in (
        (eb.Adagrad(model), torch.optim.Adagrad(p), ["lr", "eps", "weight_decay"]),
        (eb.RMSProp(model), torch.optim.RMSprop(p), ["lr", "alpha", "eps", "weight_decay"]),
        (eb.Adadelta(model), torch.optim.Adadelta(p), ["lr", "rho", "eps", "weight_decay"]),
    ):
        assert [getattr(ours, name) for name in names] == [theirs.defaults[name] for name in names]


@pytest.mark.parametrize(
    ("optimizer", "arguments"),
    [(eb.Adagrad, {"eps": -1}), (eb.RMSProp, {"alpha": 1}), (eb.RMSProp, {"eps": "x"}), (eb.Adadelta, {"rho": 1.5})],
)
def test_bad_hyperparameters(model, optimizer, arguments):
    (name, _), *_ = arguments.items()
    with pytest.raises(eb.EdBatchError, match=f"{optimizer.__name__}: {name}=.*; expected a number in"):
        optimizer(model, **arguments)
