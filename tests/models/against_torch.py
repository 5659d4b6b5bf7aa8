"""A model beside its equations in PyTorch, one sample at a time: values and gradients; and a little training."""

import numpy as np
import pytest

import edbatch as eb

WAYS = [
    ({}, "sufficient"), ({"recompute": True}, None), ({"cells": False}, "agenda"), ({"compile": "plain"}, "none"),
]  # fmt: skip


def new_model():
    return eb.ParameterCollection(seed=1, dtype="float64")


def randomized(model, scale=0.6):
    """Its parameters by name, now away from zero, biases too."""
    random = np.random.default_rng(5)
    for parameter in model:
        parameter.set_value(random.normal(0, scale, parameter.shape))
    return {parameter.name: parameter.value() for parameter in model}


def check(model, build, wanted, scale=0.4):
    """`build()` gives expressions; `wanted(torch, p)` the same as tensors, from the parameters by name.

    Values under every policy, and gradients with and without cells; returns the report of the first graph.
    """
    torch = pytest.importorskip("torch")
    values = randomized(model, scale)
    p = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in values.items()}
    want = wanted(torch, p)
    weights = [np.linspace(0.5, 1.5, one.numel()).reshape(tuple(one.shape)) for one in want]
    sum((one * torch.from_numpy(weight)).sum() for one, weight in zip(want, weights, strict=True)).backward()
    reports = []
    for options, policy in WAYS:
        model.zero_grad()
        with eb.options(**options), eb.Graph(policy=policy, dtype="float64") as graph:
            built = build()
            found = eb.forward(built)
            reports.append(graph.report())
            loss = eb.sum([eb.sum(one * eb.input(weight)) for one, weight in zip(built, weights, strict=True)])
            loss.backward()
        for one, value in zip(found, want, strict=True):
            np.testing.assert_allclose(one, value.detach().numpy(), rtol=1e-9, atol=1e-12)
        for parameter in model:
            tensor = p[parameter.name]
            gradient = np.zeros(parameter.shape) if tensor.grad is None else tensor.grad.numpy()
            np.testing.assert_allclose(parameter.grad(), gradient, rtol=1e-7, atol=1e-11, err_msg=parameter.name)
    return reports[0]


def lstm(torch, p, name, x, h, c):
    """One step of the LSTM whose parameters begin with `name`."""
    i, f, o, u = (p[f"{name}.W"] @ x + p[f"{name}.U"] @ h + p[f"{name}.b"]).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(u)
    return torch.sigmoid(o) * torch.tanh(c), c


def gru(torch, p, name, x, h):
    z, r, n = (p[f"{name}.W"] @ x + p[f"{name}.b"]).chunk(3)
    u_z, u_r, u_n = (p[f"{name}.U"] @ h).chunk(3)
    z = torch.sigmoid(z + u_z)
    return ((1 - z) * torch.tanh(n + torch.sigmoid(r + u_r) * (u_n + p[f"{name}.b_n"])) + z * h,)


def outputs(torch, p, name, xs, step=lstm, state=None):
    """The outputs of a layer, from zeros by default."""
    if state is None:
        state = [torch.zeros(p[f"{name}.U"].shape[1], dtype=torch.float64)] * (2 if step is lstm else 1)
    found = []
    for x in xs:
        state = step(torch, p, name, x, *state)
        found.append(state[0])
    return found


def cross_entropies(torch, p, hidden, labels):
    """The sum of those of a classifier over hidden vectors."""
    scores = torch.stack([p["W_out"] @ h + p["b_out"] for h in hidden])
    return torch.nn.functional.cross_entropy(scores, torch.tensor(list(labels)), reduction="sum")
