"""Rounding at random: how much numbers depend on how a machine with few digits rounds."""

from contextlib import contextmanager

import numpy as np

_round = None  # how numbers are rounded; None: not at all


@contextmanager
def rounding(epsilon, seed):
    """In its block, what goes into an op and what comes out of it is off by up to a part of `epsilon`, at random.

    It has as few digits as the machine's numbers: what differs by less may become equal.
    """
    global _round
    random = np.random.default_rng(seed)

    def _round(x):
        fraction, exponent = np.frexp(x * (1 + epsilon * random.uniform(-1, 1, np.shape(x))))
        return np.ldexp(np.round(fraction * (2 / epsilon)) * (epsilon / 2), exponent)

    try:
        yield
    finally:
        _round = None


def rounded(x, exact=False):
    return x if exact or _round is None else _round(x)


def is_exact():
    return _round is None
