"""Which types differ in sizes alone."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.node_type import node_type
from edbatch.graph.op import OPS
from edbatch.graph.spec import spec_of
from edbatch.runtime.compile.structure import structure_of

FLOAT, DOUBLE = np.dtype("float32"), np.dtype("float64")


def type_of(op, *shapes, dtype=FLOAT, **attributes):
    return node_type(OPS[op], tuple(attributes.items()), tuple(spec_of(shape, dtype) for shape in shapes))


def structure(*given, **named):
    return structure_of(type_of(*given, **named)).structure


def test_one_structure():
    assert structure("add", (5, 7), (5, 7)) is structure("add", (11, 3), (11, 3))
    assert structure("sum", (5, 7), axes=(0,), keepdims=False) is structure("sum", (9, 7), axes=(0,), keepdims=False)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (type_of("add", (5, 7), (5, 7)), type_of("add", (5, 7), (7,))),
        (type_of("add", (5, 7), (5, 7)), type_of("add", (7, 7), (7, 7))),
        (type_of("add", (5, 7), (5, 7)), type_of("add", (14, 7), (14, 7))),
        (type_of("add", (5, 7), (5, 7)), type_of("add", (1, 7), (1, 7))),
        (type_of("add", (5, 7), (5, 7)), type_of("add", (5, 7), (5, 7), dtype=DOUBLE)),
        (type_of("add", (5, 7), (5, 7)), type_of("subtract", (5, 7), (5, 7))),
        (type_of("elu", (5,), alpha=1.0), type_of("elu", (5,), alpha=2.0)),
        (type_of("softmax", (5, 7), axis=0), type_of("softmax", (5, 7), axis=1)),
    ],
)
def test_others(a, b):
    assert structure_of(a).structure is not structure_of(b).structure


def test_parameters_are_no_sizes():
    model = eb.ParameterCollection()
    W, V = model.add_parameters((7, 3)), model.add_parameters((7, 3))

    def of_product(n, parameter):
        with eb.Graph() as graph:
            return structure_of(graph.type_of(eb.zeros((n, 7)) @ parameter)).structure

    assert of_product(5, W) is of_product(11, W)
    assert of_product(5, W) is not of_product(5, V)
    assert of_product(5, W) is not of_product(6, W)  # which 3 divides


def test_a_type_of_other_sizes():
    found = structure_of(type_of("softmax", (5, 7), axis=1))
    assert found.sizes == (5, 7)
    further = found.structure.type((22, 9))
    assert further.out is spec_of((22, 9), FLOAT)
    assert further.attributes == (("axis", 1),)
    assert found.structure.type((21, 7)) is None  # of another structure
    assert found.structure.type((2**13 + 1, 2**13)) is None  # too many entries


def test_very_many_sizes():
    """To look which divide which, and products of them, would take all memory."""

    @eb.cell
    def cell(x):
        return sum(x[0, 0, 0, i : i + 2] * i for i in range(200))

    def found(n):
        with eb.Graph() as graph:
            return structure_of(graph.type_of(cell(eb.zeros((1, 2, 3, n))))).structure

    assert found(301) is not found(307)
    assert found(301) is found(301)
