"""Optimizers over parts of a model, and groups with hyper-parameters of their own: PyTorch's, step by step."""

import numpy as np
import pytest

import edbatch as eb
from tests.training.optimizing import give, gradients_of, model_of

OPTIMIZERS = [
    ("SGD", eb.SGD, {}, {}, {"weight_decay": 0.1}),
    ("SGD", eb.Momentum, {"momentum": 0.9}, {"momentum": 0.9}, {"momentum": 0.5}),
    ("Adam", eb.Adam, {}, {}, {"betas": (0.5, 0.9), "eps": 1e-3}),
    ("AdamW", eb.AdamW, {}, {}, {"weight_decay": 0.3}),
    ("RMSprop", eb.RMSProp, {}, {}, {"alpha": 0.5}),
    ("Adagrad", eb.Adagrad, {}, {}, {"eps": 1e-3}),
]


@pytest.mark.parametrize(("name", "optimizer", "own", "arguments", "options"), OPTIMIZERS)
def test_groups_are_pytorchs(name, optimizer, own, arguments, options):
    """U and V are one stack, and in different groups; the rate of one changes on the way."""
    torch = pytest.importorskip("torch")
    model = model_of()
    tensors = {p.name: torch.nn.Parameter(torch.tensor(p.value())) for p in model if p.name != "table"}
    first, second = ["W", "U"], ["b", "V"]
    trainer = optimizer(
        [{"params": [model[x] for x in first]}, {"params": [model[x] for x in second], "lr": 0.02, **options}],
        lr=0.1, clip=1.5, **arguments,
    )  # fmt: skip
    peer = getattr(torch.optim, name)(
        [{"params": [tensors[x] for x in first]}, {"params": [tensors[x] for x in second], "lr": 0.02, **options}],
        lr=0.1, **own,
    )  # fmt: skip
    for step, gradients in enumerate(gradients_of(model)):
        del gradients["table"]
        give(model, gradients)
        trainer.update()
        for parameter, tensor in tensors.items():
            tensor.grad = None if gradients[parameter] is None else torch.tensor(gradients[parameter])
        torch.nn.utils.clip_grad_norm_(tensors.values(), 1.5)
        peer.step()
        for parameter, tensor in tensors.items():
            np.testing.assert_allclose(model[parameter].value(), tensor.detach().numpy(), rtol=1e-10, atol=1e-13)
        if step == 2:
            trainer.groups[1]["lr"] = peer.param_groups[1]["lr"] = 0.5


@pytest.mark.parametrize("given", ["collection", "list", "generator", "parameter"])
def test_a_part_of_a_model(given):
    model = eb.ParameterCollection()
    head = model.sub("head")
    W, b = head.add_parameters((2, 2), name="W", init=1.0), head.add_parameters(2, name="b", init=1.0)
    other = model.add_parameters(2, name="other", init=1.0)
    part = {"collection": head, "list": [W, b], "generator": (x for x in (W, b)), "parameter": W}[given]
    trainer = eb.SGD(part, lr=0.5)
    for parameter in model:
        parameter.accumulator()[0][...] = 1
    trainer.update()
    trained = [W] if given == "parameter" else [W, b]
    for parameter in model:
        np.testing.assert_array_equal(parameter.value(), np.full(parameter.shape, 0.5 if parameter in trained else 1.0))
        assert parameter.has_grad == (parameter not in trained)
    late = head.add_parameters(2, name="late", init=1.0)
    late.accumulator()[0][...] = 1
    W.accumulator()[0][...] = 1
    trainer.update()
    assert late.value()[0] == (0.5 if given == "collection" else 1.0)
    trainer.zero_grad()
    assert other.has_grad


def test_state_goes_on_from_a_checkpoint(tmp_path):
    path = tmp_path / "m.safetensors"
    groups = lambda model: [{"params": model["W"], "lr": 0.01}, {"params": [model["b"], model["table"]]}]  # noqa: E731
    model, other = model_of(), model_of()
    trainer, resumed = (eb.Adam(groups(x), lr=0.1) for x in (model, other))
    steps = list(gradients_of(model))
    for gradients in steps[:3]:
        give(model, gradients)
        trainer.update()
        model.zero_grad()
    model.save(path, trainer=trainer)
    other.load(path, trainer=resumed)
    assert sorted(trainer.state()[1]["updates"]) == ["W", "b", "table"]
    for gradients in steps[3:]:
        for x, each in ((model, trainer), (other, resumed)):
            give(x, gradients)
            each.update()
            x.zero_grad()
    for parameter in model:
        np.testing.assert_array_equal(parameter.value(), other[parameter.name].value())
