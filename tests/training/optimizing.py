"""Checking optimizers step by step: against formulas in float64, and against PyTorch."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.cell.stacking import stacked
from tests.arrays import beside

STEPS = 6
LR = 0.1
CASES = [{"weight_decay": 0.0}, {"weight_decay": 0.1}, {"weight_decay": 0.1, "clip": 1.5}]


def model_of(dtype="float64"):
    """A model whose parameters lie in memory in every way there is: W, b, a stack of U and V, a table."""
    model = eb.ParameterCollection(seed=1, dtype=dtype)
    model.add_parameters((3, 4), name="W")
    model.add_parameters((5,), name="b", init="uniform")
    U, V = model.add_parameters((2, 3), name="U"), model.add_parameters((4, 3), name="V")
    assert stacked([U.spec, V.spec]) is not None
    model.add_lookup_parameters((7, 2), name="table")
    return model


def gradients_of(model, seed=5):
    """Per step and parameter a gradient, or None; of a table NaN in the rows without."""
    random = np.random.default_rng(seed)
    for step in range(STEPS):
        found = {}
        for parameter in model:
            gradient = random.standard_normal(parameter.shape) * 2.0 ** random.integers(-3, 3)
            if isinstance(parameter, eb.LookupParameters):
                gradient[random.random(len(gradient)) < 0.5] = np.nan
            # U has no gradient in step 1 and b none in step 2.
            found[parameter.name] = None if (step, parameter.name) in ((1, "U"), (2, "b")) else gradient
        yield found


def give(model, gradients):
    """Add gradients as backward does."""
    for name, gradient in gradients.items():
        parameter = model[name]
        if gradient is None:
            continue
        if isinstance(parameter, eb.LookupParameters):
            rows = np.flatnonzero(~np.isnan(gradient[:, 0]))
            parameter.add_rows(rows, beside(parameter, gradient[rows]))
        else:
            parameter.accumulator()[0][...] += beside(parameter, gradient)


def clipped(gradients, clip):
    """Scaled to a norm of at most `clip`."""
    known = [gradient for gradient in gradients.values() if gradient is not None]
    norm = np.sqrt(sum(np.nansum(gradient**2) for gradient in known))
    scale = 1.0 if clip is None else min(1.0, clip / (norm + 1e-6))
    return norm, {name: None if g is None else scale * g for name, g in gradients.items()}


def check_formula(formula, optimizer, dtype="float64", clip=None, **arguments):
    """Several updates equal those of `formula(p, g, state, t)`, which changes p and the dict `state` in place."""
    model = model_of(dtype)
    trainer = optimizer(model, lr=LR, clip=clip, **arguments)
    want = {parameter.name: parameter.value().astype(np.float64) for parameter in model}
    states, counts = {name: {} for name in want}, dict.fromkeys(want, 0)
    for gradients in gradients_of(model):
        give(model, gradients)
        trainer.update()
        norm, gradients = clipped(gradients, clip)
        assert trainer.gradient_norm == pytest.approx(norm, rel=1e-5)
        for name, g in gradients.items():
            if g is None:
                continue
            counts[name] += 1
            rows = ~np.isnan(g[:, 0]) if name == "table" else ...
            # A formula sees only the rows that have a gradient.
            p, state = want[name][rows], {slot: array[rows] for slot, array in states[name].items()}
            formula(p, g[rows], state, counts[name])
            want[name][rows] = p
            for slot, array in state.items():
                states[name].setdefault(slot, np.zeros(g.shape))[rows] = array
        for parameter in model:
            tolerance = {"rtol": 1e-11, "atol": 1e-13} if dtype == "float64" else {"rtol": 1e-4, "atol": 2e-6}
            np.testing.assert_allclose(parameter.value(), want[parameter.name], **tolerance, err_msg=parameter.name)
        assert not any(parameter.has_grad for parameter in model)
    assert trainer.steps == STEPS


def check_torch(name, own, optimizer, weight_decay, clip=None, **arguments):
    """Several updates equal those of PyTorch's optimizer `name` with the arguments `own`."""
    torch = pytest.importorskip("torch")
    model = model_of()
    trainer = optimizer(model, lr=LR, weight_decay=weight_decay, clip=clip, **arguments)
    tensors = {p.name: torch.nn.Parameter(torch.tensor(p.value())) for p in model if p.name != "table"}
    peer = getattr(torch.optim, name)(list(tensors.values()), lr=LR, weight_decay=weight_decay, **own)
    for gradients in gradients_of(model):
        del gradients["table"]
        give(model, gradients)
        trainer.update()
        for name, tensor in tensors.items():
            tensor.grad = None if gradients[name] is None else torch.tensor(gradients[name])
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(tensors.values(), clip)
        peer.step()
        for name, tensor in tensors.items():
            np.testing.assert_allclose(model[name].value(), tensor.detach().numpy(), rtol=1e-11, atol=1e-13)


def check_torch_sparse(name, optimizer, **arguments):
    """Several updates of a table equal those of PyTorch's optimizer `name`, which takes sparse gradients."""
    torch = pytest.importorskip("torch")
    model = model_of()
    trainer = optimizer(model, lr=LR, **arguments)
    tensor = torch.nn.Parameter(torch.tensor(model["table"].value()))
    peer = getattr(torch.optim, name)([tensor], lr=LR, **arguments)
    for gradients in gradients_of(model):
        gradient = gradients["table"]
        give(model, {"table": gradient})
        trainer.update()
        rows = np.flatnonzero(~np.isnan(gradient[:, 0]))
        with torch.sparse.check_sparse_tensor_invariants():  # a warning, if neither on nor off
            tensor.grad = torch.sparse_coo_tensor(rows[None], gradient[rows], gradient.shape)
            peer.step()
        np.testing.assert_allclose(model["table"].value(), tensor.detach().numpy(), rtol=1e-9, atol=1e-12)
