"""A model beside its equations in PyTorch, one sample at a time: values and gradients; and a little training."""

import numpy as np
import pytest

import edbatch as eb
from tests.models.equations import randomized


def new_model():
    return eb.ParameterCollection(seed=1, dtype="float64")


def check(model, build, wanted):
    """`build()` gives expressions; `wanted(torch, p)` the same as tensors, from the parameters by name."""
    torch = pytest.importorskip("torch")
    values = randomized(model, 0.4)
    p = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in values.items()}
    want = wanted(torch, p)
    weights = [np.linspace(0.5, 1.5, one.numel()).reshape(tuple(one.shape)) for one in want]
    sum((one * torch.from_numpy(weight)).sum() for one, weight in zip(want, weights, strict=True)).backward()
    with eb.Graph(policy="sufficient", dtype="float64") as graph:
        built = build()
        loss = eb.sum([eb.sum(one * eb.input(weight)) for one, weight in zip(built, weights, strict=True)])
        found = eb.forward(built)
    loss.backward()
    for one, value in zip(found, want, strict=True):
        np.testing.assert_allclose(one, value.detach().numpy(), rtol=1e-9, atol=1e-12)
    for parameter in model:
        tensor = p[parameter.name]
        gradient = np.zeros(parameter.shape) if tensor.grad is None else tensor.grad.numpy()
        np.testing.assert_allclose(parameter.grad(), gradient, rtol=1e-8, atol=1e-11, err_msg=parameter.name)
    return graph.report()


def check_policies(build):
    """The same values, whatever the batching."""
    found = []
    for policy, cells in (("none", True), ("agenda", True), (None, True), ("none", False)):
        with eb.options(cells=cells), eb.Graph(policy=policy, dtype="float64"):
            found.append(np.concatenate([np.ravel(value) for value in eb.forward(build())]))
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-9, atol=1e-12)


def check_training(model, loss, steps=30, part=0.5):
    """The loss becomes less than `part` of what it was."""
    trainer, losses = eb.Adam(model, lr=0.02), []
    for _ in range(steps):
        with eb.Graph(policy="sufficient", dtype="float64"):
            total = loss()
        total.backward()
        trainer.update()
        losses.append(float(total.value()))
    assert losses[-1] < part * losses[0]
