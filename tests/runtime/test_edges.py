"""Whether, and how much, gradient flows is said of an edge: of one operand of one node, whatever shares its batch.

Every op and every cell reads values stopped, scaled and as they are in one batch. What must come out is the sum, over
the edges, of their factor times a derivative that finite differences of the float64 oracle give.
"""

from itertools import chain

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.op import no_gradient
from tests.arrays import on_host
from tests.gradients import numeric
from tests.graph.nodes import added, chosen, shapes_of
from tests.graph.test_ops import CASES, draw, one_of_each
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


@pytest.mark.parametrize(("op", "sample"), one_of_each(CASES, 0))
def test_edges_into_every_op(op, sample):
    how = ("nodes", "inside")[len(op.name) % 2]
    total, wants = mixed(op, sample, how, "sufficient", "float64")
    total.backward()
    for parameter, want in wants:
        np.testing.assert_allclose(on_host(parameter.grad()), want, rtol=1e-6, atol=1e-7, err_msg=how)
