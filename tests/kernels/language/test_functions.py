"""The table of functions: stated errors over the whole range, and NumPy's meaning of NaN, infinities and zeros."""

import numpy as np
import pytest

from edbatch.kernels.language.functions import FUNCTIONS
from edbatch.kernels.language.ir import NEXT, Compute, Index, Integer, Kernel, Load, Place, Store
from tests.emulated.libraries import with_cpp
from tests.kernels.language import interpreter
from tests.kernels.language.calls import of_function, on_cpu, on_gpu, pairs, run
from tests.kernels.language.interpreter import Call, Rows
from tests.uniform import uniform

SPECIAL = np.array(
    [0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-40, 1.17549435e-38, 3.4e38,
     -3.4e38, 2**24, -(2**24) - 2, 89, -89, 104, -104, 9, -9, 10.1, -10.1],
    np.float32,
)  # fmt: skip


@pytest.fixture(scope="module")
def numbers():
    """Every 4099th float32, in the order of their bits, and more where functions bend."""
    random = np.random.default_rng(0)
    every = np.arange(0, 2**32, 4099, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = [random.normal(size=50_000) * scale for scale in (0.01, 1, 10, 50)]
    return np.concatenate([every, SPECIAL, *near], dtype=np.float32, casting="unsafe")


def units(got, want):
    """The largest error in units in the last place of float32; infinite where only one is NaN, or is infinite."""
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float32)
        unit = np.spacing(np.abs(rounded)).astype(np.float64)
        error = np.abs(got.astype(np.float64) - want) / unit
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    error[np.isnan(error) | ~np.isfinite(rounded) | ~np.isfinite(got)] = np.inf
    error[same & ~(np.isfinite(error))] = 0
    return error


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("tanh", 4.7), ("sigmoid", 2.5), ("exp", 1), ("expm1", 1.5), ("log", 1), ("log1p", 1), ("sin", 1.6),
        ("cos", 1.6), ("erf", 2.5), ("erfc", 4.5), ("sqrt", 0.51), ("abs", 0), ("negate", 0), ("floor", 0),
    ],
)  # fmt: skip
def test_errors(name, most, numbers):
    with np.errstate(all="ignore"):
        want = np.asarray(interpreter.FUNCTIONS[name](numbers.astype(np.float64)))
    got = run(of_function(name), numbers)
    error = units(got, want)
    worst = error.argmax()
    assert error[worst] <= most, (numbers[worst], got[worst], want[worst])
    zero = want == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


@pytest.mark.parametrize(
    ("name", "dtype", "first"),
    [("tanh", "float32", 9.1), ("sigmoid", "float32", 20), ("erf", "float32", 9.1),
     ("tanh", "float64", 19.1), ("sigmoid", "float64", 38), ("erf", "float64", 9.1)],
)  # fmt: skip
def test_what_rounds_to_one_is_one(name, dtype, first):
    """Or a derivative that is made of it would not be 0 there."""
    far = np.array([first, 40, 80, 1e4, 1e30, np.inf], dtype)
    kernel = of_function(name, dtype)
    np.testing.assert_array_equal(run(kernel, far), 1)
    np.testing.assert_array_equal(run(kernel, -far[-1:]), 0 if name == "sigmoid" else -1)


def test_power(numbers):
    random = np.random.default_rng(1)
    few = [random.choice(numbers, 50_000), random.normal(size=50_000) * 3, random.integers(-9, 9, 20_000)]
    exponents = [random.choice(numbers, 50_000), random.normal(size=50_000) * 20, random.integers(-9, 9, 20_000)]
    for far in (0.001, 0.5, 6, 100):  # powers of all sizes, of bases that are near 1 and far
        few.append(np.exp2(random.uniform(-far, far, 100_000)).astype(np.float32))
        few[-1][few[-1] == 1] = 2
        exponents.append(random.uniform(-150, 128, 100_000) / np.log2(few[-1].astype(np.float64)))
    a, b = pairs(SPECIAL)
    a = np.concatenate([a, *few], dtype=np.float32, casting="unsafe")
    b = np.concatenate([b, *exponents], dtype=np.float32, casting="unsafe")
    with np.errstate(all="ignore"):
        want = np.power(a.astype(np.float64), b.astype(np.float64))
    got = run(of_function("power"), a, b)
    error = units(got, want)
    worst = error.argmax()
    assert error[worst] <= 1.1, (a[worst], b[worst], got[worst], want[worst])
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


ALL = sorted(set(FUNCTIONS) - {"uniform"})


EXACT = [
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "less", "less_equal", "greater", "greater_equal",
    "equal", "different", "both", "either", "alike",
]  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_arithmetic_is_numpys_bit_for_bit(name):
    a, b = pairs(SPECIAL)
    with np.errstate(all="ignore"):
        want = np.asarray(interpreter.FUNCTIONS[name](a, b), np.float32)
    got = run(of_function(name), a, b)
    np.testing.assert_array_equal(got, want)
    if name not in ("maximum", "minimum"):
        number = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))


@with_cpp
def test_on_a_gpu_they_mean_the_same():
    """With the functions of the C library in the place of CUDA's."""
    size = len(SPECIAL) ** 2
    a, b = pairs(SPECIAL)
    loads = (Load(0, (NEXT,)), Load(1, (NEXT,)))
    for some in (ALL[::2], ALL[1::2]):
        computes = [
            Compute(name, ((0, 0, 1) if name == "select" else (0, 1))[-len(FUNCTIONS[name].arguments) :])
            for name in some
        ]
        stores = tuple(Store(2 + at, 2 + at, (NEXT,)) for at in range(len(some)))
        kernel = Kernel(1, 0, (Place(),) * (2 + len(some)), (*loads, *computes), stores)
        outs = [np.zeros((1, size), np.float32) for _ in some]
        on_gpu(kernel, 1, size, a[None], b[None], *outs)
        for name, compute, out in zip(some, computes, outs, strict=True):
            with np.errstate(all="ignore"):
                given = [(a, b)[at].astype(np.float64) for at in compute.operands]
                want = np.asarray(interpreter.FUNCTIONS[name](*given)).astype(np.float32)
            np.testing.assert_allclose(out[0], want, rtol=3e-7, atol=2e-38, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_numbers_are_those_of_every_device(dtype):
    seeds = np.array([0, 1, 2**31 - 1], np.int32)
    want = uniform(np, seeds, (3, 100)).astype(dtype)
    steps = (Integer(0), Index(0), Compute("uniform", (0, 1)))
    kernel = Kernel(1, 0, (Place(),), steps, (Store(2, 0, (NEXT,)),), dtype=dtype)
    out = np.zeros(300, dtype)
    on_cpu(kernel, Call(3, [100], [Rows(out, 0, 100)], [], [seeds]))
    np.testing.assert_array_equal(out.reshape(3, 100), want)
