"""What modules of one sample do besides computing, or compute by other means: as PyTorch does it, or an error."""

import contextvars
import copy
import os
import random
import threading
from collections import UserDict

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import _get_current_function_mode_stack
from torch.utils.checkpoint import checkpoint

import edbatch as eb
from edbatch.torch import Batched
from tests.torch.copies import COPIES
from tests.torch.test_functions import compared

SIZE = 4
FLOAT = {"dtype": torch.float64}
POINTS = list(torch.linspace(-1, 2, 5 * SIZE, **FLOAT).reshape(5, SIZE))
NUMBER = 1.0
SCALE, LOCAL, HELD = contextvars.ContextVar("scale"), threading.local(), {"scale": 1.0}


class Part(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.layer, self.scale = nn.Linear(SIZE, SIZE, **FLOAT), scale
        self.user, self.steps, self.tensor = UserDict(n=1.0), iter(range(1, 10**6)), torch.ones(2, **FLOAT)
        self.factor, self.options = 1.0, {"n": 1.0}

    def forward(self, x):
        return torch.tanh(self.layer(x)) * self.scale(self)


class Net(nn.Module):
    """Sets what a part depends on before each of its calls."""

    def __init__(self, scale, set_to=lambda self, x: None):
        super().__init__()
        torch.manual_seed(0)
        self.part, self.below, self.set_to = Part(scale), nn.Linear(SIZE, SIZE, **FLOAT), set_to
        self.memory = nn.Embedding(SIZE, SIZE, **FLOAT)

    def forward(self, x):
        h = self.below(x)
        found = []
        for number in range(2):
            self.set_to(self, float(x[0]) + number)
            found.append(self.part(h))
        return found


class Schedule:
    def __init__(self):
        self.n = 0

    def step(self):
        self.n += 1
        return self.n


SCHEDULE = Schedule()


def set_global(self, value):
    HELD["scale"] = value


READ = {
    "context variable": (lambda part: SCALE.get(), lambda self, value: SCALE.set(value)),
    "thread": (lambda part: LOCAL.scale, lambda self, value: setattr(LOCAL, "scale", value)),
    "environment": (
        lambda part: float(os.environ["A_SCALE"]), lambda self, value: os.environ.update(A_SCALE=str(value)),
    ),
    "object": (lambda part: part.user["n"], lambda self, value: self.part.user.update(n=value)),
    "dictionary": (lambda part: part.options["n"], lambda self, value: self.part.options.update(n=value)),
    "attribute": (lambda part: part.factor, lambda self, value: setattr(self.part, "factor", value)),
    "tensor": (lambda part: part.tensor.numpy().sum(), lambda self, value: self.part.tensor.fill_(value)),
    "item": (lambda part: part.tensor[0].item(), lambda self, value: self.part.tensor.fill_(value)),
    "mode": (lambda part: 2 if part.training else 3, lambda self, value: self.part.train(value % 2 > 1)),
    "iterator": (lambda part: next(part.steps), lambda self, value: None),
    "counter": (lambda part: SCHEDULE.step(), lambda self, value: None),
    "draws": (lambda part: random.random(), lambda self, value: None),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_what_parts_read_besides(name):
    scale, set_to = READ[name]
    found = []
    for run in (Batched, lambda model: lambda samples: [model(one) for one in samples]):
        model = Net(scale, set_to)
        random.seed(0)
        SCHEDULE.n = 0
        found += [run(model)(POINTS) for _ in range(2)]
    for ours, theirs in zip(found[:2], found[2:], strict=True):
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b)


def test_a_global_number_that_changes_within_a_mini_batch_is_an_error():
    model = Net(lambda part: NUMBER, lambda self, value: globals().update(NUMBER=value))
    with pytest.raises(eb.EdBatchError, match="NUMBER"):
        Batched(model)(POINTS)
    compared(Net(lambda part: HELD["scale"], set_global), POINTS)
    ours = Batched(model, cells="marked")(POINTS)
    torch.testing.assert_close(ours, [model(one) for one in POINTS])


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


def frozen(self, h):
    self.below.requires_grad_(False)
    found = self.below(h)
    self.below.requires_grad_(True)
    return found


def halved(self, h):
    self.below.weight.data.mul_(0.5)
    return h


def written(self, h):
    with torch.no_grad():
        self.below.weight.copy_(torch.ones(SIZE, SIZE))
    return h


apply = Reverse.apply
REFUSED = {
    "a torch.autograd.Function of a lazy tensor": lambda self, h: apply(h),
    "torch.autograd.Function": lambda self, h: checkpoint(self.below, h, use_reentrant=True),
    r"requires_grad_\(False\)": frozen,
    "mul_ where the tensor has views": halved,
    "parameter 'below.weight' was written to, or replaced, while": written,
}


class Uses(nn.Module):
    def __init__(self, function, whole=None):
        super().__init__()
        torch.manual_seed(0)
        self.below, self.memory, self.function = nn.Linear(SIZE, SIZE, **FLOAT), nn.Embedding(4, 4, **FLOAT), function
        if whole:
            self.whole = nn.Parameter(torch.ones(SIZE, **FLOAT))

    def forward(self, x):
        return self.function(self, self.below(x))


@pytest.mark.parametrize("message", REFUSED)
def test_what_would_pass_by_gradients_is_refused(message):
    with pytest.raises(eb.EdBatchError, match=message):
        Batched(Uses(REFUSED[message]))(POINTS)
    x = torch.ones(2, requires_grad=True)
    apply(x).sum().backward()
    assert x.grad.tolist() == [-1, -1]
    compared(Uses(lambda self, h: checkpoint(self.below, h, use_reentrant=False)), POINTS)


@pytest.mark.parametrize("pre", [False, True])
@pytest.mark.parametrize("of", ["below", ""])
def test_backward_hooks_are_refused(pre, of):
    model = Uses(lambda self, h: h)
    module = model.get_submodule(of)
    (module.register_full_backward_pre_hook if pre else module.register_full_backward_hook)(lambda *_: None)
    with pytest.raises(eb.EdBatchError, match=r"a (Linear|Uses) has backward hooks, which are not supported"):
        Batched(model)(POINTS)


def test_hooks_of_all_modules():
    seen = []
    hook = nn.modules.module.register_module_forward_hook(
        lambda module, given, found: seen.append(module) or found * 2 if isinstance(module, nn.Linear) else found
    )
    try:
        compared(Uses(lambda self, h: self.below(h)), POINTS)
    finally:
        hook.remove()
    assert len(seen) == 2 * 2 * len(POINTS)
    hook = nn.modules.module.register_module_full_backward_hook(lambda *_: None)
    try:
        with pytest.raises(eb.EdBatchError, match="has backward hooks, which are not supported"):
            Batched(Uses(lambda self, h: h))(POINTS)
    finally:
        hook.remove()


@pytest.mark.filterwarnings("ignore")  # of what PyTorch will remove
@pytest.mark.parametrize("compiled", [torch.compile, lambda part: torch.jit.trace(part, POINTS[0])])
def test_compiled_parts_are_refused(compiled):
    model = Uses(lambda self, h: h)
    model.below = compiled(model.below)
    with pytest.raises(eb.EdBatchError, match=r"a compiled \w+ takes no lazy tensors"):
        Batched(model)(POINTS)


BY_INDEX = {
    "numbers": lambda self, h: torch.eye(4, **FLOAT)[h.topk(2)[1]] * h,
    "mask": lambda self, h: torch.arange(4.0, **FLOAT)[h > 0].sum() * h,
    "rows of a mask": lambda self, h: torch.eye(4, **FLOAT)[h > 0].sum(0) * h,
    "weight": lambda self, h: self.memory.weight[h.topk(2)[1]].sum(0) * h,
    "weight by mask": lambda self, h: self.memory.weight[h > 0].sum(0) + h,
    "written": lambda self, h: by_index(h) * h,
    "tied": lambda self, h: h @ self.memory.weight.t(),
    "detached": lambda self, h: h * self.memory.weight.detach().sum() + h * self.memory.weight.data[0],
}


def by_index(h):
    x = torch.zeros(4, **FLOAT)
    x[h.topk(2)[1]] = 5.0
    return x


@pytest.mark.filterwarnings("ignore")  # PyTorch's, where a number is read
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("name", BY_INDEX)
def test_indices_and_weights_that_meet_tensors(name, whole):
    compared(Uses(BY_INDEX[name], whole), POINTS)


@pytest.mark.parametrize(
    "how",
    [
        lambda self, h: h * self.memory.weight.detach().sum(),
        lambda self, h: h * self.memory.weight.data.sum(),
        lambda self, h: h * stopped(self),
        lambda self, h: h * self.memory.state_dict()["weight"].sum(),
        lambda self, h: h @ self.memory.weight.t(),
    ],
)
def test_replay_follows_parameters_without_gradients(how):
    model = Uses(how)
    module, optimizer = Batched(model, replay=True), torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        found = module(POINTS)
        for ours, x in zip(found, POINTS, strict=True):
            torch.testing.assert_close(ours, model(x))
        optimizer.zero_grad()
        sum(y.sum() for y in found).backward()
        optimizer.step()


def stopped(self):
    with torch.no_grad():
        return self.memory.weight.sum()


@pytest.mark.parametrize(
    "how",
    [
        lambda self, h: h * self.memory.weight.detach().numpy().sum(),
        lambda self, h: h * float(self.memory.weight.sum()),
        lambda self, h: h * self.memory.weight.tolist()[0][0],
        lambda self, h: h * (2 if self.below.bias[0] > 0 else 1),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_replay_refuses_to_read_parameters(how):
    with pytest.raises(eb.EdBatchError, match=r"reads a value|tolist of a parameter in"):
        Batched(Uses(how), replay=True)(POINTS)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(SIZE, SIZE, **FLOAT)
        self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(SIZE, SIZE, **FLOAT))

    def forward(self, x):
        return self.normed(self.rnn(x)[0])


@pytest.mark.parametrize("copied", [*COPIES, copy.copy])
def test_copies_of_models_with_states_of_their_own(copied):
    model, x = Tagger() if copied in (COPIES[0], copy.copy) else Tagger().rnn, torch.randn(3, SIZE, **FLOAT)
    other = model
    for _ in range(2):
        Batched(model)([x])
        other = copied(model)
        with torch.no_grad():
            for p in other.parameters():
                p.mul_(0.5)
        wanted, plain = model(x), other(x)
        torch.testing.assert_close(Batched(other)([x])[0], plain)
        assert copied is copy.copy or not torch.equal(*(y[0] if isinstance(y, tuple) else y for y in (wanted, plain)))
    assert "_compiled_call_impl" not in vars(model)


def test_a_mode_that_an_interrupt_left_does_nothing():
    """As one does that comes while PyTorch ends a block: nobody takes the mode off its stack then."""
    modes = []

    def function(self, h):
        modes.append(_get_current_function_mode_stack()[-1])
        return F.relu(self.below(h)) + self.whole

    model = Uses(function, True)
    wanted = [y.detach() for y in Batched(model)(POINTS)]
    model.function = lambda self, h: F.relu(self.below(h)) + self.whole
    with modes[0]:
        for x, y in zip(POINTS, wanted, strict=True):
            torch.testing.assert_close(model(x), y, check_stride=False)
        torch.testing.assert_close(torch.stack(Batched(model)(POINTS)), torch.stack(wanted))
