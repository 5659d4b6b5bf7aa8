"""Modules as ops of graphs: the numbers are those of PyTorch, sample by sample, wherever they are called."""

import copy
import gc
import threading
import weakref
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

import edbatch as eb
import edbatch.torch
from edbatch import devices
from tests import fake_device
from tests.torch.networks import WORDS, trees

SIZE = 4


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-9, atol=1e-12)


def double(*layers):
    return nn.Sequential(*layers).double()


def layers_of_two():
    return double(nn.Linear(2 * SIZE, SIZE), nn.GELU(), nn.LayerNorm(SIZE), nn.Linear(SIZE, SIZE))


class Network:
    """Composes trees by a module of PyTorch's, which is called at every node with two children; in cells or not."""

    def __init__(self, in_cell=False, layers=None):
        self.layers = layers_of_two() if layers is None else layers
        self.op = edbatch.torch.op(self.layers, name="compose")
        self.model = model = eb.ParameterCollection(dtype="float64", seed=0)
        self.table = model.add_lookup_parameters((WORDS, SIZE), "table", init="normal")
        self.V = model.add_parameters((3, SIZE), "V")
        self.in_cell = in_cell

    @eb.cell
    def composed(self, left, right):
        return eb.tanh(self.op(eb.concatenate([left, right]))) * 2

    def state(self, tree):
        if not isinstance(tree, tuple):
            return eb.lookup(self.table, tree)
        left, right = map(self.state, tree)
        if self.in_cell:
            return self.composed(left, right)
        return eb.tanh(self.op(eb.concatenate([left, right]))) * 2

    def scores(self, tree):
        return self.V @ self.state(tree)

    def module(self, **options):
        module = edbatch.torch.Module(self.scores, self.model, stack=True, **options)
        module.layers = self.layers
        return module


class Theirs(nn.Module):
    """The same in PyTorch."""

    def __init__(self, network):
        super().__init__()
        self.table, self.V = (nn.Parameter(torch.from_numpy(x.value().copy())) for x in (network.table, network.V))
        self.layers = copy.deepcopy(network.layers)
        self.layers.zero_grad()

    def state(self, tree):
        if not isinstance(tree, tuple):
            return self.table[tree]
        return torch.tanh(self.layers(torch.cat([self.state(one) for one in tree]))) * 2

    def forward(self, samples):
        return torch.stack([self.V @ self.state(tree) for tree in samples])


def loss_of(scores):
    return (scores * torch.linspace(-1, 1, scores.numel(), dtype=scores.dtype).reshape(scores.shape)).square().sum()


def assert_alike(a, b):
    """Values and gradients of modules with the same parameters."""
    expected = dict(b.named_parameters())
    found = dict(a.named_parameters())
    assert found.keys() == expected.keys()
    for name, parameter in found.items():
        close(parameter.detach(), expected[name].detach())
        assert (parameter.grad is None) == (expected[name].grad is None), name
        if parameter.grad is not None:
            close(parameter.grad, expected[name].grad)


@pytest.mark.parametrize(("in_cell", "replay"), [(False, True), (True, False)])
def test_training(in_cell, replay):
    """At every node of trees; hooks see whole gradients, clipping and accumulation work."""
    network = Network(in_cell)
    ours, theirs = network.module(), Theirs(network)
    if replay:
        ours.function = eb.replay(network.scores)
    seen = ([], [])
    for module, found in zip((ours, theirs), seen, strict=True):
        module.layers[0].weight.register_hook(lambda g, found=found: found.append(g.clone()) or g * 2)
        optimizer = torch.optim.Adam(module.parameters(), 0.05)
        for step in range(4):
            optimizer.zero_grad()
            for part in range(2):
                (loss_of(module(trees(part, 5 + step))) / 2).backward()
            nn.utils.clip_grad_norm_(module.parameters(), 0.5)
            optimizer.step()
    assert_alike(ours, theirs)
    assert len(seen[0]) == len(seen[1]) == 8
    for a, b in zip(*seen, strict=True):
        close(a, b)


@pytest.mark.parametrize("in_cell", [False, True])
def test_without_pytorch_around(in_cell):
    """Once, twice, after the graph has grown, and by what goes back without giving parameters a gradient."""
    network = Network(in_cell)
    theirs, samples = Theirs(network), trees(2, 7)
    calls = []
    network.layers.register_forward_hook(lambda *_: calls.append(1))
    with eb.Graph(dtype="float64") as graph:
        states = [network.state(tree) for tree in samples]
        loss = eb.sum([eb.sum(eb.square(network.V @ x)) for x in states])
        expected = sum((theirs.V @ theirs.state(tree)).square().sum() for tree in samples)
        loss.backward()
        expected.backward(retain_graph=True)
        assert 0 < len(calls) < graph.report().batches

        def assert_equal():
            close(loss.value(), expected.item())
            close(network.V.grad(), theirs.V.grad)
            close(network.table.grad(), theirs.table.grad)
            for a, b in zip(network.layers.parameters(), theirs.layers.parameters(), strict=True):
                close(a.grad, b.grad)

        assert_equal()
        n = len(calls)
        loss.backward()
        expected.backward(retain_graph=True)
        assert_equal()
        eb.gradients(loss, [network.V])
        states[0].gradient()
        assert_equal()  # these change nothing
        assert len(calls) == n
        loss = loss * eb.sum(network.state(samples[0]) + states[-1])  # grows
        expected = expected * (theirs.state(samples[0]) + theirs.state(samples[-1])).sum()
        loss.backward()
        expected.backward()
        assert_equal()
        assert len(calls) > n


def test_where_only_the_module_learns():
    """And there is nothing of EdBatch's below or above. A batch is a call; hooks see the gradient of all batches."""
    layers = double(nn.Linear(SIZE, 1), nn.Tanh())
    calls, seen = [], []
    layers.register_forward_hook(lambda *_: calls.append(1))
    score, X = edbatch.torch.op(layers), torch.randn(6, SIZE, dtype=torch.float64, requires_grad=True)
    with eb.Graph(dtype="float64"):
        xs = [eb.input(x) for x in X.detach().numpy()]
        total = eb.sum([score(x)[0] for x in xs])
    calls.clear()
    total.backward()
    assert len(calls) == 1
    same = copy.deepcopy(layers)
    same.zero_grad()
    same(X).sum().backward()
    for a, b in zip(layers.parameters(), same.parameters(), strict=True):
        close(a.grad, b.grad)
    for x, gradient in zip(xs, X.grad, strict=True):
        close(x.gradient(), gradient)
    close(layers[0].weight.grad, same[0].weight.grad)
    layers[0].weight.register_hook(lambda g: seen.append(g.clone()) or g * 3)
    layers.zero_grad()
    calls.clear()
    with eb.Graph(dtype="float64"):
        eb.sum([score(eb.input(x))[0] for x in X.detach().numpy()] + [score(eb.zeros((1, SIZE)))[0, 0]]).backward()
    assert len(calls) == 3  # and one that finds the shape for matrices
    same(X.new_zeros(1, SIZE)).sum().backward()
    (gradient,) = seen
    close(gradient, same[0].weight.grad)
    close(layers[0].weight.grad, 3 * gradient)
    layers.requires_grad_(False)
    with eb.Graph(dtype="float64"):
        x = eb.input(X[0].detach().numpy())
        score(x)[0].backward()
    close(x.gradient(), X.grad[0])
    assert len(seen) == 1


def test_frozen_parameters_and_no_grad():
    network = Network()
    ours = network.module()
    for frozen in (["layers.0.weight", "V"], ["table", "V"], ["layers.0", "layers.2", "layers.3"]):
        for module in (ours, theirs := Theirs(network)):
            module.zero_grad()
            for name, parameter in module.named_parameters():
                parameter.requires_grad_(not name.startswith(tuple(frozen)))
            loss_of(module(trees(3, 5))).backward()
        assert_alike(ours, theirs)
    modes = []
    network.layers.register_forward_hook(lambda *_: modes.append(torch.is_grad_enabled()))
    for block in (torch.no_grad, torch.inference_mode):
        with block():
            y = ours(trees(3, 5))
            assert not y.requires_grad
            close(y, theirs(trees(3, 5)))
    ours.requires_grad_(False)
    assert not ours(trees(3, 5)).requires_grad
    assert set(modes) == {False}
    network.layers.requires_grad_(True)
    with eb.Graph(dtype="float64"):
        loss = eb.sum(network.state((1, 2)))
        loss.value()
        network.layers[0].requires_grad_(False)
        network.layers.zero_grad()
    loss.backward()
    assert [x.grad is None for x in network.layers.parameters()] == [True, True, False, False, False, False]
    with eb.Graph(dtype="float64"), torch.no_grad():
        loss = eb.sum(network.state((1, 2)))
        loss.value()
    with refused("the gradient of foreign op compose: no gradient flows through what ran under torch.no_grad"):
        loss.backward()


class Several(nn.Module):
    """Of vectors and a matrix, results of several shapes."""

    def __init__(self):
        super().__init__()
        self.A = nn.Linear(SIZE, SIZE)

    def forward(self, x, y, Z):
        return {"scalar": (x * y).sum(-1), "rows": [self.A(Z), x.detach()]}


def test_several_operands_and_results():
    module = Several().double()
    op = edbatch.torch.op(module)
    w = eb.ParameterCollection(dtype="float64", seed=0).add_parameters(SIZE)
    data = np.random.default_rng(0)
    X, Z = data.normal(size=(5, SIZE)), data.normal(size=(5, 2, SIZE))
    with eb.Graph(dtype="float64"):
        xs, zs = [eb.input(x) for x in X], eb.array(Z)
        found = [op(x, w, z) for x, z in zip(xs, zs, strict=True)]
        loss = eb.sum([one["scalar"] + eb.sum(eb.square(one["rows"][0])) + one["rows"][1][0] for one in found[:3]])
        of_arrays = op(eb.array(X), w, zs)
        rest = eb.sum(list(of_arrays["scalar"]))
    x, z = (torch.tensor(one, requires_grad=True) for one in (X, Z))
    v = torch.tensor(w.value(), requires_grad=True)
    same = copy.deepcopy(module)
    expected = same(x, v, z)
    (expected["scalar"][:3].sum() + expected["rows"][0][:3].square().sum() + expected["scalar"].sum()).backward()
    eb.backward([loss, rest])
    for at, one in enumerate(found):
        close(one["scalar"].value(), expected["scalar"][at].item())
        close(one["rows"][0].value(), expected["rows"][0][at].detach())
        close(one["rows"][1].value(), X[at])
    close(of_arrays["rows"][0].value(), expected["rows"][0].detach())
    close(w.grad(), v.grad)
    close(zs.gradient(), z.grad)
    close(module.A.weight.grad, same.A.weight.grad)
    close(module.A.bias.grad, same.A.bias.grad)


class Alone(nn.Module):
    """Of one sample: it knows no batch axis."""

    def __init__(self):
        super().__init__()
        self.W = nn.Parameter(torch.randn(3, SIZE))
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x, y):
        return self.W @ x + self.shift * torch.dot(x, y)


def test_modules_without_a_batch_axis():
    module = Alone().double()
    op = edbatch.torch.op(module, vmap=True)
    X = torch.randn(4, SIZE, dtype=torch.float64)
    with eb.Graph(dtype="float64"):
        xs = [eb.input(x.numpy()) for x in X]
        ys = [op(x, y) for x, y in pairwise(xs)]
        loss = eb.sum([eb.sum(eb.square(y)) for y in ys])
    loss.backward()
    same = copy.deepcopy(module)
    X.requires_grad_()
    expected = sum(same(x, y).square().sum() for x, y in pairwise(X))
    expected.backward()
    close(loss.value(), expected.item())
    close(module.W.grad, same.W.grad)
    for x, gradient in zip(xs, X.grad, strict=True):
        close(x.gradient(), gradient)
    drop = edbatch.torch.op(nn.Dropout(), vmap=True)
    with eb.Graph():
        a, b = eb.forward([drop(eb.ones(50)), drop(eb.ones(50))])
    assert (a != b).any()


def test_masks_of_dropout_are_those_of_the_call():
    """Also where gradients flow to some of a batch only; and modes are the module's."""
    layers = double(nn.Dropout(0.5))
    drop = edbatch.torch.op(layers)
    found = []
    for _ in range(2):
        torch.manual_seed(3)
        with eb.Graph(dtype="float64"):
            xs = [eb.input(np.full(8, 1.0 + n)) for n in range(6)]
            ys = [drop(drop(x) if n % 2 else x) for n, x in enumerate(xs)]
            total = eb.sum([eb.sum(y) for y in ys])  # beside one another in this order
            eb.sum([eb.sum(y) for y in ys[3:]]).backward()
            assert total.value() > 0
        found.append([y.value() for y in ys])
        assert not any(x.gradient().any() for x in xs[:3])
        for x, y in zip(xs[3:], ys[3:], strict=True):
            close(x.gradient() * x.value(), y.value())
    close(*found)
    assert 0 < np.count_nonzero(found[0]) < 48
    layers.eval()
    with eb.Graph(dtype="float64"):
        assert (drop(eb.ones(8)).value() == 1).all()
    module = edbatch.torch.Module(lambda n: drop(eb.ones(8) * n), eb.ParameterCollection(dtype="float64"), stack=True)
    module.layers = layers
    assert module.train()([1, 2]).count_nonzero() < 16
    assert module.eval()([1, 2]).count_nonzero() == 16


def test_shapes_are_found_without_a_trace():
    """Buffers and PyTorch's random numbers are as they were."""

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rows", torch.zeros(()))

        def forward(self, x):
            self.rows += len(x)
            return nn.functional.dropout(x)

    module = Counting()
    op, state = edbatch.torch.op(module), torch.get_rng_state()
    with eb.Graph():
        ys = [op(eb.ones(2)) for _ in range(5)]
        assert torch.equal(torch.get_rng_state(), state)
        assert module.rows == 0
        eb.forward(ys)
    assert module.rows == 5
    assert not torch.equal(torch.get_rng_state(), state)


def test_a_parameter_of_both():
    """The table of EdBatch's is read by the module, too."""
    network = Network()
    module = edbatch.torch.Module(lambda n: op(eb.lookup(network.table, n)), network.model, stack=True)
    op = edbatch.torch.op(lambda x: x @ module.table.T)
    loss_of(module([3, 5, 3])).backward()
    table = module.table.detach().clone().requires_grad_()
    loss_of(table[[3, 5, 3]] @ table.T).backward()
    close(module.table.grad, table.grad)


def test_a_parameter_that_is_an_input_as_well():
    model = eb.ParameterCollection(dtype="float64", seed=0)
    w = model.add_parameters(SIZE, "w", init="normal")
    scale = nn.Bilinear(1, 1, SIZE, bias=False).double()
    op = edbatch.torch.op(lambda x: x * scale.weight[:, 0, 0])
    module = edbatch.torch.Module(lambda x: op(w * x[:, 0, 0]), model, stack=True)
    module.scale = scale
    loss_of(module([scale.weight] * 2)).backward()
    x, v = (one.detach().clone().requires_grad_() for one in (scale.weight, module.w))
    loss_of(torch.stack([v * x[:, 0, 0] * x[:, 0, 0]] * 2)).backward()
    close(scale.weight.grad, x.grad)
    close(module.w.grad, v.grad)


def test_threads():
    """Each has a module of its own, and all share one for inference."""
    shared = Network()
    inference, same = shared.module(), Theirs(shared)
    found = {}

    def work(seed):
        network = Network(in_cell=seed % 2)
        ours, theirs = network.module(), Theirs(network)
        for step in range(4):
            for module in (ours, theirs):
                module.zero_grad()
                loss_of(module(trees(10 * seed + step, 6))).backward()
            assert_alike(ours, theirs)
            with torch.no_grad():
                close(inference(trees(seed, 5)), same(trees(seed, 5)))
        found[seed] = True

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4


def test_nothing_holds_tapes_and_modules():
    """Types live on; of a graph computed anew, the tapes are new ones."""
    ended = []

    class Watched(nn.Module):
        def forward(self, x):
            y = x * 2
            if y.requires_grad:
                weakref.finalize(y, ended.append, 1)
            return y

    module = Watched()
    op = edbatch.torch.op(module)
    with eb.Graph() as graph:
        x = eb.input([1.0, 2.0])
        y = eb.sum(op(op(x)))
    y.backward()
    gc.collect()
    assert not ended
    graph.reset({x.id: [3.0, 4.0]})
    gc.collect()
    assert len(ended) == 2
    assert (y.value(), y.backward(), x.gradient().tolist()) == (28, None, [4, 4])
    graph.release()
    gc.collect()
    assert len(ended) == 4
    with eb.Graph():
        y = eb.sum(op(eb.ones(2)))
    y.backward()
    ends = [weakref.ref(module), weakref.ref(op)]
    del graph, x, module, op
    gc.collect()
    assert [end() for end in ends] == [None, None]
    del y
    gc.collect()
    assert len(ended) == 5
    with eb.Graph():
        y = edbatch.torch.op(lambda x: x)(eb.ones(2))
    with refused("the op was deleted"):
        y.value()


def test_tapes_are_kept_as_long_as_those_of_pytorch():
    """Though losses are held; and with the graph that ran last, for its report."""
    network = Network()
    module = network.module()
    tapes, losses = [], []
    network.layers.register_forward_hook(lambda layers, xs, y: tapes.append((len(losses), weakref.ref(y))))
    for step in range(4):
        losses.append(loss_of(module(trees(0, 5))))
        losses[-1].backward(retain_graph=step == 1)
        gc.collect()
        assert {of for of, tape in tapes if tape() is not None} == ({1, step} if step else {0})
    losses[1].backward()
    gc.collect()
    assert {of for of, tape in tapes if tape() is not None} == {3}


def refused(message):
    return pytest.raises((RuntimeError, eb.EdBatchError), match=message)


WRONG = {
    "expected a tensor, or several, got none": lambda x: [],
    r"got \[2, 0\] of torch.float32": lambda x: x[:, :0],
    "expected a tensor .* on the CPU for 2 rows, got 1.0": lambda x: 1.0,
    r"expected a tensor \[2, ...\] of torch.float32 .*, got \[3\] of torch.float32 on cpu": lambda x: x.sum(0),
    r"got \[\] of torch.float32": lambda x: x.sum(),
    r"got \[2, 3\] of torch.float64 on cpu": lambda x: x.double(),
    r"got \[2, 3\] of torch.float32 on meta": lambda x: x.to("meta"),
    "ValueError: too bad": lambda x: (_ for _ in ()).throw(ValueError("too bad")),
    "RuntimeError: mat1 and mat2": nn.Linear(4, 2),
    "BatchNorm1d in training mixes the rows": nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)),
    "BatchNorm1d in training mixes": nn.BatchNorm1d(3, track_running_stats=False).eval(),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_modules(message):
    op = edbatch.torch.op(WRONG[message], name="wrong")
    with eb.Graph(), refused(f"^op wrong: .*{message}"):
        op(eb.ones(3))


def test_modules_that_go_wrong_later():
    """After their shapes were found."""
    for message, wrong in WRONG.items():
        current = nn.Identity()
        op = edbatch.torch.op(lambda x: current(x), name="wrong")  # noqa: B023
        with eb.Graph():
            y = op(eb.ones(3)) + op(eb.zeros(3))
            if "BatchNorm" not in message:  # seen of modules only
                current = wrong
                with refused(f"^foreign op wrong: .*{message}"):
                    y.value()
    current = nn.Linear(3, 2)
    with eb.Graph(), refused("foreign op wrong: expected results of shapes .*3.* for each row, as for rows of zeros"):
        op(eb.ones(3)).value()
    current = nn.Identity()
    with eb.Graph():
        y = op(eb.ones(3) + 1)
        current = lambda x: [x]  # noqa: E731
        with refused("foreign op wrong: expected results of shapes"):
            y.value()


def test_batch_norm_in_eval():
    norm = nn.BatchNorm1d(3).eval()
    op = edbatch.torch.op(norm)
    norm.running_mean += 1
    with eb.Graph():
        assert op(eb.ones(3)).value().tolist() == [0, 0, 0]
        y = op(eb.zeros(3))
        norm.train()
        with refused("foreign op BatchNorm1d: BatchNorm1d in training mixes the rows"):
            y.value()


def test_what_is_refused():
    network = Network()
    module = edbatch.torch.Module(network.scores, network.model, stack=True)
    with refused(r"its Sequential is not a submodule of the edbatch.torch.Module .* assign it, `module.NAME = ...`"):
        module(trees(0, 3))
    outside = nn.Parameter(torch.ones(SIZE, dtype=torch.float64))
    op = edbatch.torch.op(lambda x: x * outside, name="outside")
    module = edbatch.torch.Module(lambda n: op(eb.lookup(network.table, n)), network.model, stack=True)
    loss = loss_of(module([1, 2]))
    with refused(r"outside: it computes with a parameter of shape \(4,\) that edbatch.torch.Module does not have"):
        loss.backward()
    ours = network.module()
    loss = loss_of(ours(trees(0, 3)))
    with torch.no_grad():
        ours.layers[0].weight.mul_(2)
    with refused("modified by an inplace operation"):
        loss.backward()
    with eb.Graph(dtype="float64"):
        loss = eb.sum(network.state((1, (2, 3))))
        loss.value()
        with torch.no_grad():
            network.layers[3].weight.mul_(2)
        with refused("compose: RuntimeError: .*modified by an inplace operation"):
            loss.backward()
    assert all(one.grad is None for one in network.layers.parameters())
    assert not network.table.grad().any()
    with refused("op outside: expected at least one operand"):
        op()
    for wrong in (3, nn.Linear):
        with refused("edbatch.torch.op: expected a module or a function of tensors"):
            edbatch.torch.op(wrong)
    with refused("edbatch.torch.op: vmap: expected True or False"):
        edbatch.torch.op(nn.Identity(), vmap="yes")


def test_graphs_on_a_gpu_are_refused(monkeypatch):
    monkeypatch.setitem(devices.BACKENDS, "fake", fake_device)
    monkeypatch.setattr(devices, "_devices", dict(devices._devices))
    op = edbatch.torch.op(nn.Identity())
    with eb.device("fake"), eb.Graph():
        w = eb.ParameterCollection().add_parameters(3)
        y = op(w * 1)
        with refused("edbatch.torch.op runs on the CPU.*: expected parameters on fake"):
            y.value()
