"""Tables as parameters: tied embeddings, by row and whole, in values, gradients and updates; against PyTorch."""

import numpy as np
import pytest

import edbatch as eb
from tests.arrays import on_host

torch = pytest.importorskip("torch")

V, D = 7, 4
SENTENCES = [[1, 4, 1], [6], [0, 2, 2, 5, 3]]


class Language:
    """Predicts each word from those before it; the table that words are looked up in scores them, too."""

    def __init__(self, dtype="float64", seed=0):
        self.model = eb.ParameterCollection(seed=seed, dtype=dtype)
        self.embed = self.model.add_lookup_parameters((V, D), name="embed", init=eb.init.Normal(0.5))
        self.W = self.model.add_parameters((D, D), name="W")
        self.b = self.model.add_parameters(V, name="b", init="uniform")

    def op_by_op(self, h, word, label):
        h = eb.tanh(self.W @ h + self.embed[word])
        return h, eb.cross_entropy(self.embed @ h + self.b, label)

    @eb.cell
    def cell(self, h, word: int, label: int):
        return self.op_by_op(h, word, label)

    @eb.cell
    def with_affine(self, h, word: int, label: int):
        h = eb.tanh(self.W @ h + eb.lookup(self.embed, word))
        return h, eb.cross_entropy(eb.affine(self.embed, h, self.b), label)

    def loss(self, step, sentences=SENTENCES):
        losses = []
        for words in sentences:
            h = eb.zeros(D)
            for word, label in zip([0, *words], words, strict=False):
                h, loss = step(h, word, label)
                losses.append(loss)
        return eb.sum(losses)


def torchs(language, sentences=SENTENCES):
    """Loss and gradients by PyTorch in float64."""
    at = {p.name: torch.tensor(p.value().astype(np.float64), requires_grad=True) for p in language.model}
    losses = []
    for words in sentences:
        h = torch.zeros(D, dtype=torch.float64)
        for word, label in zip([0, *words], words, strict=False):
            h = torch.tanh(at["W"] @ h + at["embed"][word])
            scores = at["embed"] @ h + at["b"]
            losses.append(torch.nn.functional.cross_entropy(scores[None], torch.tensor([label])))
    loss = torch.stack(losses).sum()
    loss.backward()
    return loss.item(), {name: tensor.grad.numpy() for name, tensor in at.items()}


@pytest.mark.parametrize(
    ("step", "policy", "dtype"),
    [("op_by_op", "none", "float64"), ("cell", "sufficient", "float64"), ("with_affine", "agenda", "float32")],
)
def test_tied_embeddings(step, policy, dtype):
    language = Language(dtype)
    with eb.Graph(policy=policy, dtype=dtype):
        loss = language.loss(getattr(language, step))
    loss.backward()
    value, gradients = torchs(language)
    tolerance = {"rtol": 1e-5, "atol": 1e-6} if dtype == "float32" else {"rtol": 1e-10, "atol": 1e-12}
    np.testing.assert_allclose(loss.value(), value, **tolerance)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(on_host(language.model[name].grad()), gradient, **tolerance, err_msg=name)
    rows, values = language.embed.sparse_grad()
    np.testing.assert_array_equal(rows, np.arange(V))
    np.testing.assert_allclose(on_host(values), gradients["embed"], **tolerance)
    language.model.zero_grad()
    assert not language.embed.has_grad
    assert language.embed.sparse_grad() is None
    assert not on_host(language.embed.grad()).any()
    with eb.Graph(policy=policy, dtype=dtype):  # once more: nothing of the first gradients is left
        loss = language.loss(getattr(language, step))
    loss.backward()
    np.testing.assert_allclose(on_host(language.embed.grad()), gradients["embed"], **tolerance)


@pytest.mark.parametrize(
    ("optimizer", "name", "own"),
    [
        (eb.SGD, "SGD", {}),
        (eb.Adam, "Adam", {}),
    ],
)
def test_updates_of_a_tied_table_are_pytorchs(optimizer, name, own):
    language = Language()
    tensors = {p.name: torch.nn.Parameter(torch.tensor(p.value())) for p in language.model}
    trainer = optimizer(language.model, lr=0.05, clip=1.0, weight_decay=0.01)
    peer = getattr(torch.optim, name)(list(tensors.values()), lr=0.05, weight_decay=0.01, **own)
    for step in range(4):
        sentences = SENTENCES[step % 2 :]
        _, gradients = torchs(language, sentences)
        with eb.Graph(dtype="float64", policy="sufficient"):
            loss = language.loss(language.cell, sentences)
        loss.backward()
        trainer.update()
        for each, tensor in tensors.items():
            tensor.grad = torch.tensor(gradients[each])
        torch.nn.utils.clip_grad_norm_(tensors.values(), 1.0)
        peer.step()
        for each, tensor in tensors.items():
            np.testing.assert_allclose(language.model[each].value(), tensor.detach().numpy(), rtol=1e-7, atol=1e-10)


USES = {
    "product": (lambda t, x: t @ x, lambda t, x: t @ x),
    "rows times": (lambda t, x: eb.tanh(t @ x) @ t, lambda t, x: torch.tanh(t @ x) @ t),
    "sum": (lambda t, x: eb.sum(t, axis=0) * x, lambda t, x: t.sum(0) * x),
    "element-wise": (lambda t, x: eb.tanh(t + x * t), lambda t, x: torch.tanh(t + x * t)),
    "rows beside": (lambda t, x: eb.concatenate([t, eb.reshape(x, (1, D))]), lambda t, x: torch.cat([t, x[None]])),
    "row and whole": (lambda t, x: t @ (t[3] * x), lambda t, x: t @ (t[3] * x)),
    "affine": (lambda t, x: eb.affine(t, x, t @ (x * x)), lambda t, x: t @ x + t @ (x * x)),
}


@pytest.mark.parametrize("in_cell", [False, True])
@pytest.mark.parametrize("use", USES)
def test_a_table_wherever_a_parameter_may_be(use, in_cell):
    ours, theirs = USES[use]
    model = eb.ParameterCollection(seed=2)
    table = model.add_lookup_parameters((V, D), name="table", init=eb.init.Normal(0.5))

    @eb.cell
    def cell(x):
        return ours(table, x)

    xs = np.random.default_rng(0).standard_normal((3, D))
    at = torch.tensor(table.value().astype(np.float64), requires_grad=True)
    tensors = [torch.tensor(x, requires_grad=True) for x in xs]
    outs = [theirs(at, x) for x in tensors]
    torch.stack([(out * out).sum() for out in outs]).sum().backward()
    with eb.Graph(policy="sufficient"):
        inputs = [eb.input(x) for x in xs]
        found = [cell(x) if in_cell else ours(table, x) for x in inputs]
        loss = eb.sum([eb.sum(eb.square(y)) for y in found])
    loss.backward()
    for y, out in zip(found, outs, strict=True):
        np.testing.assert_allclose(y.value(), out.detach().numpy(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(on_host(table.grad()), at.grad.numpy(), rtol=1e-4, atol=1e-4)
    for x, tensor in zip(inputs, tensors, strict=True):
        np.testing.assert_allclose(x.gradient(), tensor.grad.numpy(), rtol=1e-4, atol=1e-4)


class TestFrozen:
    """No gradient, no update, the same trace."""

    @pytest.mark.parametrize("step", ["op_by_op", "cell"])
    @pytest.mark.parametrize("frozen", ["W", "embed", "b"])
    def test_a_frozen_parameter(self, frozen, step):
        language = Language()
        _, gradients = torchs(language)
        trainer = eb.Adam(language.model, weight_decay=0.1)
        before = {p.name: p.value() for p in language.model}
        language.model[frozen].freeze()
        with eb.Graph(dtype="float64", policy="sufficient"):
            loss = language.loss(getattr(language, step))
        loss.backward()
        for name, gradient in gradients.items():
            found = language.model[name]
            assert found.has_grad == (name != frozen)
            want = np.zeros_like(gradient) if name == frozen else gradient
            np.testing.assert_allclose(on_host(found.grad()), want, rtol=1e-9, atol=1e-12)
        trainer.update()
        for name, value in before.items():
            assert np.array_equal(language.model[name].value(), value) == (name == frozen)
