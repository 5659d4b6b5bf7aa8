"""A program run by EdBatch and by the oracle, and what differs beyond what rounding explains."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

import edbatch as eb
from edbatch.memory.plan.arenas import Arenas
from edbatch.memory.plan.pool import BufferPool
from tests.arrays import on_host
from tests.fuzz import oracle
from tests.fuzz.program import Program

SAMPLES = (4, 40)  # runs with random rounding, for those that differ and for those that still differ
FACTOR = 16.0  # how much farther than these an error may be
LEAST = 24.0  # units of the last place that are always allowed, of an array's largest entry
BLIND = 1e-2  # a relative error of this size that rounding might explain says nothing any more


@dataclass(frozen=True)
class Failure:
    """What went wrong.

    Args:
        kind: "wrong", or the error's class with the beginning of its message.
        message: what is wrong.
    """

    kind: str
    message: str


@dataclass
class Counts:
    """What was compared: arrays, and those of which rounding may have left nothing."""

    arrays: int = 0
    blind: int = 0


def shown(code, library) -> list[tuple[str, np.ndarray]]:
    """Names and numbers in the order in which a program shows them."""
    found = []

    def show(name, value):
        found.append((name, np.array(on_host(value))))

    exec(code, {"eb": library, "np": np, "show": show})
    return found


@contextmanager
def poisoned_memory():
    """Buffers of the pool are full of NaN when they are handed out, and when they are given back; and what graphs leave
    to others."""
    acquire, release, clear = BufferPool.acquire, BufferPool.release, Arenas.clear

    def poison(buffer):
        if isinstance(buffer, np.ndarray) and buffer.dtype.kind == "f":
            buffer.fill(np.nan)

    def poisoned_acquire(self, *given):
        buffer = acquire(self, *given)
        poison(buffer)
        return buffer

    def poisoned_release(self, buffer):
        poison(buffer)
        release(self, buffer)

    def poisoned_clear(self):
        for flat in self.flats:
            poison(flat)
        clear(self)

    BufferPool.acquire, BufferPool.release, Arenas.clear = poisoned_acquire, poisoned_release, poisoned_clear
    try:
        yield
    finally:
        BufferPool.acquire, BufferPool.release, Arenas.clear = acquire, release, clear


def on_edbatch(code) -> list[tuple[str, np.ndarray]]:
    """What EdBatch shows."""
    # Its numbers are judged, not what it warns of.
    with poisoned_memory(), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "backward: no parameter got a gradient")
        return shown(code, eb)


def check(program: Program, counts: Counts | None = None, run: Callable = on_edbatch) -> Failure | None:
    """How what `run` shows differs from what the oracle does; None if the two agree."""
    counts = counts or Counts()
    code = compile(program.source(), f"<program {program.seed}>", "exec")
    epsilon = float(np.finfo(program.dtype).eps)
    with np.errstate(all="ignore"):
        wanted = shown(code, oracle)
    try:
        found = run(code)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1].name
        return Failure(f"{type(error).__name__} in {place}", f"{type(error).__name__}: {error}")
    counts.arrays += len(wanted)
    least = 1e8 * float(np.finfo(program.dtype).tiny)  # close to it, numbers have fewer digits or are zero
    allowed = [least + LEAST * epsilon * np.abs(value).max(initial=0) for _, value in wanted]
    failure = differs(wanted, found, allowed)
    for samples in SAMPLES:  # what little rounding does not explain, more may
        if failure is None:
            break
        spread = spreads(code, wanted, epsilon, samples)
        allowed = [max(known, FACTOR * off) for known, off in zip(allowed, spread, strict=True)]
        failure = differs(wanted, found, allowed)
    else:
        counts.blind += sum(
            bool(off > BLIND * max(np.abs(right).max(initial=0), 1e-3))
            for (_, right), off in zip(wanted, allowed, strict=True)
        )
    return failure


def spreads(code, wanted, epsilon, samples):
    """Per array, how far off it was at most in runs with random rounding."""
    spread = [0.0] * len(wanted)
    for sample in range(samples):
        with np.errstate(all="ignore"), oracle.rounding(epsilon, sample):
            off = shown(code, oracle)
        for at, ((_, exact), (_, value)) in enumerate(zip(wanted, off, strict=True)):
            spread[at] = max(spread[at], float(np.abs(value - exact).max(initial=0)))
    return spread


def differs(wanted, found, spread) -> Failure | None:
    """The first array that is wrong."""
    for (name, right), (_, value), allowed in zip(wanted, found, spread, strict=True):
        if right.shape != value.shape:
            return Failure("wrong shape", f"{name} has shape {value.shape}, should have {right.shape}")
        with np.errstate(all="ignore"):
            wrong = ~(np.abs(value - right) <= allowed)
        if np.isfinite(allowed) and wrong.any():
            return Failure("wrong", f"{name} should be\n{right}\nis\n{value}\n(rounding explains {allowed:.1e})")
    return None
