"""Every optimizer, step by step: its formula, PyTorch's steps, tables and defaults."""

import numpy as np
import pytest

import edbatch as eb
from tests.training.optimizing import CASES, LR, check_formula, check_torch, check_torch_sparse

ADAM = {"betas": (0.8, 0.9), "eps": 1e-3}
RMSPROP = {"alpha": 0.9, "eps": 1e-3}
ADADELTA = {"rho": 0.8, "eps": 1e-3}
MOMENTUM = {"momentum": 0.8, "nesterov": False}
NESTEROV = {"momentum": 0.8, "nesterov": True}


def sgd(p, g, state, t):
    p -= LR * g


def momentum(nesterov):
    def formula(p, g, state, t):
        v = state["v"] = 0.8 * state.get("v", 0) + g
        p -= LR * (g + 0.8 * v if nesterov else v)

    return formula


def adagrad(p, g, state, t):
    state["s"] = state.get("s", 0) + g**2
    p -= LR * g / (np.sqrt(state["s"]) + 1e-10)


def rmsprop(p, g, state, t):
    state["s"] = 0.9 * state.get("s", 0) + 0.1 * g**2
    p -= LR * g / (np.sqrt(state["s"]) + 1e-3)


def adadelta(p, g, state, t):
    state["s"] = 0.8 * state.get("s", 0) + 0.2 * g**2
    step = np.sqrt(state.get("u", 0) + 1e-3) / np.sqrt(state["s"] + 1e-3) * g
    state["u"] = 0.8 * state.get("u", 0) + 0.2 * step**2
    p -= LR * step


def adam(largest=False):
    def formula(p, g, state, t):
        m = state["m"] = 0.8 * state.get("m", 0) + 0.2 * g
        v = state["v"] = 0.9 * state.get("v", 0) + 0.1 * g**2
        if largest:
            v = state["x"] = np.maximum(v, state.get("x", 0))
        p -= LR * (m / (1 - 0.8**t)) / (np.sqrt(v / (1 - 0.9**t)) + 1e-3)

    return formula


# The optimizer, its arguments, its formula after weight decay; PyTorch's name and arguments.
OPTIMIZERS = [
    (eb.SGD, {}, sgd, "SGD", {}),
    (eb.Momentum, MOMENTUM, momentum(False), "SGD", MOMENTUM),
    (eb.Momentum, NESTEROV, momentum(True), "SGD", NESTEROV),
    (eb.Adagrad, {}, adagrad, "Adagrad", {}),
    (eb.RMSProp, RMSPROP, rmsprop, "RMSprop", RMSPROP),
    (eb.Adadelta, ADADELTA, adadelta, "Adadelta", ADADELTA),
    (eb.Adam, ADAM, adam(), "Adam", ADAM),
    (eb.AdamW, ADAM, adam(), "AdamW", ADAM),
    (eb.AMSGrad, ADAM, adam(largest=True), "Adam", {"amsgrad": True, **ADAM}),
]


@pytest.mark.parametrize("arguments", CASES)
@pytest.mark.parametrize(("optimizer", "own", "formula", "name", "theirs"), OPTIMIZERS)
def test_steps(optimizer, own, formula, name, theirs, arguments):
    decay = arguments["weight_decay"]

    def decayed(p, g, state, t):
        if optimizer is eb.AdamW:
            p *= 1 - LR * decay
        formula(p, g if optimizer is eb.AdamW else g + decay * p, state, t)

    for dtype in ("float32", "float64"):
        check_formula(decayed, optimizer, dtype, **own, **arguments)
    check_torch(name, theirs, optimizer, **own, **arguments)


def test_tables_are_pytorchs():
    check_torch_sparse("SGD", eb.SGD)
    check_torch_sparse("Adagrad", eb.Adagrad)
    # PyTorch adds SparseAdam's epsilon before it corrects the root: only without epsilon are the two the same.
    check_torch_sparse("SparseAdam", eb.Adam, betas=(0.8, 0.9), eps=1e-15)


@pytest.mark.parametrize(("optimizer", "own", "formula", "name", "theirs"), OPTIMIZERS)
def test_defaults_are_pytorchs(model, optimizer, own, formula, name, theirs):
    torch = pytest.importorskip("torch")
    p, made = [torch.zeros(1, requires_grad=True)], optimizer(model)
    defaults = getattr(torch.optim, name)(p).defaults
    for argument in ("lr", "weight_decay", *own) if optimizer not in (eb.SGD, eb.Momentum) else ("weight_decay",):
        assert getattr(made, argument) == defaults[argument]
