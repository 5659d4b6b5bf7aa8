"""Functions of float64 on the CPU: stated errors, NumPy's special values, the same bits wherever a number stands."""

import decimal
from decimal import Decimal

import numpy as np
import pytest

from edbatch.kernels.language.functions import FUNCTIONS
from tests.kernels.language import interpreter
from tests.kernels.language.calls import of_function, pairs, run

TINY, LEAST, MOST = 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308
SPECIAL = np.array(
    [0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, np.inf, -np.inf, np.nan, TINY, -TINY, 1e-310, -1e-310, LEAST, -LEAST,
     MOST, -MOST, 2**53, -(2**53) - 2, 1 - 2**-53, 1 + 2**-52, -1 + 2**-53, 2**-0.5, 2**0.5, 709.78, 709.79, 710,
     1e5, -708.3, -708.5, -745.1, -745.2, -1e5, -36.7, -37.5, -38, 19, 22, -22.1, 1e-16, -1e-16,
     1e-17, 1e-18, 1e300, 1e-300],
)  # fmt: skip
EXACT = decimal.Context(prec=60, Emin=-(10**6), Emax=10**6)


def _tanh(x):
    power = (2 * x).exp(EXACT)
    return EXACT.divide(EXACT.subtract(power, 1), EXACT.add(power, 1))


FUNCTIONS_OF_DECIMALS = {
    "exp": lambda x: x.exp(EXACT),
    "expm1": lambda x: EXACT.subtract(x.exp(EXACT), 1),
    "log": lambda x: x.ln(EXACT),
    "log1p": lambda x: EXACT.add(x, 1).ln(EXACT),
    "tanh": _tanh,
    "sigmoid": lambda x: EXACT.divide(1, EXACT.add((-x).exp(EXACT), 1)),
}


def units(got, exact):
    """The largest error in units in the last place of float64, and where."""
    error = []
    for number, wanted in zip(got.tolist(), exact, strict=True):
        unit = Decimal(float(np.spacing(abs(float(wanted)))))
        error.append(float(abs(Decimal(number) - wanted) / unit))
    return max(error), int(np.argmax(error))


def numbers_for(name, random):
    """Of all sizes, more where functions bend; no results beyond float64, and none that 60 digits are too few for."""
    count = 600
    found = [
        np.exp2(random.uniform(-70, 10, count)) * random.choice([-1, 1], count),
        *(random.normal(size=count) * scale for scale in (0.1, 1, 10, 200)),
        1 + random.normal(size=count) * np.exp2(-random.uniform(0, 52, count)),
        np.log(2) / 2 * random.integers(-30, 30, count) * (1 + random.normal(size=count) * 1e-3),
    ]
    if name == "log":
        found.append(np.exp2(random.uniform(-1074, 1023, count)))
    x = np.concatenate(found)
    x = {"log": np.abs, "log1p": lambda x: np.where(x > -1, x, -x)}.get(name, lambda x: x)(x)
    return x[(x != 0) & (x != 1 if name == "log" else x < 709)]


@pytest.mark.parametrize(
    ("name", "most"), [("tanh", 1.5), ("sigmoid", 1.7), ("exp", 1), ("expm1", 1.3), ("log", 0.9), ("log1p", 0.9)]
)
def test_errors(name, most):
    x = numbers_for(name, np.random.default_rng(0))
    got = run(of_function(name, "float64"), x)
    error, worst = units(got, [FUNCTIONS_OF_DECIMALS[name](Decimal(number)) for number in x.tolist()])
    assert error <= most, (x[worst], got[worst])


def test_errors_of_power():
    random = np.random.default_rng(1)
    a = [np.exp2(random.uniform(-far, far, 600)) for far in (0.001, 0.5, 6, 100, 900)]
    a.append(np.abs(1 + random.normal(size=600) * np.exp2(-random.uniform(0, 40, 600))))
    a = np.concatenate(a)
    b = random.uniform(-1070, 1023, a.size) / np.log2(a)
    got = run(of_function("power", "float64"), a, b)
    exact = [EXACT.power(Decimal(x), Decimal(y)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    error, worst = units(got, exact)
    assert error <= 1.4, (a[worst], b[worst], got[worst])


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if function.double])
def test_special_values_are_numpys(name):
    given = [SPECIAL] if len(FUNCTIONS[name].arguments) == 1 else [*pairs(SPECIAL)]
    with np.errstate(all="ignore"):
        want = np.asarray(interpreter.FUNCTIONS[name](*given))
    got = run(of_function(name, "float64"), *given)
    np.testing.assert_allclose(got, want, rtol=4e-16, atol=TINY)
    number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if function.double])
def test_position_and_neighbours_change_nothing(name, dtype):
    """A number gives the same bits in the middle of a vector, in what is left over at the end, and alone."""
    random = np.random.default_rng(2)
    count, kernel = len(FUNCTIONS[name].arguments), of_function(name, dtype)
    numbers = random.normal(size=(count, 203)) * 3
    numbers[0, :40:3] = SPECIAL[13:27]
    with np.errstate(all="ignore"):
        numbers = numbers.astype(dtype)
    together = run(kernel, *numbers)
    for length in (*range(1, 20), 33):
        for first in range(0, 200 - length, length):
            part = run(kernel, *numbers[:, first : first + length].copy())
            np.testing.assert_array_equal(part, together[first : first + length])
            np.testing.assert_array_equal(np.signbit(part), np.signbit(together[first : first + length]))
