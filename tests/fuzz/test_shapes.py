"""What EdBatch refuses for the shapes of its operands, the oracle does, too: where a program is called a fault."""

from itertools import product

import numpy as np
import pytest

import edbatch as eb
from tests.fuzz import oracle
from tests.fuzz.scope import UNFIT
from tests.fuzz.shapes import FITS

SHAPES = [(), (1,), (2,), (1, 1), (1, 2), (2, 1), (2, 2)]
#: Of each op with rules: how many operands, and calls of a library with them.
CALLS = {
    "softmax": (1, lambda eb, x: eb.softmax(x, -1)), "log_softmax": (1, lambda eb, x: eb.log_softmax(x, -1)),
    "cumsum": (1, lambda eb, x: eb.cumsum(x, 0)), "pad": (1, lambda eb, x: eb.pad(x, 1)),
    "argmax": (1, lambda eb, x: eb.argmax(x, 0)), "argmin": (1, lambda eb, x: eb.argmin(x, -1)),
    "cross_entropy": (1, lambda eb, x: eb.cross_entropy(x, 0)), "hinge": (1, lambda eb, x: eb.hinge(x, 0)),
    "sum": (1, lambda eb, x: eb.sum(x, axis=1)), "split": (1, lambda eb, x: eb.split(x, [1, 1], 0)[0]),
    **{name: (2, lambda eb, a, b, name=name: getattr(eb, name)(a, b))
       for name in ("squared_distance", "l1_distance", "binary_cross_entropy", "huber", "dot")},
    "distribution": (2, lambda eb, a, b: eb.cross_entropy(a, b)),
    "dots": (3, lambda eb, query, *keys: eb.dots(query, list(keys))[0]),
    "layer_norm": (3, lambda eb, x, gain, bias: eb.layer_norm(x, gain, bias)),
    "affine": (3, lambda eb, a, x, b: eb.affine(a, x, b)),
    "weighted_sum": (4, lambda eb, *both: eb.weighted_sum(list(both[:2]), list(both[2:]))),
    "attention": (4, lambda eb, query, a, b, value: eb.attention(query, [a, b], [value, value])),
    "heads": (3, lambda eb, query, key, value: eb.attention(query, [key], [value], heads=2)),
    "gather": (1, lambda eb, x: eb.gather(x, [0, 0], axis=0)),
    "gather by values": (2, lambda eb, x, index: eb.gather(x, index * 0.0, axis=-1)),
    "scatter": (2, lambda eb, x, values: eb.scatter(x, [0, 0], values, axis=0)),
    "scatter_add": (3, lambda eb, x, index, values: eb.scatter_add(x, index * 0.0, values, axis=-1)),
}  # fmt: skip


def shape_of(library, errors, call, shapes):
    """Of a result; None if it is refused."""
    with library.Graph():
        operands = [library.input(np.full(shape, 0.5)) for shape in shapes]
        try:
            return tuple(call(library, *operands).shape)
        except errors:
            return None


@pytest.mark.parametrize("name", CALLS)
def test_operands_that_are_refused(name):
    count, call = CALLS[name]
    found = [
        (shape_of(oracle, UNFIT, call, shapes), shape_of(eb, eb.EdBatchError, call, shapes), shapes)
        for shapes in product(SHAPES, repeat=count)
    ]
    assert [one for one in found if one[0] != one[1]] == []
    assert {one[0] is None for one in found} == {True, False}


def test_all_rules_are_compared():
    assert FITS.keys() <= CALLS.keys()
