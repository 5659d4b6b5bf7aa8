"""Weights of PyTorch's modules: the same outputs, and what does not fit is named."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.models import GRU, LSTM, Bidirectional, ChildSumTreeLSTM, SimpleRNN, Stacked, from_torch

INPUT, DIM, LENGTHS = 3, 4, (1, 5, 2)


def torch_module(kind, **arguments):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return getattr(torch.nn, kind)(INPUT, DIM, **arguments).double()


def outputs_of(layers, xs):
    """The outputs of levels on top of one another for sequences; each level recurrent or bidirectional."""
    found = []
    with eb.Graph(policy="sufficient", dtype="float64"):
        for sequence in xs:
            ys = [eb.input(x) for x in sequence]
            for layer in layers:
                ys = layer.transduce(ys) if isinstance(layer, Bidirectional) else layer.initial_state().transduce(ys)
            found.append(ys)
        return [np.array([y.value() for y in ys]) for ys in found]


def check(module, target, layers):
    """Load a module into `target`; `layers` give its outputs."""
    import torch

    from_torch(target, module.state_dict())
    random = np.random.default_rng(0)
    xs = [random.standard_normal((n, INPUT)) for n in LENGTHS]
    for x, got in zip(xs, outputs_of(layers, xs), strict=True):
        with torch.no_grad():
            want, _ = module(torch.tensor(x))
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-10, atol=1e-12)


def made(layer, way):
    """A target of `from_torch`, its levels, and the arguments of PyTorch's module."""
    model = eb.ParameterCollection(seed=1, dtype="float64")

    def both(size):
        return Bidirectional(*(layer(model, size, DIM, name=f"{size}.{side}") for side in ("right", "left")))

    if way == "one layer":
        own = layer(model, INPUT, DIM)
        own.b.set_value(np.ones(own.b.shape))  # must become zero without bias
        return own, [own], {}
    if way == "layers":
        own = Stacked([layer(model, INPUT if n == 0 else DIM, DIM, name=f"l{n}") for n in range(3)])
        return own, [own], {"num_layers": 3}
    if way == "both directions":
        own = both(INPUT)
        return own, [own], {"bidirectional": True}
    own = [both(INPUT), both(2 * DIM)]
    return own, own, {"bidirectional": True, "num_layers": 2}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("kind", "layer"), [("LSTM", LSTM), ("GRU", GRU), ("RNN", SimpleRNN)])
@pytest.mark.parametrize("way", ["one layer", "layers", "both directions", "layers of both directions"])
def test_recurrent(kind, layer, bias, way):
    own, levels, arguments = made(layer, way)
    check(torch_module(kind, bias=bias, **arguments), own, levels)


def test_linear_and_embedding():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model = eb.ParameterCollection()
    module = torch.nn.Sequential(torch.nn.Embedding(7, INPUT), torch.nn.Linear(INPUT, DIM))
    embed = model.add_lookup_parameters((7, INPUT))
    W, b = model.add_parameters((DIM, INPUT)), model.add_parameters(DIM)
    state = module.state_dict()
    from_torch(embed, state, prefix="0.")
    from_torch((W, b), state, prefix="1.")
    with eb.Graph(policy="sufficient"):
        got = eb.forward([eb.affine(W, embed[word], b) for word in range(7)])
    np.testing.assert_allclose(got, module(torch.arange(7)).detach().numpy(), rtol=1e-5, atol=1e-6)
    V = model.add_parameters((2, DIM))
    linear = torch.nn.Linear(DIM, 2, bias=False)
    from_torch(V, linear.state_dict())
    np.testing.assert_array_equal(V.value(), linear.weight.detach().numpy())


def lstm_state(layers=1, dim=DIM):
    random = np.random.default_rng(0)
    shapes = {"weight_ih": (4 * dim, INPUT), "weight_hh": (4 * dim, dim), "bias_ih": (4 * dim,), "bias_hh": (4 * dim,)}
    return {
        f"{name}_l{number}": random.standard_normal(shape) for name, shape in shapes.items() for number in range(layers)
    }


def test_arrays_need_no_torch():
    lstm = LSTM(eb.ParameterCollection(dtype="float64"), INPUT, DIM)
    state = lstm_state()
    from_torch(lstm, {f"encoder.{name}": value for name, value in state.items()} | {"other": 0}, prefix="encoder.")
    bias = state["bias_ih_l0"] + state["bias_hh_l0"]
    np.testing.assert_array_equal(lstm.b.value()[2 * DIM : 3 * DIM], bias[3 * DIM :])  # output gate


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.pop("weight_hh_l0"), "weight_hh_l0: missing"),
        (lambda s: s.update(lstm_state(2)), "unexpected entries: weight_ih_l1, weight_hh_l1, bias_ih_l1"),
        (lambda s: s.update(weight_hr_l0=np.ones(3)), "unexpected entries: weight_hr_l0"),
        (lambda s: s.update(lstm_state(dim=5)), r"weight_ih_l0: shape \(20, 3\) in the state, \(16, 3\) here"),
        (lambda s: s.update(bias_ih_l0=np.ones(3), bias_hh_l0=np.ones(3)), r"bias_ih_l0: shape \(3,\) in the state"),
        (lambda s: s.update(bias_hh_l0="text"), "from_torch: bias_hh_l0: expected numbers"),
    ],
)
def test_what_does_not_fit_is_named(change, message):
    model = eb.ParameterCollection()
    lstm = LSTM(model, INPUT, DIM)
    before = [parameter.value() for parameter in model]
    state = lstm_state()
    change(state)
    with pytest.raises(eb.EdBatchError, match=message):
        from_torch(lstm, state)
    for parameter, value in zip(model, before, strict=True):
        np.testing.assert_array_equal(parameter.value(), value)


@pytest.mark.parametrize("state", [None, [], [("weight", np.ones(2))]])
def test_what_is_no_state_dict(state):
    W = eb.ParameterCollection().add_parameters(2)
    with pytest.raises(eb.EdBatchError, match=r"from_torch: expected names to tensors, as of module.state_dict\(\)"):
        from_torch(W, state)


def test_what_is_no_target():
    W = (model := eb.ParameterCollection()).add_parameters(2)
    a, b = (Stacked([LSTM(model, INPUT, DIM, name=name)]) for name in "ab")
    for target in (None, "W", (W, None), [W], ChildSumTreeLSTM(model, INPUT, DIM), Bidirectional(a, b)):
        with pytest.raises(eb.EdBatchError, match="has no equivalent in PyTorch; expected a parameter, a pair"):
            from_torch(target, lstm_state())


def test_what_a_dtype_has_no_number_for_leaves_all_as_it_was():
    model = eb.ParameterCollection()
    W, b = model.add_parameters((2, 3), init=7.0, name="W"), model.add_parameters(2, init=7.0, name="b")
    with pytest.raises(eb.EdBatchError, match=r"from_torch: bias: 1e\+300 is too large for float32"):
        from_torch((W, b), {"weight": np.ones((2, 3)), "bias": np.full(2, 1e300)})
    assert W.value().min() == 7
