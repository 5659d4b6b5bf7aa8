"""The comparison finds what is wrong, and takes no rounding for it."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.fuzz import oracle
from tests.fuzz.generate import generate
from tests.fuzz.program import Program, Statement
from tests.fuzz.run import Counts, check, shown
from tests.fuzz.test_fuzz import CELLS, PROGRAMS
from tests.fuzz.test_generate import OPS


def programs(count):
    return (generate(seed, CELLS) for seed in range(count))


def with_faults(**changes):
    """Runs programs on the oracle in place of EdBatch, with faults."""
    library = SimpleNamespace(**{**vars(oracle), **changes})
    return lambda code: shown(code, library)


def is_found(name, faulty):
    """Whether one of the programs that call an op fails."""
    calling = (program for program in programs(4 * PROGRAMS) if f"eb.{name}(" in program.source())
    return any(check(program, run=faulty) is not None for program in calling)


SOME = {"lookup", "matmul", "sum"}


def some(names):
    """A few of the ops, the others with `-m slow`."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (name not in SOME)) for name in sorted(names)]


@pytest.mark.parametrize("name", some(set(OPS) - {"split"}))
def test_a_small_error_of_any_op_is_found(name):
    def off(*given, **named):
        return getattr(oracle, name)(*given, **named) * 1.0002

    faulty = with_faults(**{name: off})
    if name in ("zeros", "scalar"):  # nothing times anything; a scalar is used as a number
        faulty = with_faults(**{name: lambda *given: getattr(oracle, name)(*given) + 0.01})
    assert is_found(name, faulty)


@pytest.mark.parametrize("name", some(set(OPS) - {"split", "zeros", "ones", "scalar", "stop_gradient", "input"}))
def test_a_small_error_of_any_gradient_is_found(name):
    def off(*given, **named):
        return oracle.scale_gradient(getattr(oracle, name)(*given, **named), 1.0002)

    assert is_found(name, with_faults(**{name: off}))


def test_gradients_that_leak_are_found():
    faulty = with_faults(stop_gradient=lambda x: oracle.scale_gradient(x, 1.0))
    assert is_found("stop_gradient", faulty)


def test_rounding_is_no_error():
    counts = Counts()
    for program in programs(25):
        epsilon = np.finfo(program.dtype).eps

        def rounding(code, epsilon=epsilon):
            with oracle.rounding(epsilon, seed=99), np.errstate(all="ignore"):
                return shown(code, oracle)

        assert check(program, counts, rounding) is None
    assert counts.blind <= 0.01 * counts.arrays


def test_what_is_raised_and_shapes_and_nan_are_failures():
    program = Program(0, statements=(Statement("show('v0', np.ones(2))"),))
    for given, kind in ((1.0, "wrong shape"), ([1.0, np.nan], "wrong"), ([1.0, 1.0], None)):
        failure = check(program, run=lambda code, given=given: [("v0", np.array(given))])
        assert (failure and failure.kind) == kind
    assert check(program, run=lambda code: 1 / 0).kind == "ZeroDivisionError in <lambda>"
