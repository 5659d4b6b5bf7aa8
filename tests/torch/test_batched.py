"""Modules of one sample, as they are: what `Batched` computes is what they compute sample by sample."""

import copy
import threading

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import edbatch as eb
import edbatch.torch
from edbatch.torch import Batched
from tests.torch.networks import trees
from tests.torch.test_functions import compared

WORDS, SIZE, CLASSES = 12, 6, 3
FLOAT = {"dtype": torch.float64}


class TreeLSTM(nn.Module):
    """Child-sum-like, of binary trees, with linear layers for each gate."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, SIZE, **FLOAT)
        self.leaf = nn.Linear(SIZE, 2 * SIZE, **FLOAT)
        self.gates = nn.Linear(2 * SIZE, 5 * SIZE, **FLOAT)
        self.classify = nn.Sequential(nn.Linear(SIZE, SIZE, **FLOAT), nn.ReLU(), nn.Linear(SIZE, CLASSES, **FLOAT))

    def read(self, word):
        h, c = self.leaf(self.embed(torch.tensor(word))).chunk(2)
        return torch.tanh(h), c

    def compose(self, h1, c1, h2, c2):
        i, f, g, o, u = self.gates(torch.cat([h1, h2])).chunk(5)
        c = i.sigmoid() * u.tanh() + f.sigmoid() * c1 + torch.sigmoid(g) * c2
        return o.sigmoid() * torch.tanh(c), c

    def state(self, tree):
        if not isinstance(tree, tuple):
            return self.read(tree)
        return self.compose(*self.state(tree[0]), *self.state(tree[1]))

    def forward(self, tree):
        return self.classify(self.state(tree)[0])


class WithCells(TreeLSTM):
    @edbatch.torch.cell
    def compose(self, h1, c1, h2, c2):
        return super().compose(h1, c1, h2, c2)

    @edbatch.torch.cell
    def read(self, word):
        h, c = self.leaf(self.embed(word if not isinstance(word, int) else torch.tensor(word))).chunk(2)
        return torch.tanh(h), c


class Modules(nn.Module):
    """Chooses submodules by sample."""

    def __init__(self):
        super().__init__()
        self.finds = nn.ModuleDict({name: nn.Linear(SIZE, SIZE, **FLOAT) for name in "ab"})
        self.both = nn.Bilinear(SIZE, SIZE, SIZE, **FLOAT)
        self.norm = nn.LayerNorm(SIZE, **FLOAT)
        self.scale = nn.Parameter(torch.ones((), **FLOAT))
        self.register_buffer("start", torch.linspace(0, 1, SIZE, **FLOAT))

    def forward(self, program):
        stack = []
        for word in program:
            if word in self.finds:
                stack.append(F.gelu(self.finds[word](self.start if not stack else stack[-1])))
            else:
                stack.append(self.norm(self.both(stack.pop(), stack[-1]) + stack[-1]))
        total = 0
        for x in stack:
            total += x.norm() * self.scale
        return {"total": total, "stack": stack}


def rows(*lengths):
    torch.manual_seed(1)
    return [torch.randn(length, SIZE, **FLOAT) for length in lengths]


def both_losses(model, samples, module=None):
    """Losses and gradients of the samples together, ours and theirs."""
    found = []
    for scores in (module or Batched(model), lambda samples: [model(one) for one in samples]):
        model.zero_grad()
        loss = F.cross_entropy(torch.stack(scores(samples)), torch.arange(len(samples)) % CLASSES)
        loss.backward()
        found.append([loss.detach(), *[x.grad for x in model.parameters() if x.requires_grad]])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


STACKED = {
    "argmax": lambda self, h: h.argmax(),
    "comparison": lambda self, h: h > 0,
    "rows": lambda self, h: torch.stack([h, h * 2]),
    "tensor": lambda self, h: torch.ones(2),
    "some": lambda self, h: h if h.sum() > 0 else torch.zeros(4, **FLOAT),
}


@pytest.mark.parametrize(("name", "replay"), [*[(name, False) for name in STACKED], ("argmax", True), ("rows", True)])
def test_results_that_are_stacked(name, replay):
    model = Code(STACKED[name])
    found = Batched(model, stack=True, replay=replay)(POINTS)
    torch.testing.assert_close(found, torch.stack([model(x) for x in POINTS]))
    assert isinstance(Batched(Code(lambda self, h: h[h > 0]), stack=True)(POINTS), list)


def test_indices_that_are_put_together_are_not_read():
    module = Batched(Code(lambda self, h: (torch.stack([h.argmax(), h.argmin()]), torch.cat([h > 0, h < 0]))))
    module(POINTS * 20)
    assert module.last.report().batches < 12


def write_in_place(model):
    with torch.no_grad():
        model.gates.weight.mul_(1.5)


def replace_data(model):
    model.gates.weight.data = model.gates.weight.data * 1.5


def replace_parameter(model):
    model.gates.weight = nn.Parameter(model.gates.weight.detach() * 1.5)


def replace_module(model):
    model.gates = nn.Linear(2 * SIZE, 5 * SIZE, **FLOAT)


def load(model):
    model.load_state_dict({name: value * 1.5 for name, value in model.state_dict().items()})


def assign(model):
    model.load_state_dict({name: value * 1.5 for name, value in model.state_dict().items()}, assign=True)


def transpose(model):
    model.gates.weight.data = model.gates.weight.data.T.contiguous().T * 1.5


def share(model):
    model.classify[0].weight = model.classify[2].weight = nn.Parameter(torch.ones(SIZE, SIZE, **FLOAT))
    model.classify[2].bias = nn.Parameter(torch.ones(SIZE, **FLOAT))


def freeze(model):
    model.gates.weight.requires_grad_(False)


def from_vector(model):
    vector = nn.utils.parameters_to_vector(model.parameters())
    nn.utils.vector_to_parameters(vector.detach() * 1.5, model.parameters())


CHANGES = [
    write_in_place, replace_data, replace_parameter, replace_module, load, assign, transpose, share, freeze,
    from_vector,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_models_may_be_changed_between_calls(change):
    torch.manual_seed(0)
    model = WithCells()
    module = Batched(model)
    for seed in range(2):
        both_losses(model, trees(seed, 4), module)
        change(model)
        both_losses(model, trees(seed, 4), module)


def test_dtypes():
    model = TreeLSTM()
    module = Batched(model)
    both_losses(model, trees(0, 3), module)
    module.float()
    assert module(trees(0, 3))[0].dtype is torch.float32
    module.double()
    both_losses(model, trees(0, 3), module)


def test_without_gradients():
    model, samples = WithCells(), trees(0, 4)
    module = Batched(model)
    for block in (torch.no_grad, torch.inference_mode):
        with block():
            found = module(samples)
        assert not found[0].requires_grad
        torch.testing.assert_close(found, [model(one).detach() for one in samples])
    both_losses(model, samples, module)
    assert module([]) == []


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.drop = nn.Linear(50, 50), nn.Dropout(0.5)

    def forward(self, x):
        return self.step(x)

    @edbatch.torch.cell
    def step(self, x):
        return self.drop(self.layer(x))


def test_dropout_follows_torch_and_eval():
    module = Batched(Dropping())
    samples, found = [torch.ones(50)] * 3, []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(torch.stack(module(samples)))
    torch.testing.assert_close(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    assert not torch.equal(found[0][0], found[0][1])
    assert 0.3 < (found[0] == 0).double().mean() < 0.7
    module.eval()
    torch.testing.assert_close(module(samples)[0], module.model(samples[0]))
    module.train()
    assert (module(samples)[0] == 0).any()
    module.model.drop.p = 0.0
    torch.testing.assert_close(module(samples)[0], module.model(samples[0]))


def test_sparse_gradients_of_tables():
    model = TreeLSTM()
    model.embed.sparse = True
    module = Batched(model)
    (module([((1, 2), 1)])[0]).sum().backward()
    assert model.embed.weight.grad.is_sparse
    found = model.embed.weight.grad.to_dense()
    model.zero_grad()
    model(((1, 2), 1)).sum().backward()
    torch.testing.assert_close(found, model.embed.weight.grad.to_dense())


class Given(nn.Module):
    """Tensors of the samples, which require gradients, as arguments and inside."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(SIZE, SIZE, **FLOAT)
        self.beside = torch.ones(SIZE, **FLOAT).requires_grad_()

    def forward(self, x, ys):
        total = self.layer(x)
        for y in ys:
            total = total * y + self.beside * 2
        return total, x * 2


def test_gradients_flow_into_tensors_of_samples():
    model, found = Given(), []
    for module in (Batched(model), lambda *lists: [model(*one) for one in zip(*lists, strict=True)]):
        torch.manual_seed(0)
        below = nn.Linear(2, SIZE, **FLOAT)
        x = torch.randn(3, 2, **FLOAT).requires_grad_()
        xs = below(x)
        results = module(list(xs), [[xs[0], xs[1]], [], [xs[2]]])
        loss = sum(a.square().sum() + b.sum() for a, b in results)
        given = [x, model.beside, *model.parameters(), *below.parameters()]
        found.append(torch.autograd.grad(loss, given))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b)


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(SIZE, SIZE, **FLOAT)

    def forward(self, x, *, scale=2.0, mask=None, **more):
        h = self.layer(x) * scale * more.get("again", 1.0)
        return h if mask is None else h.masked_fill(mask, 0.0)


@pytest.mark.parametrize("replay", [False, True])
def test_arguments_by_name(replay):
    model, xs = Masked(), list(torch.randn(4, SIZE, **FLOAT))
    given = {"mask": [x > 0 for x in xs], "scale": [1.0, 2.0, 3.0, torch.tensor(4.0, **FLOAT)], "again": range(4)}
    module = Batched(model, stack=True, replay=replay)
    for names in ((), ("mask",), ("scale", "mask"), ("again", "scale")):
        some = {name: given[name] for name in names}
        wanted = [model(x, **{name: of[at] for name, of in some.items()}) for at, x in enumerate(xs)]
        for _ in range(2):
            torch.testing.assert_close(module(xs, **some), torch.stack(wanted))
            torch.testing.assert_close(module(**some, x=xs), torch.stack(wanted))
    for wrong, message in (
        ({"mask": True}, r"argument mask: expected a list of samples, got True; .* one value for all, use \[x\] \* n"),
        ({"scale": "mean"}, "argument scale: expected a list of samples, got 'mean'"),
        ({"again": {1: 2}}, "argument again: expected a list of samples"),
        ({"mask": [None]}, r"lists of equal lengths, got \[4, 1\]"),
    ):
        with pytest.raises(eb.EdBatchError, match=message):
            module(xs, **wrong)
    with pytest.raises(TypeError, match="'x'"):
        module(mask=given["mask"])


def test_threads():
    torch.manual_seed(0)
    shared, failures = Batched(WithCells()), []

    def run(number):
        try:
            own = WithCells() if number % 2 else TreeLSTM()
            module = Batched(own)
            for seed in range(4):
                samples = trees(10 * number + seed, 5)
                both_losses(own, samples, module)
                with torch.inference_mode():
                    torch.testing.assert_close(shared(samples), [shared.model(one) for one in samples])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


class Code(nn.Module):
    """A module whose `forward` is a function of a state and itself."""

    def __init__(self, function, size=4):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(size, size, **FLOAT)
        self.norm = nn.BatchNorm1d(size, **FLOAT)
        self.drop = nn.Dropout(0.5)
        self.table = nn.Embedding(5, size, max_norm=1.0, **FLOAT)
        self.plain = nn.Embedding(5, size, **FLOAT)
        self.function = function

    def forward(self, x):
        return self.function(self, self.layer(x))


POINTS = [torch.ones(4, **FLOAT), torch.arange(4.0, **FLOAT) - 2]


def without(h):
    with torch.no_grad():
        a = h * 2
        b = torch.tanh(h)
        c = h.sigmoid()
        d = h.max(0)[0] + h.topk(2).values[1] + sum(h.chunk(2)).sum() + h[0]
    return h * a + b + c * h * d


def added_in_place(h):
    total = h * 1
    same = total
    total += h
    total.mul_(2)
    kept = total.clone()
    total -= 1
    total **= 3
    return same, kept, F.relu(total, inplace=True), same * 1


@torch.no_grad()
def fixed(h):
    return h.exp()


RIGHT = {
    "branch": lambda self, h: h if h.sum() > 0 else -h,
    "truth of a value": lambda self, h: h if (h > 0).any() else h * 2,
    "item": lambda self, h: h * h.sum().item() + float(h[0]) + int(h[1] * 10),
    "index": lambda self, h: h[h.argmax()] + h[int(h.argmin())],
    "mask": lambda self, h: h[h > 0].sum() + h.masked_fill(h < 0, 0.5).sum(),
    "list": lambda self, h: sum(h.tolist()) + h,
    "no_grad": lambda self, h: without(h),
    "no_grad as a decorator": lambda self, h: h * fixed(h),
    "detach": lambda self, h: h * h.detach() + h.data,
    "requires_grad_": lambda self, h: h.detach().requires_grad_() * h,
    "in place": lambda self, h: added_in_place(h),
    "deviation": lambda self, h: h / h.std(),
    "extreme": lambda self, h: h.min(dim=0)[0] + h.max(0).values + h.min(0)[1],
    "size": lambda self, h: h.view(2, -1).size(1) * h.reshape(h.size(0), 1).expand(-1, 3) + len(h) + h.dim(),
    "new": lambda self, h: h.new_zeros(h.shape) + torch.zeros(h.size(), dtype=h.dtype, device=h.device) + h,
    "shape": lambda self, h: h if h.shape == torch.Size([4]) and h.shape[:-1] == () and h.ndim == 1 else None,
    "sum of a list": lambda self, h: sum([h, h, h]),
    "unpacked": lambda self, h: [x * at for at, x in enumerate(h)],
    "none": lambda self, h: h if h is not None and h != None else None,  # noqa: E711
    "text": lambda self, h: (float(f"{h.sum().item():.3f}"), h, None, 3, True),
    "weights": lambda self, h: (
        self.layer.weight.t() @ h + h @ self.layer.weight + self.layer.weight[1] * self.layer.bias
    ),
    "weights alone": lambda self, h: h + (self.layer.weight**2).sum() + torch.cat([self.layer.bias[:2]] * 2),
    "a tensor of its own": lambda self, h: torch.ones(3) * 2,
    "truth values": lambda self, h: (h > 0, h.argmax()),
    "slices of nothing": lambda self, h: [h[4:].sum() + h, torch.cat([h[:0], h]), h[[]], h.split([0, 4])[1], h[h > 99]],
    "rows that begin as none": lambda self, h: torch.cat(
        [torch.zeros(0, 4, **FLOAT), torch.cat([torch.tensor([]), h])[None]]
    ),
    "words of nothing": lambda self, h: (
        self.layer(self.plain(torch.tensor([], dtype=torch.long))).sum()
        + self.plain(torch.tensor([[]]).long()).sum()
        + h
    ),
    "loops over nothing": lambda self, h: [h, *h[9:], *[x.sum() for x in h.view(2, 2)[2:]]],
    "indices put together": lambda self, h: (torch.stack([h.argmax(), h.argmin()]), torch.cat([h > 0, h[:1] < 0])),
    "numbers of NumPy": lambda self, h: h * np.float64(2) + np.int64(1),
}


@pytest.mark.filterwarnings("ignore")  # PyTorch's, where a number is read
@pytest.mark.parametrize("name", RIGHT)
def test_what_modules_may_do(name):
    compared(Code(RIGHT[name]), POINTS)


def put(h):
    h = h * 1
    h[0] = 1.0
    return h


def through_a_view(h):
    first, _ = h.chunk(2)
    first += 1
    return h


def below_parts(h):
    h = h * 1
    first, *_ = h
    h += 1
    return first


def below_its_data(h):
    h = h * 1
    first = h.data
    h += 1
    return first


def below_a_view(h):
    h = h * 1
    first = h[:2]
    h += 1
    return first


def below_a_named_view(h):
    h = h * 1
    first = torch.unsqueeze(input=h, dim=0)
    h += 1
    return first


def into_a_tensor(h):
    total = torch.zeros(4, **FLOAT)
    total += h
    return total


def in_no_grad(h):
    h = h * 1
    with torch.no_grad():
        h += 1
    return h


def written_between(self, h):
    with torch.no_grad():
        self.layer.bias.copy_(torch.zeros(4))
    return h


def replaced(self, h):
    self.layer.bias = nn.Parameter(torch.zeros(4, **FLOAT))
    return h


def remembered(self, h):
    self.h = getattr(self, "h", h)
    return self.h * h


BOTH = torch.arange(4)
REFUSED = {
    "functional.unique .* reads its values": lambda self, h: torch.unique(h),
    "torch.Tensor.nonzero": lambda self, h: h.nonzero(),
    "dynamic shape": lambda self, h: h.index_put((h > 0,), h[:1]),
    "a result of .torch.float16": lambda self, h: h.sum(dtype=torch.float16),
    "torch.Tensor.index_add_ .*; write x = x.index_add": lambda self, h: torch.zeros(4, **FLOAT).index_add_(0, BOTH, h),
    "rounding has no gradient": lambda self, h: h // 2,
    r"x\[...\] = y": lambda self, h: put(h),
    "write x = f": lambda self, h: through_a_view(h),
    "the tensor has views": lambda self, h: below_a_view(h),
    "has views, or is one": lambda self, h: below_parts(h),
    "where the tensor has": lambda self, h: below_its_data(h),
    "has views, or is one, or is": lambda self, h: below_a_named_view(h),
    "tensors from outside cannot be written to": lambda self, h: into_a_tensor(h),
    r"in torch.no_grad\(\)": lambda self, h: in_no_grad(h),
    "torch.Tensor.zero_ .* write x = f": lambda self, h: h.zero_(),
    "backward": lambda self, h: h.sum().backward(),
    "gradients and hooks are those of": lambda self, h: h.grad,
    "torch.Tensor.requires_grad": lambda self, h: h if h.requires_grad else 0,
    "hooks are those of": lambda self, h: h.register_hook(print),
    "batch_norm in training": lambda self, h: self.norm(h[None]),
    "max_norm": lambda self, h: self.table(torch.tensor(1)) + h,
    r"to\(torch.float32\)": lambda self, h: h.to(torch.float32),
    "one dtype": lambda self, h: h.float(),
    "above 2 .. 24": lambda self, h: h.take(torch.tensor(2**24)),
    "Dimension out of range": lambda self, h: torch.logcumsumexp(h, 1),
    "expected as many axes": lambda self, h: torch.cat([h[0], h[1]]),
    "Got incorrect dims for mm": lambda self, h: torch.mm(h, h),
    "a condition of dtype": lambda self, h: torch.where(h, h, h),
    "requires_grad_": lambda self, h: h.requires_grad_(False),
    "torch.tanh with out=": lambda self, h: torch.tanh(h, out=h),
    "truth values is another": lambda self, h: (h * 1).gt_(0),
    "was written to, or replaced, while": written_between,
    "parameter 'layer.bias' was written to, or replaced": lambda self, h: replaced(self, h),
    "put what is computed in a list, and torch.stack": lambda self, h: torch.zeros(4, **FLOAT).copy_(h),
    "from_numpy.x.numpy... reads its values": lambda self, h: torch.multinomial(h.softmax(0), 1),
    "outside of torch.func": lambda self, h: torch.func.grad(lambda x: (h * x).sum())(torch.ones(4, **FLOAT)),
    "rrelu in training": lambda self, h: F.rrelu(h, training=True),
    "deepcopy": lambda self, h: copy.deepcopy(h),
    "an array|NumPy": lambda self, h: np.tanh(h),
    "a sample gave": lambda self, h: object(),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message):
    with pytest.raises(eb.EdBatchError, match=message):
        Batched(Code(REFUSED[message]))(POINTS)


ALSO_ERRORS_OF_PYTORCH = {
    "ambiguous": lambda self, h: h if h > 0 else 0,
    "0-d tensor": lambda self, h: [*h.sum()],
    "Dimension out of range": lambda self, h: h.sum(3),
    "out of bounds": lambda self, h: F.cross_entropy(torch.stack([h, h]), torch.tensor([7, 0])),
    "must match the existing size": lambda self, h: h.expand(3),
}


@pytest.mark.parametrize("message", ALSO_ERRORS_OF_PYTORCH)
def test_errors_of_pytorch(message):
    with pytest.raises((RuntimeError, TypeError, IndexError), match=message):
        Batched(Code(ALSO_ERRORS_OF_PYTORCH[message]))(POINTS)


def test_lazy_tensors_of_an_earlier_call():
    module = Batched(Code(remembered))
    module(POINTS)
    with pytest.raises(eb.EdBatchError, match=r"of an earlier call is used, perhaps of Code.h; .*returned, and given"):
        module(POINTS)


def test_what_is_refused_of_models():
    with pytest.raises(eb.EdBatchError, match=r"expected an nn.Module of one sample"):
        Batched(lambda x: x)
    model = Code(lambda self, h: h)
    module = Batched(model)
    for given, message in (((3,), "argument 1: expected a list of samples"), ((POINTS, POINTS[:1]), r"\[2, 1\]")):
        with pytest.raises(eb.EdBatchError, match=message):
            module(*given)
    with pytest.raises(eb.EdBatchError, match=r"torch.float64: expected torch.float32"):
        Batched(nn.Linear(4, 4))([POINTS[0].requires_grad_()])
    model.layer.float()
    with pytest.raises(eb.EdBatchError, match="expected one of float32 and float64 for all"):
        module(POINTS)
    with torch.autocast("cpu"), pytest.raises(eb.EdBatchError, match=r"torch.autocast is not supported"):
        module(POINTS)
    model.double()
    with pytest.raises(eb.EdBatchError, match="inside the forward of another Batched"):
        Batched(Code(lambda self, h: module([h])))(POINTS)
    kept = []
    Batched(Code(lambda self, h: kept.append(h) or h))(POINTS)
    with pytest.raises(eb.EdBatchError, match=r"outside of its module's call|graph"):
        _ = kept[0] + torch.ones(4, **FLOAT)


def test_what_cells_refuse():
    class Wrong(Code):
        @edbatch.torch.cell
        def read(self, h):
            return h if h.sum() > 0 else -h

        @edbatch.torch.cell
        def hidden(self, h):
            return h * self.given

        @edbatch.torch.cell
        def changing(self, h):
            h += 1
            return h

        @edbatch.torch.cell
        def constant(self, h):
            return h * torch.ones(4, **FLOAT)

        @edbatch.torch.cell
        def written(self, h):
            x = torch.ones(4, **FLOAT)
            x[0] = self.given[0]
            return h * x

        @edbatch.torch.cell
        def built(self, h):
            x = torch.zeros(4, **FLOAT)
            x[1:] = torch.arange(3.0)
            return h * x.masked_fill_(x > 1, 3.0)

        @edbatch.torch.cell
        def counting(self, h):
            self.calls = 1
            return h

        @edbatch.torch.cell
        def factor(self, h):
            return h * self.number

        @edbatch.torch.cell
        def labelled(self, h):
            return F.cross_entropy(h, self.given.long()[0])

        @edbatch.torch.cell
        def ignoring(self, h, label):
            return F.cross_entropy(h, label, None, None, 2)

        @edbatch.torch.cell
        def ignoring_logs(self, h, label):
            return F.nll_loss(h, label, ignore_index=1)

    for function, message in (
        (lambda self, h: self.read(h), "reads a value"),
        (lambda self, h: self.counting(h), "counting: it changes calls of its module, .* return the new value"),
        (
            lambda self, h: setattr(self, "number", h) or setattr(self, "number", float(h[0])) or self.factor(h),
            "cell .*factor reads self.number, which was .* when it was first called",
        ),
        (lambda self, h: self.ignoring(h, torch.tensor(2)), "cross_entropy with such arguments of a lazy tensor"),
        (lambda self, h: self.ignoring_logs(h, torch.tensor(2)), "nll_loss with such arguments"),
        (lambda self, h: self.hidden(h), "neither an argument nor a parameter"),
        (lambda self, h: self.changing(h), "cannot be written to"),
        (lambda self, h: self.written(h), "__setitem__ writes to a tensor in a cell"),
        (lambda self, h: self.labelled(h), "neither an argument nor a parameter"),
        (lambda self, h: self.read(h > 0), "expected tensors of floats"),
    ):
        model = Wrong(function)
        model.given = torch.ones(4, **FLOAT)
        with pytest.raises(eb.EdBatchError, match=message):
            Batched(model)(POINTS)
    compared(Wrong(lambda self, h: self.constant(h)), POINTS)
    compared(Wrong(lambda self, h: self.built(h)), POINTS)
    with pytest.raises(eb.EdBatchError, match="expected a function or a method"):
        edbatch.torch.cell(nn.Linear(2, 2))


def test_cells_are_kept_where_calls_leave_their_tensors():
    traced = []

    class Leaves(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(SIZE, SIZE, **FLOAT)
            self.states, self.last = [], None

        @edbatch.torch.cell
        def step(self, h):
            traced.append(1)
            return self.layer(h).tanh()

        def forward(self, x):
            self.states = [(x, torch.tensor([1]))]
            for _ in range(3):
                self.last = self.step(self.states[-1][0])
                self.states.append((self.last, torch.tensor([1])))
            return self.last

    module = Batched(Leaves())
    counts = []
    for seed in range(4):
        torch.manual_seed(seed)
        module(list(torch.randn(seed + 1, SIZE, **FLOAT)))
        counts.append(len(traced))
    assert counts[1] == counts[-1] < 2 * counts[0] + 1


def test_what_cells_were_given_is_not_written_to():
    class Same(Code):
        @edbatch.torch.cell
        def same(self, h):
            return h, {"half": h * 0.5}

    def written(at):
        def function(self, h):
            h = h * 1
            known = [h, self.same(h)[0]]
            known[at] += 1
            return known

        return function

    for at in range(2):
        with pytest.raises(eb.EdBatchError, match="or is of a cell, of a lazy tensor is not supported; write x = f"):
            Batched(Same(written(at)))(POINTS)
    compared(Same(lambda self, h: self.same(h)), POINTS)


class Halving(nn.Module):
    """Goes on until values are small, which each sample finds out by itself."""

    def __init__(self, has_parameter):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(SIZE, SIZE, **FLOAT)
        self.scale = nn.Parameter(torch.tensor(0.5, **FLOAT)) if has_parameter else 0.5

    async def forward(self, x):
        h, steps = self.layer(x), 0
        while await (h.abs().sum() > 0.5):
            h, steps = torch.tanh(h) * self.scale, steps + 1
        assert (await h).shape == h.shape
        return h * int(await h.argmax()), steps


@pytest.mark.parametrize("has_parameter", [False, True])
def test_coroutines_wait_for_one_another(has_parameter):
    model = Halving(has_parameter)
    samples = list(torch.randn(12, SIZE, **FLOAT) * torch.arange(12, **FLOAT)[:, None])
    module = Batched(model)
    ours = module(samples)
    report = module.last.report()
    sum(x.sum() for x, _ in ours).backward()
    found = [x.grad.clone() for x in model.parameters()]
    model.zero_grad()
    most, total = 0, 0.0
    for (x, steps), sample in zip(ours, samples, strict=True):
        h, count = model.layer(sample), 0
        while h.abs().sum() > 0.5:
            h, count = torch.tanh(h) * model.scale, count + 1
        h = h * h.argmax()
        torch.testing.assert_close(x, h)
        assert steps == count
        most, total = max(most, count), total + h.sum()
    total.backward()
    torch.testing.assert_close(found, [x.grad for x in model.parameters()])
    assert report.batches < 6 * (most + 3)


def test_what_coroutines_may_not_do():
    class Stopped(Halving):
        async def forward(self, x):
            with torch.no_grad():
                return await self.layer(x)

    class Failing(Halving):
        async def forward(self, x):
            return 1 / float(await self.layer(x).sum() * 0)

    with pytest.raises(eb.EdBatchError, match=r"await inside of torch.no_grad\(\), which would apply to other samples"):
        Batched(Stopped(True))(POINTS_OF_SIZE)
    with pytest.raises(ZeroDivisionError):
        Batched(Failing(True))(POINTS_OF_SIZE)


POINTS_OF_SIZE = list(torch.ones(3, SIZE, **FLOAT))
