"""Recipes written in a language of the test's own, and numbers in scalar expressions."""

import math
import warnings

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from edbatch.kernels.recipe import Compute, Language, Load, Recipe, Store, constant, source_in, with_attributes

LETTERS = Language(
    kernel="({places}) {\n{rows}\n--\n{body}\n}",
    place="place {0} of {1} and {2}",
    between_places=", ",
    row="row {0}",
    value="let v{0} be {1}",
    store="put v{1} to {0}",
    indents=(2, 4),
    expression=str.upper,
)


def test_the_walk_says_everything_once_and_where_it_belongs():
    instructions = (Load(1), Load(0, 2), Load(0, None), Compute("tanh({0} + {1}) * {2}", (0, 2, "float32(0.5)")))
    recipe = Recipe(2, instructions, (Store(3, 0), Store(1, 1, 1)))
    assert source_in(LETTERS, recipe).splitlines() == [
        "(place 0 of 0 and 1, place 1 of 2 and 3) {",
        "  row 0",
        "  row 1",
        "  let v2 be p0[r0]",
        "--",
        "    let v0 be p1[r1 + j]",
        "    let v1 be p0[r0 + 2 * d + j]",
        "    let v3 be TANH(V0 + V2) * FLOAT32(0.5)",
        "    put v3 to p0[r0 + j]",
        "    put v1 to p1[r1 + d + j]",
        "}",
    ]


@given(st.floats(width=32))
@example(math.nan)
@example(-math.inf)
def test_a_constant_is_a_python_expression_of_its_value(value):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # infinity less infinity
        got = eval(constant(value), {"float32": np.float32})
    np.testing.assert_array_equal(got, np.float32(value))
    assert math.isnan(value) or np.signbit(got) == np.signbit(value)


def test_attributes_are_constants():
    filled = with_attributes("minimum(maximum({0}, {low}), {high})", [("low", -math.inf), ("high", 1)])
    assert filled == "minimum(maximum({0}, float32(-1e999)), float32(1.0))"
