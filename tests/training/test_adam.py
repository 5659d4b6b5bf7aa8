import numpy as np
import pytest

import edbatch as eb
from tests.training.optimizing import CASES, LR, check_formula, check_torch, check_torch_sparse

OWN = {"betas": (0.8, 0.9), "eps": 1e-3}


def adam(decay=0.0, shrink=1.0, largest=False):
    def formula(p, g, state, t):
        g = g + decay * p
        p *= shrink
        m = state["m"] = 0.8 * state.get("m", 0) + 0.2 * g
        v = state["v"] = 0.9 * state.get("v", 0) + 0.1 * g**2
        if largest:
            v = state["x"] = np.maximum(v, state.get("x", 0))
        p -= LR * (m / (1 - 0.8**t)) / (np.sqrt(v / (1 - 0.9**t)) + 1e-3)

    return formula


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("arguments", CASES)
def test_formulas(arguments, dtype):
    decay = arguments["weight_decay"]
    check_formula(adam(decay), eb.Adam, dtype, **OWN, **arguments)
    check_formula(adam(shrink=1 - LR * decay), eb.AdamW, dtype, **OWN, **arguments)
    check_formula(adam(decay, largest=True), eb.AMSGrad, dtype, **OWN, **arguments)


@pytest.mark.parametrize("arguments", CASES)
def test_steps_are_pytorchs(arguments):
    check_torch("Adam", OWN, eb.Adam, **OWN, **arguments)
    check_torch("AdamW", OWN, eb.AdamW, **OWN, **arguments)
    check_torch("Adam", {"amsgrad": True, **OWN}, eb.AMSGrad, **OWN, **arguments)


def test_tables_are_pytorchs():
    # PyTorch adds SparseAdam's epsilon before it corrects the root: only without epsilon are the two the same.
    check_torch_sparse("SparseAdam", eb.Adam, betas=(0.8, 0.9), eps=1e-15)


def test_defaults_are_pytorchs(model):
    torch = pytest.importorskip("torch")
    p = [torch.zeros(1, requires_grad=True)]
    for ours, theirs in (
        (eb.Adam(model), torch.optim.Adam(p)),
        (eb.AdamW(model), torch.optim.AdamW(p)),
        (eb.AMSGrad(model), torch.optim.Adam(p, amsgrad=True)),
    ):
        for name in ("lr", "betas", "eps", "weight_decay"):
            assert getattr(ours, name) == theirs.defaults[name]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"betas": 0.9}, "betas=0.9; expected two numbers"),
        ({"betas": (0.9, 1.0)}, r"betas=1.0; expected a number in \[0, 1\)"),
        ({"eps": -1e-8}, "eps=-1e-08; expected a number"),
    ],
)
def test_bad_hyperparameters(model, arguments, message):
    with pytest.raises(eb.EdBatchError, match=f"AdamW: {message}"):
        eb.AdamW(model, **arguments)
