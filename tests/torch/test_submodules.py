"""Submodules of modules of one sample, which are cells by themselves: nothing but speed tells."""

import copy
import itertools
import threading

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._pytree import tree_flatten

import edbatch as eb
from edbatch.torch import Batched, cell
from tests.torch.test_functions import compared, leaves_and_gradients

SIZE = 4
FLOAT = {"dtype": torch.float64}
POINTS = list(torch.linspace(-1, 1, 5 * SIZE, **FLOAT).reshape(5, SIZE))


class Part(nn.Module):
    """Runs a function as its `forward`."""

    def __init__(self, function):
        super().__init__()
        self.layer = nn.Linear(SIZE, SIZE, **FLOAT)
        self.more = nn.Sequential(nn.Dropout(0.0), nn.Linear(SIZE, SIZE, **FLOAT), nn.Tanh())
        self.register_buffer("scale", torch.full((SIZE,), 0.5, **FLOAT))
        self.factor = 2.0
        self.seen, self.calls, self.log, self.by_name = None, 0, [], {}
        self.function = function

    def forward(self, *args, **given):
        return self.function(self, *args, **given)


class Whole(nn.Module):
    """Calls a part twice or more for each sample."""

    def __init__(self, of_part, function=lambda self, x: self.part(self.part(self.part(x)))):
        super().__init__()
        torch.manual_seed(0)
        self.part = Part(of_part)
        self.below = nn.Linear(SIZE, SIZE, **FLOAT)
        self.function = function

    def forward(self, x):
        return self.function(self, self.below(x))


def batches_of(model, samples=POINTS):
    """Nodes of the second call: cells have been made."""
    module = Batched(model)
    for _ in range(2):
        module(samples)
    return module.last.report().nodes


def seeing(self, h):
    self.seen = torch.tanh(self.layer(h))
    return self.seen * 2


def counting(self, h):
    self.calls += 1
    return torch.tanh(self.layer(h)) * self.calls


def logging(self, h):
    self.log.append(torch.tanh(self.layer(h)))
    self.by_name[len(self.by_name)] = self.log[-1]
    return self.log[-1] + self.log[0]


SEEN = []


def noting(self, h):
    SEEN.append(torch.tanh(self.layer(h)))
    return SEEN[-1]


def reading(self, h):
    h = self.layer(h)
    return torch.tanh(h) if h.sum() > 0 else h * 0.5


def drawing(self, h):
    return torch.tanh(self.layer(h)) + (torch.rand(SIZE, **FLOAT) > 2)


def capturing(self, h):
    return torch.tanh(self.layer(h)) * POINTS[1]


def writing(self, h):
    h = self.layer(h)
    h += 1
    return h * 2


def mixed(self, h):
    return torch.tanh(self.layer(h)), None


CELLS = {
    "layers": (lambda self, h: self.more(torch.tanh(self.layer(h))), lambda self, x: self.part(self.part(x))),
    "buffer": (lambda self, h: torch.tanh(self.layer(h)) * self.scale, lambda self, x: self.part(self.part(x))),
    "named": (lambda self, h, by: torch.tanh(self.layer(h)) * by, lambda self, x: self.part(x, by=self.part(x, by=x))),
    "nested": (
        lambda self, h, state: (torch.tanh(self.layer(h)) + state[0], [state[1] * h]),
        lambda self, x: self.part(x, (x, self.part(x, [x, x])[0])),
    ),
    "tensor": (lambda self, h, x: torch.tanh(self.layer(h)) + x, lambda self, x: self.part(x, self.part(x, POINTS[2]))),
    "None": (
        lambda self, h, x: torch.tanh(self.layer(h if x is None else h * x)),
        lambda self, x: self.part(self.part(x, x), None),
    ),
    "without gradients": (lambda self, h: torch.tanh(self.layer(h)), lambda self, x: self.part(x) + stopped(self, x)),
    "written afterwards": (lambda self, h: self.layer(h) * 2, lambda self, x: written(self.part(x))),
    "parameter": (lambda self, h, w: torch.tanh(self.layer(h)) + w, lambda self, x: self.part(x, self.below.bias)),
    "integer": (lambda self, h, i: F.cross_entropy(self.layer(h), i), lambda self, x: self.part(x, torch.tensor(2))),
}  # fmt: skip
FUNCTIONS = [seeing, counting, noting, logging, reading, drawing, capturing, writing, mixed]


def stopped(self, x):
    with torch.no_grad():
        return self.part(x)


def written(x):
    x += 1
    return x * 2


@pytest.mark.parametrize("name", CELLS)
def test_what_takes_tensors_is_a_cell(name):
    of_part, function = CELLS[name]
    compared(Whole(of_part, function), POINTS)
    model = Whole(of_part, function)
    module, unmarked = Batched(model), Batched(model, cells="marked")
    for _ in range(2):
        module(POINTS)
        unmarked(POINTS)
    assert module.last.report().nodes < unmarked.last.report().nodes


@pytest.mark.parametrize("of_part", FUNCTIONS)
def test_what_cannot_be_a_cell_is_recorded_as_it_is(of_part):
    def function(self, x):
        found = self.part(self.part(x)) if of_part is not mixed else self.part(self.part(x)[0])[0]
        return found, self.part.seen, sum(self.part.log), self.part.calls

    model = Whole(of_part, function)
    del SEEN[:]
    beside = copy.deepcopy(model)
    theirs, wanted = leaves_and_gradients(beside, [beside(one) for one in POINTS])
    ours, found = leaves_and_gradients(model, Batched(model)(POINTS))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.detach(), b.detach())
    for name in wanted:
        torch.testing.assert_close(found[name], wanted[name])
    assert (model.part.calls, len(model.part.log), len(model.part.by_name)) == (
        beside.part.calls, len(beside.part.log), len(beside.part.by_name)
    )  # fmt: skip
    assert len(SEEN) == (4 * len(POINTS) if of_part is noting else 0)


def test_marked_cells_only():
    model = Whole(lambda self, h: torch.tanh(self.layer(h)) * h)
    unmarked = Batched(model, cells="marked")
    unmarked(POINTS)
    assert unmarked.last.report().nodes > batches_of(model)
    with pytest.raises(eb.EdBatchError, match="cells: expected 'auto' or 'marked', got 'all'"):
        Batched(model, cells="all")


def hook(model):
    model.part.register_forward_hook(lambda module, args, found: found * 2)


def change_buffer(model):
    model.part.scale.mul_(3)


def change_number(model):
    model.part.factor += 1


def change_part(model):
    model.part.more[0].p = 1.0


def change_mode(model):
    model.train(not model.training)


def change_function(model):
    model.part.function = lambda self, h: -h * self.scale


def change_layer(model):
    model.part.more[2] = nn.Sigmoid()


@pytest.mark.parametrize(
    "change", [hook, change_buffer, change_number, change_part, change_mode, change_function, change_layer]
)
@pytest.mark.parametrize("replay", [False, True])
def test_what_is_changed_between_calls_is_seen(change, replay):
    def of_part(self, h):
        return self.more(self.layer(h)) * self.scale * self.factor * (1 if self.training else 3)

    model = Whole(of_part)
    module = Batched(model, replay=replay)
    samples = [x.clone() for x in POINTS]
    for _ in range(3):
        for _ in range(2):
            for a, b in zip(module(samples), samples, strict=True):
                torch.testing.assert_close(a, model(b))
        change(model)


def test_what_is_changed_while_samples_are_recorded():
    def function(self, x):
        self.part.more[0].p += 0.01
        return self.part(self.part(x))

    model = Whole(lambda self, h: self.more(self.layer(h)), function)
    with pytest.raises(eb.EdBatchError, match=r"Whole.part.more.0.p was changed .* Part.forward is a cell"):
        Batched(model)(POINTS)
    model.part.more[0].p = 0.0
    model.eval()
    for a, b in zip(Batched(model, cells="marked")(POINTS), POINTS, strict=True):
        torch.testing.assert_close(a, model(b))


def step(self, h):
    self.scale += 1
    return torch.tanh(self.layer(h)) * self.scale


def test_buffers_that_are_written_to():
    """By a part itself, which is no cell then, and by what calls one."""

    def function(self, x):
        h = self.part(x)
        self.part.scale += 1
        return h * self.part.scale

    for of_part, options in ((step, {}), (lambda self, h: h.tanh() + self.scale, {"cells": "marked"})):
        models = [Whole(of_part, function) for _ in range(2)]
        for _ in range(2):
            ours, theirs = Batched(models[0], **options)(POINTS), [models[1](x) for x in POINTS]
            torch.testing.assert_close(ours, theirs)
            torch.testing.assert_close(models[0].part.scale, models[1].part.scale)
    model = Whole(lambda self, h: h.tanh() + self.scale, function)
    with pytest.raises(eb.EdBatchError, match=r"a buffer of Whole.part was changed while .* pass it as an argument"):
        Batched(model)(POINTS)
    with pytest.raises(
        eb.EdBatchError, match=r"replay=True\): forward changes a buffer of Whole.part, .* or leave out replay=True"
    ):
        Batched(Whole(lambda self, h: h * 2, lambda self, x: (self.part.scale.add_(1), x)[1]), replay=True)(POINTS)


def replace_buffer(self, x):
    self.part.scale = self.part.scale * 2
    return self.part(x)


def test_buffers_that_are_replaced():
    with pytest.raises(eb.EdBatchError, match=r"a buffer of Whole.part was changed"):
        Batched(Whole(lambda self, h: h.tanh() * self.scale, replace_buffer))(POINTS)


def test_shapes_that_vary():
    model = Whole(lambda self, h: torch.tanh(self.layer(h)) * h)
    compared(model, [torch.randn(length, SIZE, **FLOAT) for length in range(1, 30)])
    module = Batched(model)
    for _ in range(3):
        module([torch.randn(length, SIZE, **FLOAT) for length in range(1, 30)])


def test_results_that_are_what_was_given():
    model = Whole(lambda self, h: h.view(2, 2), lambda self, x: written(self.part(self.part(x).view(-1))))
    with pytest.raises(eb.EdBatchError, match="or is of a cell, of a lazy tensor is not supported"):
        Batched(model)(POINTS)


@pytest.mark.filterwarnings("ignore:.*jit")
def test_calls_elsewhere_are_as_before():
    """Of threads that compute with the model itself, of copies, and of what PyTorch makes of modules."""
    model = Whole(lambda self, h: torch.tanh(self.layer(h)) * self.factor)
    wanted = torch.stack([model(x) for x in POINTS])
    module, wrong = Batched(model, stack=True), []

    def plain():
        for _ in range(50):
            with torch.no_grad():
                wrong.extend(0 for x, y in zip(POINTS, wanted, strict=True) if not torch.equal(model(x), y))

    thread = threading.Thread(target=plain)
    thread.start()
    for _ in range(20):
        torch.testing.assert_close(module(POINTS), wanted)
    thread.join()
    assert not wrong
    torch.testing.assert_close(torch.stack([copy.deepcopy(model)(x) for x in POINTS]), wanted)
    layers = nn.Sequential(nn.Linear(SIZE, SIZE, **FLOAT), nn.Tanh())
    inside = Batched(nn.Sequential(layers, layers), stack=True)
    inside(POINTS)
    scripted = torch.jit.script(layers)
    torch.testing.assert_close(scripted(POINTS[0]), layers(POINTS[0]))
    traced = torch.fx.symbolic_trace(inside.model)
    torch.testing.assert_close(traced(POINTS[0]), inside(POINTS)[0])
    compiled = torch.compile(inside.model, backend="eager")
    torch.testing.assert_close(compiled(POINTS[0]), inside(POINTS)[0])


class Words(nn.Module):
    """A recurrence over numbers, tensors or lists of words."""

    def __init__(self, p=0.0):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.step = nn.Embedding(9, SIZE, **FLOAT), nn.GRUCell(SIZE, SIZE, **FLOAT)
        self.dropout, self.start = nn.Dropout(p), nn.Parameter(torch.ones(SIZE, **FLOAT))

    def forward(self, words, scale):
        h = self.start
        for word in words:
            h = self.step(self.embed(word if isinstance(word, torch.Tensor) else torch.tensor(word)), h)
            h += 1
        return self.dropout(h) * scale, {"last": h.sum()}


def test_replay():
    model = Words()
    module = Batched(model, replay=True)
    samples = [[3, 4, 5], (1,), torch.tensor([2, 2]), (1,)], [1.0, torch.tensor(2.0, **FLOAT), np.float64(3), 4.0]
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(4):
        theirs, wanted = leaves_and_gradients(model, [model(*one) for one in zip(*samples, strict=True)])
        ours, found = leaves_and_gradients(model, module(*samples))
        torch.testing.assert_close([x.detach() for x in ours], [x.detach() for x in theirs])
        torch.testing.assert_close(found, wanted)
        optimizer.step()
        samples[0][0].append(epoch)
        samples[0][2][0] += 1
        samples[1][1].add_(1)
        samples[1][3] = torch.tensor(4.0 + epoch, **FLOAT)
        with torch.no_grad():
            torch.testing.assert_close(module(*samples)[0][0], model(samples[0][0], 1.0)[0])
    calls = itertools.count()
    model.forward = lambda *args: (next(calls), Words.forward(model, *args))[1]
    for _ in range(3):
        module(*samples)
    assert next(calls) == 2 * 4  # each is recorded twice, once


class Returning(Whole):
    calls = itertools.count()

    def __init__(self):
        super().__init__(lambda self, h: h)
        self.tensor = torch.ones(2, **FLOAT)

    def forward(self, x):
        next(self.calls)
        h = self.below(x)
        found = {"loss": h.sum(), "best": h.argmax(), "right": h > 0, "sample": x * 2, "length": torch.tensor(len(x))}
        return found, [x, self.part.scale, self.tensor, torch.zeros(0), x > 0], h.detach()


def test_replay_keeps_tensors_that_are_returned():
    model = Returning()
    module = Batched(model, replay=True)
    for epoch in range(4):
        before = next(model.calls)
        found = module(POINTS)
        assert next(model.calls) - before - 1 == (0 if epoch in (1, 2) else 2 * len(POINTS))
        for ours, x in zip(found, POINTS, strict=True):
            for a, b in zip(tree_flatten(ours)[0], tree_flatten(model(x))[0], strict=True):
                assert a.dtype == b.dtype
                torch.testing.assert_close(a, b)
            ours[1][2].fill_(7)  # it is the caller's
        with torch.no_grad():
            model.below.bias.add_(1)
            if epoch == 2:
                model.tensor.add_(1)
                model.part.scale.add_(1)


def test_replay_draws_dropout_anew():
    module = Batched(Words(0.5), replay=True, stack=True)
    found = [torch.stack([x for x, _ in module([(1, 2)] * 8, [1.0] * 8)]) for _ in range(2)]
    assert not torch.equal(found[0] == 0, found[1] == 0)
    module.eval()
    assert all((x != 0).all() for x, _ in module([(1, 2)] * 8, [1.0] * 8))


@pytest.mark.filterwarnings("ignore")  # PyTorch's, where a number is read
def test_what_replay_refuses():
    x = torch.ones(SIZE, **FLOAT, requires_grad=True)
    for function, sample, message in (
        (lambda self, h: h, x, "got torch.Tensor, whose changes cannot be seen"),
        (lambda self, h: h * x, POINTS[0], "a tensor that requires a gradient is used in a sample, which is kept"),
        (lambda self, h: h if h.sum() > 0 else -h, POINTS[0], "reads a value"),
        (lambda self, h: h * torch.rand(SIZE, **FLOAT), POINTS[0], "keeps state: called twice"),
        (lambda self, h: (h, torch.rand(SIZE, **FLOAT)), POINTS[0], "keeps state: called twice"),
        (lambda self, h: (h, self.below.bias), POINTS[0], r"a Parameter of shape \[4\] whose numbers .* x.clone"),
        (lambda self, h: (h, x * 2), POINTS[0], r"returns a Tensor of shape \[4\] whose numbers change"),
        (lambda self, h: h * norm_of(self), POINTS[0], "eigvals of a parameter in .*replay=True.: its numbers change"),
    ):
        with pytest.raises(eb.EdBatchError, match=message):
            Batched(Whole(lambda self, h: h, function), replay=True)([sample])
    with pytest.raises(eb.EdBatchError, match="Batched: replay: expected True or False"):
        Batched(Whole(lambda self, h: h), replay="yes")


def norm_of(self):
    return torch.linalg.eigvals(self.below.weight).abs().detach()


def test_cells_inside_of_cells():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Whole(lambda self, h: self.more(h) + self.factor)
            self.again = Whole(marked)

        def forward(self, x):
            return self.inner(self.inner(x)) + self.again(self.again(x))

    compared(Outer(), POINTS)


@cell
def marked(self, h):
    return torch.tanh(self.layer(h)) * h


def test_shapes_that_cannot_be_cells():
    def of_part(self, h):
        if len(h) == 2:
            return h
        return h * 2 if len(h) > 2 or h.sum() > 0 else h * 3

    def function(self, x):
        long, short, one = self.part(x), self.part(x[:2]), self.part(x[:1])
        return long, short * 2, one, self.part(x), self.part(x[2:] * 2), self.part(x[:1] - 9)

    compared(Whole(of_part, function), POINTS)
    with pytest.raises(eb.EdBatchError, match="or is of a cell, of a lazy tensor is not supported"):
        Batched(Whole(of_part, lambda self, x: (self.part(x), written(self.part(x[:2])))))(POINTS)


FACTOR, FACTORS = 1.0, [1.0]


def _scaled(x):
    return x * FACTOR * FACTORS[0]


class Reads(nn.Module):
    """No cell, as what it holds may change; it reads what is of no module."""

    shared = (1.0,)

    def __init__(self):
        super().__init__()
        self.given = {"bias": 1.0}

    def forward(self, x):
        return _scaled(x) + self.given["bias"] * self.shared[0] + self.more(x)

    def more(self, x):
        return x * 0


class ReadsBelow(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.parts = nn.ModuleList([Reads(), Reads()])

    def forward(self, x):
        return self.parts[0](self.parts[1](self.w * x))


CHANGES = {
    "global": (f"{__name__}.FACTOR", 3.0),
    "item of a global": (f"{__name__}.FACTORS", [2.0]),
    "helper": (f"{__name__}._scaled", lambda x: x * 5),
    "class attribute": (f"{__name__}.Reads.shared", (4.0,)),
    "method": (f"{__name__}.Reads.more", lambda self, x: x),
    "a part's forward": (f"{__name__}.Reads.forward", lambda self, x: x * 7),
    "forward": (f"{__name__}.ReadsBelow.forward", lambda self, x: self.w * x * 9),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_parts_read_is_seen_where_samples_are_replayed(what, monkeypatch):
    module = ReadsBelow()
    batched = Batched(module, replay=True)
    before = [batched([1.0])[0].tolist() for _ in range(2)]
    assert before == [module(1.0).tolist()] * 2
    monkeypatch.setattr(*CHANGES[what])
    assert batched([1.0])[0].tolist() == module(1.0).tolist() != before[0]
