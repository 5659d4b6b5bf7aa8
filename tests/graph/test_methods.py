"""Methods do what the functions do, and what NumPy's and PyTorch's methods of the name do, with their gradients."""

import numpy as np
import pytest

import edbatch as eb

torch = pytest.importorskip("torch")
X = np.random.default_rng(0).uniform(0.1, 0.9, (2, 3))

# What PyTorch's tensors do, on a matrix.
ALONE = """sum mean max min norm abs exp log sqrt square sin cos erf tanh sigmoid relu flatten t detach"""
SAME = {name: (lambda x, name=name: getattr(x, name)()) for name in ALONE.split()} | {
    "sum(0)": lambda x: x.sum(0),
    "mean(-1)": lambda x: x.mean(-1),
    "logsumexp": lambda x: x.logsumexp(1),
    "softmax": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(-1),
    "clamp": lambda x: x.clamp(0.3, 0.6),
    "clamp(min=)": lambda x: x.clamp(min=0.3),
    "clamp(max=)": lambda x: x.clamp(max=0.3),
    "clip": lambda x: x.clip(0.3, 0.6),
    "pow": lambda x: x.pow(3),
    "matmul": lambda x: x.matmul(x.T),
    "dot": lambda x: x[0].dot(x[1]),
    "reshape": lambda x: x.reshape(3, -1),
    "reshape tuple": lambda x: x.reshape((3, 2)),
    "view": lambda x: x.view(-1),
    "unsqueeze": lambda x: x.unsqueeze(-1),
    "unsqueeze(0)": lambda x: x.unsqueeze(0),
    "squeeze": lambda x: x.reshape(2, 1, 3, 1).squeeze(),
    "squeeze(1)": lambda x: x.reshape(2, 1, 3, 1).squeeze(1),
    "permute": lambda x: x.reshape(1, 2, 3).permute(2, 0, 1),
    "swapaxes": lambda x: x.reshape(1, 2, 3).swapaxes(0, -1),
    "chunk": lambda x: x.chunk(2)[1],
}


@pytest.mark.parametrize("method", SAME.values(), ids=SAME.keys())
def test_as_pytorchs(method):
    tensor = torch.tensor(X, requires_grad=True)
    want = method(tensor)
    seed = np.random.default_rng(1).normal(size=tuple(want.shape))
    with eb.Graph(dtype="float64"):
        x = eb.input(X)
        y = method(x)
        loss = eb.sum(y * seed + 0 * eb.sum(x))
    loss.backward()
    np.testing.assert_allclose(y.value(), want.detach().numpy(), rtol=1e-12)
    if want.requires_grad:
        (want * torch.tensor(seed)).sum().backward()
        np.testing.assert_allclose(x.gradient(), tensor.grad.numpy(), atol=1e-12)
    else:
        np.testing.assert_array_equal(x.gradient(), np.zeros_like(X))


def test_as_numpys():
    with eb.Graph(dtype="float64"):
        x = eb.input(X)
        for name, arguments in {
            "std": {"axis": 1},
            "max": {"axis": 0, "keepdims": True},
            "min": {"axis": (0, 1)},
            "transpose": {},
            "sum": {"axis": -1, "keepdims": True},
        }.items():
            np.testing.assert_allclose(
                getattr(x, name)(**arguments).value(), getattr(X, name)(**arguments), err_msg=name
            )
        np.testing.assert_array_equal(x.transpose((1, 0)).value(), X.transpose(1, 0))
        np.testing.assert_array_equal(x.flip(1).value(), X[:, ::-1])


def test_of_parameters():
    W = eb.ParameterCollection(dtype="float64").add_parameters((2, 3), init=X)
    with eb.Graph(dtype="float64"):
        loss = W.tanh().sum() + W.T.reshape(-1)[0]
    loss.backward()
    want = 1 - np.tanh(X) ** 2
    want[0, 0] += 1
    np.testing.assert_allclose(W.grad(), want)
