"""Foreign ops: functions on whole arrays compute what the same written with EdBatch's ops does, wherever they stand."""

from itertools import cycle

import numpy as np
import pytest

import edbatch as eb
from edbatch.policy.heuristics import RULES

DIM, STEPS = 4, 16  # of a fixed point, to the last bits
WAVES = np.arange(DIM // 2 + 1)[:, None] * np.arange(DIM) * 2 * np.pi / DIM


@eb.foreign(out=lambda x: x)
def ordered(x):
    return np.sort(x, axis=-1)


@ordered.gradient
def ordered_gradient(gradient, x, result):
    return np.take_along_axis(gradient, np.argsort(np.argsort(x, axis=-1), axis=-1), axis=-1)


@eb.foreign(out=lambda x: (x[0] // 2 + 1,))
def spectrum(x):
    return np.square(np.abs(np.fft.rfft(x))).astype(x.dtype)


@spectrum.gradient
def spectrum_gradient(gradient, x, result):
    n = x.shape[-1]
    return (2 * n * np.real(np.fft.ifft(np.fft.rfft(x) * gradient, n))).astype(x.dtype)


@eb.foreign(out=lambda x, y, scale: x)
def settled(x, y, scale=0.125):
    """The z at which z = scale * tanh(z + y) + x."""
    z = x
    for _ in range(STEPS):
        z = scale * np.tanh(z + y) + x
    return z


@settled.gradient
def settled_gradient(gradient, x, y, result, scale):
    slope = scale * (1 - np.square(np.tanh(result + y)))
    to_x = gradient / (1 - slope)
    return to_x, to_x * slope


def of_foreign(h, left, U):
    return settled(ordered(h), left) + eb.tanh(U @ spectrum(h)) + settled(left, h, scale=0.0625)


def settled_by_ops(x, y, scale):
    z = x
    for _ in range(STEPS):
        z = scale * eb.tanh(z + y) + x
    return z


def of_ops(h, left, U):
    powers = eb.square(eb.matmul(np.cos(WAVES), h)) + eb.square(eb.matmul(np.sin(WAVES), h))
    return settled_by_ops(-eb.top_k(-h, DIM)[0], left, 0.125) + eb.tanh(U @ powers) + settled_by_ops(left, h, 0.0625)


TREES = 0, (1, 2), ((3, 4), 5), ((6, 7), (8, 9)), (10, (11, (12, 13)))
LEAVES = np.random.default_rng(1).normal(size=(14, DIM))


def of_trees(how, of_node, dtype="float32", policy="critical-path"):
    """A loss, the gradients of parameters and leaves of networks over trees, and the report."""
    model = eb.ParameterCollection(seed=0, dtype=dtype)
    W, b, U = (model.add_parameters(shape) for shape in ((DIM, DIM), DIM, (DIM, DIM // 2 + 1)))

    def node(left, right):
        return of_node(eb.tanh(W @ (left - right) + b), left, U)

    made = eb.cell(node) if how == "cell" else node

    def walk(tree, leaves):
        return leaves[tree] if isinstance(tree, int) else made(*(walk(part, leaves) for part in tree))

    async def program(tree, leaves):
        if isinstance(tree, int):
            return leaves[tree]
        found = node(*(await eb.all(*(program(part, leaves) for part in tree))))
        assert np.isfinite(await eb.sum(found))
        return found

    @eb.vertex
    def leaf(v):
        v.scatter(v.pull())

    @eb.vertex
    def inner(v):
        v.scatter(node(v.gather(0), v.gather(1)))

    kept = eb.replay(lambda tree, leaves: walk(tree, leaves))
    for _ in range(3 if how == "replay" else 1):
        model.zero_grad()
        with eb.Graph(policy=policy, dtype=dtype) as graph:
            given = eb.array(LEAVES)
            leaves = list(given)
            if how == "vertices":
                structure, _ = eb.InputGraph.of_tuples(TREES)
                roots = list(eb.vertex(leaf, inner)(structure, given, None).scattered[structure.roots])
            elif how == "coroutines":
                roots = eb.run(program(tree, leaves) for tree in TREES)
            else:
                roots = [(kept if how == "replay" else walk)(tree, leaves) for tree in TREES]
            loss = eb.sum([eb.sum(eb.square(root)) for root in roots])
        if how == "grown":
            roots[-1].value()
            with graph:
                loss = loss + eb.sum(ordered(roots[1]) if of_node is of_foreign else -eb.top_k(-roots[1], DIM)[0])
        loss.backward()
        if how == "twice":
            model.zero_grad()
            loss.backward()
    return [loss.value(), given.gradient(), *(p.grad() for p in model)], graph.report()


HOW = ["by op", "cell", "vertices", "replay", "coroutines", "grown", "twice"]


@pytest.mark.parametrize(("how", "dtype"), [*zip(HOW, cycle(["float64", "float32"]), strict=False)])
def test_as_by_ops(how, dtype):
    got, want = (of_trees(how, of_node, dtype)[0] for of_node in (of_foreign, of_ops))
    for mine, other in zip(got, want, strict=True):
        assert mine.dtype == dtype
        unit = 1 if dtype == "float32" else 1e-8
        np.testing.assert_allclose(mine, other, rtol=1e-4 * unit, atol=2e-5 * unit)


@pytest.mark.parametrize("policy", RULES)
def test_policies(policy):
    got, want = (of_trees("by op", of_foreign, "float64", rule)[0] for rule in (policy, "critical-path"))
    for mine, other in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_on_gpu(cuda, dtype):
    def of_node(h, left, U):  # an emulated GPU has neither FFT nor sort
        return settled(h, left) + eb.tanh(U @ h[:3]) + settled(left, h, scale=0.0625)

    for how in ("by op", "cell", "replay"):
        want = of_trees(how, of_node, dtype)[0]
        with cuda:
            got = of_trees(how, of_node, dtype)[0]
        for mine, other in zip(got, want, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-5)
    assert not cuda.backend.recordings.recorded  # a recording would run without the functions


def counted(differentiable=True):
    """An op that notes the calls of its functions."""
    calls = []

    @eb.foreign(out=lambda x: x, differentiable=differentiable)
    def doubled(x):
        calls.append(("forward", len(x)))
        return x + x

    @doubled.gradient
    def doubled_gradient(gradient, x, result):
        calls.append(("back", len(x)))
        np.testing.assert_array_equal(result, x + x)
        return gradient + gradient

    return doubled, calls


@pytest.mark.parametrize(
    ("in_cell", "options", "read"),
    [(False, {}, True), (True, {}, False), (True, {"recompute": True}, True), (True, {"compile": "plain"}, True)],
)
def test_called_once_for_each_batch(in_cell, options, read):
    """Whatever sample its nodes are of; not again by the way back; with the nodes alone that gradients flow through."""
    doubled, calls = counted()
    w = eb.ParameterCollection(seed=0).add_parameters(3, init=1.0)

    def step(x):
        a, b = doubled(w * x), doubled(eb.tanh(x))
        return a * b

    step = eb.cell(step) if in_cell else step
    with eb.options(**options):
        with eb.Graph(policy="critical-path") as graph:
            xs = [eb.input(np.full(3, n)) for n in range(40)]
            ys = [step(x) for x in xs]
            loss = eb.sum([eb.sum(y) for y in ys[:30]])
        if read:
            graph.run()
        loss.backward()
    times = 2 if in_cell else 1
    assert calls == [("forward", 80 // times)] * times + [("back", 30)]  # none leads to a parameter by the other
    assert in_cell or "doubled([3])" in str(graph.report().by_type())
    n = np.arange(30.0)
    np.testing.assert_allclose(w.grad(), np.full(3, 4 * (n * np.tanh(n)).sum()), rtol=1e-5)
    assert xs[1].gradient()[0] == pytest.approx(4 * (np.tanh(1) + (1 - np.tanh(1) ** 2)), rel=1e-5)
