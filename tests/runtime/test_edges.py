"""Whether, and how much, gradient flows is said of an edge: of one operand of one node, whatever shares its batch.

Every op and every cell reads values stopped, scaled and as they are in one batch. What must come out is the sum, over
the edges, of their factor times a derivative that finite differences of the float64 oracle give.
"""

from itertools import chain
from operator import getitem

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.op import no_gradient
from tests.arrays import on_host
from tests.gradients import numeric
from tests.graph.nodes import added, chosen, shapes_of
from tests.graph.test_ops import CASES, draw
from tests.oracle import ORACLE

pytestmark = pytest.mark.filterwarnings("ignore:backward. no parameter got a gradient")

# How an edge reads a value, and what part of the gradient flows through it.
EDGES = [
    (lambda x: x, 1.0),
    (eb.stop_gradient, 0.0),
    (lambda x: eb.scale_gradient(x, -0.5), -0.5),
    (lambda x: eb.stop_gradient(eb.reshape(x, (1, *x.shape)))[0], 0.0),  # views of what is stopped, of views
    (lambda x: eb.scale_gradient(eb.scale_gradient(x, 3.0), 2.0), 6.0),
]
CALLS, SOURCES = 7, 2


def mixed(op, sample, how, policy, dtype):
    """Calls of an op that read few values through different edges: the loss, the parameters, what they must get.

    Args:
        how: "nodes"; "arguments": of a cell; "inside": the edges are within a cell, which has one for each mixture.
    """
    random = np.random.default_rng(5)
    attributes = dict(sample.attributes)
    shapes = shapes_of(op, sample)
    values = [[draw(random, s, sample) + 0.007 * at for _ in range(SOURCES)] for at, s in enumerate(shapes)]
    model = eb.ParameterCollection(dtype=dtype)
    sources = [[model.add_parameters(v.shape, init=v) for v in column] for column in values]
    wants = [[np.zeros(v.shape) for v in column] for column in values]
    terms = []
    cells = {}

    def cell_of(edges, number):
        key = edges if how == "inside" else number
        if key not in cells:
            inner = edges if how == "inside" else [0] * number

            @eb.cell
            def function(*given):
                xs = [EDGES[edge][0](x) for edge, x in zip(inner, given[:number], strict=True)]
                integers = [x.used_in(n, "integer") for x, n in zip(given[number:], sample.payload, strict=True)]
                return added(op, tuple(attributes.items()), xs, integers)

            cells[key] = function
        return cells[key]

    with eb.Graph(policy=policy, dtype=dtype):
        for call in range(CALLS):
            slots = chosen(op, sample, call)
            number = len(slots)
            sourced = [int(random.integers(SOURCES)) for _ in slots]
            edges = tuple((call + 2 * slot) % len(EDGES) for slot in range(number))
            integers = [int(random.integers(bound)) for bound in sample.payload]
            xs = [eb.parameter(sources[slot][which]) for slot, which in zip(slots, sourced, strict=True)]
            if how != "inside":
                xs = [EDGES[edge][0](x) for edge, x in zip(edges, xs, strict=True)]
            y = (
                added(op, tuple(attributes.items()), xs, integers)
                if how == "nodes"
                else cell_of(edges, number)(*xs, *integers)
            )
            weights = random.uniform(0.5, 1.5, y.shape)
            terms.append(eb.sum(y * eb.input(weights)))
            given = [values[slot][which] for slot, which in zip(slots, sourced, strict=True)]
            for slot, (at, which, edge) in enumerate(zip(slots, sourced, edges, strict=True)):

                def loss(value, slot=slot, given=given, integers=integers, weights=weights):
                    operands = [*given[:slot], value, *given[slot + 1 :]]
                    return np.sum(weights * ORACLE[op.name](*operands, *integers, **attributes))

                factor = EDGES[edge][1]
                if factor and op.gradient is not no_gradient:
                    own = attributes["scale"] if op.name == "scale_gradient" else 1.0
                    wants[at][which] += factor * own * numeric(loss, given[slot])
        total = eb.sum(terms)
    return total, [*zip(chain(*sources), chain(*wants), strict=True)]


def check(op, sample, how, policy, dtype, rtol, atol):
    total, wants = mixed(op, sample, how, policy, dtype)
    total.backward()
    for parameter, want in wants:
        np.testing.assert_allclose(on_host(parameter.grad()), want, rtol=rtol, atol=atol, err_msg=f"{how} {policy}")


@pytest.mark.parametrize(("dtype", "rtol", "atol"), [("float32", 2e-4, 2e-5), ("float64", 1e-6, 1e-7)])
@pytest.mark.parametrize(("op", "sample"), CASES)
def test_edges_into_every_op(op, sample, dtype, rtol, atol):
    for policy in ("sufficient", "none"):
        check(op, sample, "nodes", policy, dtype, rtol, atol)


@pytest.mark.parametrize(("dtype", "rtol", "atol"), [("float32", 2e-4, 2e-5), ("float64", 1e-6, 1e-7)])
@pytest.mark.parametrize(("op", "sample"), CASES)
def test_edges_into_cells(op, sample, dtype, rtol, atol):
    for how in ("arguments", "inside"):
        check(op, sample, how, "sufficient", dtype, rtol, atol)


def test_stopped_operands_side_by_side_in_a_cell():
    """Batches of a body are merged where their operands lie side by side, stopped or not."""
    random = np.random.default_rng(3)
    values = random.uniform(-1, 1, 12)
    model = eb.ParameterCollection(dtype="float64")
    for stopped in ((0,), (1,), (0, 1), (0, 2), (0, 1, 2)):

        def function(x, stopped=stopped):
            a, b, c = [
                eb.stop_gradient(part) if number in stopped else part for number, part in enumerate(eb.split(x, 3))
            ]
            return eb.tanh(a) * eb.exp(b), eb.tanh(b) + eb.concatenate([eb.exp(c), eb.sigmoid(a)])[2:6], eb.tanh(c)

        p = model.add_parameters(12, init=values)
        for call in (function, eb.cell(function)):
            with eb.Graph(dtype="float64"):
                loss = eb.sum([eb.sum(y) for y in call(eb.parameter(p))])
            loss.backward()
            parts = values.reshape(3, 4)
            a, b, c = parts
            s = 1 / (1 + np.exp(-a))
            flat = np.zeros(4)
            flat[:2] = (s * (1 - s))[:2]
            wants = [(1 - np.tanh(a) ** 2) * np.exp(b) + flat, np.tanh(a) * np.exp(b) + 1 - np.tanh(b) ** 2]
            wants += [1 - np.tanh(c) ** 2 + np.where(np.arange(4) >= 2, np.exp(c), 0)]
            for number in stopped:
                wants[number] = np.zeros(4)
            np.testing.assert_allclose(on_host(p.grad()), np.concatenate(wants), rtol=1e-9, err_msg=f"{stopped}")
            p.zero_grad()


def test_a_cell_that_returns_what_is_stopped():
    model = eb.ParameterCollection(seed=0)
    W = model.add_parameters((4, 4))

    def function(x):
        h = eb.tanh(W @ x)
        return eb.stop_gradient(h), h, eb.stop_gradient(h)[1:3]

    for policy in ("sufficient", "none", None):
        grads = []
        for call in (function, eb.cell(function)):
            model.zero_grad()
            with eb.Graph(policy=policy):
                x = eb.input([0.1, 0.2, -0.3, 0.4])
                stopped, h, part = call(x)
                again, _, _ = call(stopped)
                loss = eb.sum(stopped * 5 + h * 2) + eb.sum(part) + eb.sum(again)
            loss.backward()
            h_values = h.value()
            want = W.value().T @ (2 * (1 - h_values**2))
            np.testing.assert_allclose(x.gradient(), want, rtol=1e-5)
            grads.append(on_host(W.grad()).copy())
        np.testing.assert_allclose(*grads, rtol=1e-5)


def losses(lib, sg, dot, pick, codes):
    """Losses that read one value stopped and not, of NumPy-like functions: straight-through, actor and critic."""

    def vq_vae(encoded, decoder, nearest: int, target):
        z = lib.tanh(encoded)
        e = pick(codes, nearest)
        quantized = z + sg(e - z)
        reconstructed = decoder @ quantized
        return [
            dot(reconstructed - target, reconstructed - target),
            dot(sg(z) - e, sg(z) - e),
            dot(z - sg(e), z - sg(e)) * 0.25,
        ]

    def actor_critic(state, actor, critic, action: int, reward, following):
        value, after = dot(critic, lib.tanh(state)), dot(critic, lib.tanh(following))
        advantage = reward + sg(after) * 0.9 - value
        scores = actor @ lib.tanh(state)
        log_probability = pick(scores, action) - lib.logsumexp(scores, 0)
        return [log_probability * sg(advantage) * -1.0, advantage * advantage * 0.5]

    return vq_vae, actor_critic


@pytest.mark.parametrize("policy", ["sufficient", "agenda", "none", None])
def test_straight_through_and_actor_critic(policy):
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(0)
    shapes = {"W": (4, 3), "decoder": (3, 4), "codes": (5, 4), "U": (4, 3), "actor": (2, 4), "critic": (4,)}
    given = {name: random.uniform(-0.7, 0.7, shape).astype(np.float32) for name, shape in shapes.items()}
    samples = [
        (random.uniform(-1, 1, 3).astype(np.float32), random.uniform(-1, 1, 3).astype(np.float32), i)
        for i in (3, 0, 3, 1, 4, 2)
    ]

    def total(lib, sg, dot, pick, p, put):
        vq_vae, actor_critic = losses(lib, sg, dot, pick, p["codes"])
        if lib is eb:
            vq_vae, actor_critic = eb.cell(vq_vae), eb.cell(actor_critic)
        for x, y, i in samples:
            x, y = put(x), put(y)
            yield from vq_vae(p["W"] @ x, p["decoder"], i, y)
            yield from actor_critic(p["U"] @ x, p["actor"], p["critic"], i % 2, 0.1 * i, p["U"] @ y)

    parameters = {name: torch.tensor(x, requires_grad=True) for name, x in given.items()}
    sum(total(torch, lambda x: x.detach(), torch.dot, getitem, parameters, torch.tensor)).backward()
    model = eb.ParameterCollection()
    ours = {name: model.add_parameters(x.shape, name=name, init=x) for name, x in given.items() if name != "codes"}
    ours["codes"] = model.add_lookup_parameters(shapes["codes"], name="codes", init=given["codes"])

    def pick(x, i):
        return eb.lookup(x, i) if isinstance(x, eb.LookupParameters) else eb.pick(x, i)

    for cells in (True, False):
        model.zero_grad()
        with eb.options(cells=cells), eb.Graph(policy=policy):
            eb.sum(list(total(eb, eb.stop_gradient, eb.dot, pick, ours, eb.input))).backward()
        for name, parameter in ours.items():
            want = parameters[name].grad.numpy()
            np.testing.assert_allclose(on_host(parameter.grad()), want, rtol=1e-4, atol=1e-5, err_msg=name)
