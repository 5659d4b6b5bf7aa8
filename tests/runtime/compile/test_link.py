"""What BLAS is called with by address is proven to be valid when a program is made."""

import pytest

from edbatch.kernels.program import LEFT, RIGHT, TRANSPOSED, Multiply, MultiplyEach, Slot, Storage
from edbatch.runtime.compile.link import check_product

ROW, FIXED, RESULT, WEIGHT = range(4)
SLOTS = [
    Slot(Storage.SCRATCH, 0, 2, 8),
    Slot(Storage.FIXED, 0, 0, 0),
    Slot(Storage.RESULT, 0, 0, 0),
    Slot(Storage.FIXED, 1, 0, 0),
]

MULTIPLY = Multiply(x=ROW, x_column=1, w=WEIGHT, k=5, n=3, distance=3, flags=0, out=RESULT, out_column=0)
EACH = MultiplyEach(
    x=ROW, x_column=0, w=FIXED, w_column=0, m=2, k=3, n=4, distance=4, flags=RIGHT, out=RESULT, out_column=0
)


@pytest.mark.parametrize(
    "changes", [{}, {"distance": 9}, {"flags": TRANSPOSED, "distance": 5}, {"out": ROW}, {"x": RESULT, "x_column": 7}]
)
def test_products_that_are_fine(changes):
    check_product(MULTIPLY._replace(**changes), SLOTS)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"x": FIXED}, "all at one place"),
        ({"out": FIXED}, "all at one place"),
        ({"x_column": 2}, "rows that overlap"),
        ({"out": ROW, "out_column": 4}, "rows that overlap"),
        ({"w": ROW}, "a weight that is none"),
        ({"distance": 0}, "rows of the weight"),
        ({"distance": 2}, "rows of the weight"),
        ({"flags": TRANSPOSED, "distance": 4}, "rows of the weight"),
        ({"k": 0}, "sizes"),
        ({"n": 0, "distance": 0}, "sizes"),
        ({"distance": 2**31}, "sizes"),
    ],
)
def test_products_that_blas_would_refuse(changes, why):
    with pytest.raises(AssertionError, match=why):
        check_product(MULTIPLY._replace(**changes), SLOTS)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"x": FIXED},
        {"flags": 0, "distance": 0},
        {"flags": LEFT, "distance": 3},
        {"flags": LEFT + TRANSPOSED, "distance": 2},
        {"flags": RIGHT + TRANSPOSED, "distance": 3},
    ],
)
def test_products_for_each_call_that_are_fine(changes):
    check_product(EACH._replace(**changes), SLOTS)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"distance": 3}, "rows of the parameter"),
        ({"flags": LEFT, "distance": 2}, "rows of the parameter"),
        ({"flags": LEFT + TRANSPOSED, "distance": 1}, "rows of the parameter"),
        ({"out": FIXED}, "all at one place"),
        ({"m": 0}, "sizes"),
        ({"k": 0}, "sizes"),
        ({"n": 0}, "sizes"),
        ({"k": 2**31}, "sizes"),
    ],
)
def test_products_for_each_call_that_blas_would_refuse(changes, why):
    with pytest.raises(AssertionError, match=why):
        check_product(EACH._replace(**changes), SLOTS)
