"""Gradients that meet through different views of one value are those of PyTorch."""

import numpy as np
import pytest

import edbatch as eb

torch = pytest.importorskip("torch")
SHAPES = [(), (1,), (4,), (6,), (1, 1), (1, 4), (4, 1), (2, 2), (3, 3), (2, 3), (2, 2, 2), (1, 3, 1), (2, 1, 3)]


def random_view(random, shape):
    """A view of an array of a shape: a name, and what it takes."""
    size, ndim = int(np.prod(shape)), len(shape)
    kinds = ["reshape", "unsqueeze", *(["transpose", "flip", "index"] if ndim else [])]
    kind = random.choice(kinds)
    if kind == "reshape":
        first = random.choice([n for n in range(1, size + 1) if size % n == 0])
        fitting = [(size,), (int(first), size // int(first)), (1, size), (size, 1)]
        return kind, fitting[random.integers(4)]
    if kind == "transpose":
        return kind, tuple(map(int, random.permutation(ndim)))
    if kind == "index":
        axis = random.integers(ndim)
        at = int(random.integers(shape[axis]))
        return kind, (int(axis), *[(at, None, None), (0, at + 1, 1), (0, None, 2)][random.integers(3)])
    return kind, int(random.integers(ndim + (kind == "unsqueeze")))


def random_views(random, shape):
    """Up to three views, one of another, of an array of a shape."""
    found = []
    x = torch.zeros(shape)
    for _ in range(random.integers(4)):
        found.append(random_view(random, tuple(x.shape)))
        x = seen(x, found[-1:])
    return found


def seen(x, views):
    """An expression, or an array of PyTorch, through views."""
    for kind, given in views:
        if kind == "index":
            axis, start, stop, step = given
            x = x[(*[slice(None)] * axis, start if step is None else slice(start, stop, step))]
            continue
        if isinstance(x, torch.Tensor):
            calls = {"transpose": x.permute, "flip": lambda axis, x=x: x.flip((axis,))}
            x = {**calls, "reshape": x.reshape, "unsqueeze": x.unsqueeze}[kind](given)
        else:
            x = getattr(eb, kind)(x, given)
    return x


def losses(shown, weights, total):
    """What depends on every entry of every view differently."""
    parts = [(x * (x * w) * x).sum() for x, w in zip(shown, weights, strict=True)]
    parts += [(x * w).sum() for x, w in zip(shown, weights, strict=True)]
    return total(parts)


class Case:
    """One value of which several views are read, and the gradients that PyTorch finds.

    Attributes:
        value, views, weights: the value, the chains of views of it, and numbers of their shapes.
        wanted: (gradient of the value where the views are of it, where they are of its tanh).
    """

    def __init__(self, seed, shape=None, views=None):
        random = np.random.default_rng(seed)
        if shape is None:
            shape = SHAPES[random.integers(len(SHAPES))]
            views = [random_views(random, shape) for _ in range(random.integers(2, 5))]
        self.value, self.views = random.standard_normal(shape).astype(np.float32), views
        x = torch.tensor(self.value)
        self.weights = [random.standard_normal(tuple(seen(x, views).shape)).astype(np.float32) for views in self.views]
        self.wanted = tuple(self._torch(function) for function in (lambda x: x * 1, torch.tanh))

    def _torch(self, function):
        x = torch.tensor(self.value.astype(np.float64), requires_grad=True)
        made = function(x)
        weights = [torch.tensor(w.astype(np.float64)) for w in self.weights]
        losses([seen(made, views) for views in self.views], weights, sum).backward()
        return x.grad.numpy()

    def shown(self, x):
        return [seen(x, views) for views in self.views]

    def loss(self, shown):
        return losses(shown, [eb.input(w) for w in self.weights], eb.sum)

    def compare(self, found, wanted):
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-4, err_msg=repr((self.value.shape, self.views)))


def run_outside(case):
    """Views of an input, of what is computed of it, and of a parameter."""
    model = eb.ParameterCollection(seed=0)
    with eb.Graph() as graph:
        for at, function in enumerate((lambda x: x, eb.tanh)):
            x = eb.input(case.value)
            graph.backward(case.loss(case.shown(function(x))))
            case.compare(x.gradient(), case.wanted[at])
    if case.value.ndim:
        p = model.add_parameters(case.value.shape, init=case.value)
        with eb.Graph() as graph:
            graph.backward(case.loss(case.shown(p)))
            case.compare(p.grad(), case.wanted[0])


def run_read_in_a_cell(case):
    """The views are read where they are made: of an argument, of a result, of a parameter."""
    for at, function in enumerate((lambda x: x, eb.tanh)):
        cell = eb.cell(lambda x, *weights, f=function: losses(case.shown(f(x)), weights, eb.sum))
        with eb.Graph() as graph:
            x = eb.input(case.value)
            graph.backward(cell(x, *map(eb.input, case.weights)))
            case.compare(x.gradient(), case.wanted[at])
    if case.value.ndim:
        p = eb.ParameterCollection(seed=0).add_parameters(case.value.shape, init=case.value)
        with eb.Graph() as graph:
            cell = eb.cell(lambda *weights: losses(case.shown(p), weights, eb.sum))
            graph.backward(cell(*map(eb.input, case.weights)))
            case.compare(p.grad(), case.wanted[0])


def run_returned(case):
    """A cell returns the views, of its argument and of what it computes, and the value itself."""
    for at, function in enumerate((lambda x: x, eb.tanh)):

        def call(x, f=function):
            made = f(x)
            return (*case.shown(made), made)

        cell = eb.cell(call)
        with eb.Graph() as graph:
            x = eb.input(case.value)
            *shown, made = cell(x)
            graph.backward(case.loss(shown))
            case.compare(x.gradient(), case.wanted[at])
            if at == 0:
                case.compare(made.gradient(), case.wanted[0])
            for x, views in zip(shown, case.views, strict=True):  # each shows what flows to all, if it is no copy
                if all(kind not in ("reshape", "unsqueeze") for kind, _ in views[1:]):
                    wanted = seen(torch.tensor(made.gradient()), views)
                    np.testing.assert_array_equal(x.gradient(), wanted.numpy())


@pytest.mark.parametrize("run", [run_outside, run_read_in_a_cell, run_returned])
def test_gradients_meet_through_random_views(run):
    for seed in range(10):
        run(Case(seed))


ROWS, COLUMNS = ("reshape", (2, 3)), ("reshape", (3, 2))


@pytest.mark.parametrize("run", [run_outside, run_read_in_a_cell, run_returned])
@pytest.mark.parametrize(
    ("shape", "views"),
    [
        ((6,), [[ROWS], [COLUMNS]]),
        ((4,), [[("unsqueeze", 0)], [("unsqueeze", 0)], [("unsqueeze", 0), ("transpose", (1, 0))]]),
        ((2, 3), [[], [("transpose", (1, 0))], [COLUMNS], [("transpose", (1, 0)), ROWS]]),
        ((3, 3), [[], [("transpose", (1, 0))], [("flip", 0)], [("transpose", (1, 0)), ("flip", 0)]]),
        ((1, 4), [[("transpose", (1, 0))], [], [("reshape", (4,))], [("reshape", (2, 2))]]),
        ((12,), [[("index", (0, 6, 12, 1)), ROWS], [("index", (0, 6, 12, 1)), COLUMNS], [("index", (0, 0, 6, 1))]]),
    ],
)  # fmt: skip
def test_views_of_the_same_entries_in_other_shapes(run, shape, views):
    run(Case(0, shape, views))
