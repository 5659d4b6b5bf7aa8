"""What compiled code gives back is whole, or the interrupt that came while it ran."""

import signal
import sys
from typing import NamedTuple

import numpy as np
import pytest

from edbatch.compiling.compiled import compiled


class Inner(NamedTuple):
    total: float
    values: np.ndarray


class Outer(NamedTuple):
    inner: Inner
    values: np.ndarray


@compiled
def slowly(n):
    values = np.zeros(2)
    for number in range(n):
        values[0] += np.sin(number)
    return Outer(Inner(values[0], values), values)


def test_named_tuples_come_back():
    found = slowly(2)
    assert (type(found), type(found.inner)) == (Outer, Inner)
    assert found.inner.total == found.values[0] == pytest.approx(np.sin(1))


@pytest.mark.skipif(sys.platform == "win32", reason="has no timers that send signals")
def test_an_interrupt_comes_after_compiled_code():
    slowly(1)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(20):
            signal.setitimer(signal.ITIMER_REAL, 1e-3)
            with pytest.raises(KeyboardInterrupt):  # not a SystemError, nor the end of the process
                slowly(3_000_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
