"""Parts of a stack without gradients are left alone by every optimizer, as in PyTorch."""

import numpy as np
import pytest

import edbatch as eb
from tests.arrays import on_host

DIM, LR, STEPS = 3, 0.05, 8
# Name here, name in PyTorch, arguments in both, arguments there.
OPTIMIZERS = [
    ("SGD", "SGD", {"weight_decay": 0.1}, {}),
    ("Momentum", "SGD", {"weight_decay": 0.1, "momentum": 0.9}, {}),
    ("Adam", "Adam", {"weight_decay": 0.1}, {}),
    ("Adam", "Adam", {}, {}),
    ("AdamW", "AdamW", {"weight_decay": 0.1}, {}),
    ("AMSGrad", "Adam", {"weight_decay": 0.1}, {"amsgrad": True}),
    ("Adagrad", "Adagrad", {"weight_decay": 0.1}, {}),
    ("RMSProp", "RMSprop", {"weight_decay": 0.1}, {}),
    ("Adadelta", "Adadelta", {"weight_decay": 0.1}, {}),
]
NAMES = ("A", "B", "C")


def with_a_stop(A, B, C, x, total, exp, stop):
    """One loss in all steps, of A and B but not of C."""
    loss = total((A @ x - stop(C @ x)) ** 2) + total(exp(B @ x))
    return loss, loss, loss


def heads(A, B, C, x, total, exp, stop):
    """The first is used in step 0, the others in turn after that, see `head_of`."""
    return total(A @ x), total(exp(B @ x)), total((C @ x) ** 2)


def head_of(step):
    return 0 if step == 0 else 1 + step % 2


def inputs():
    return np.random.default_rng(0).normal(size=(STEPS, DIM))


def values():
    return np.random.default_rng(1).normal(size=(3, DIM, DIM))


def trained(program, optimizer):
    """Per step, the parameters' values."""
    model = eb.ParameterCollection(dtype="float64")
    A, B, C = (model.add_parameters((DIM, DIM), name=k, init=v) for k, v in zip(NAMES, values(), strict=True))

    losses = eb.cell(lambda x: program(A, B, C, x, eb.sum, eb.exp, eb.stop_gradient))
    trainer = getattr(eb, optimizer[0])(model, lr=LR, **optimizer[2])
    found = []
    for step, x in enumerate(inputs()):
        with eb.Graph(dtype="float64"):
            losses(eb.input(x))[head_of(step)].backward()
        trainer.update()
        found.append([on_host(p.value()) for p in (A, B, C)])
    assert A.stack is C.stack is not None
    return np.array(found)


@pytest.mark.parametrize("program", [with_a_stop, heads])
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda x: f"{x[0]} {x[2]}")
def test_as_in_pytorch(program, optimizer):
    torch = pytest.importorskip("torch")

    weights = [torch.tensor(v, requires_grad=True) for v in values()]
    trainer = getattr(torch.optim, optimizer[1])(weights, lr=LR, **optimizer[2], **optimizer[3])
    want = []
    for step, x in enumerate(inputs()):
        trainer.zero_grad()
        program(*weights, torch.tensor(x), torch.sum, torch.exp, torch.Tensor.detach)[head_of(step)].backward()
        trainer.step()
        want.append([w.detach().numpy().copy() for w in weights])
    np.testing.assert_allclose(trained(program, optimizer), want, rtol=1e-7, atol=1e-10)
