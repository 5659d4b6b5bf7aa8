"""A program run by EdBatch and by the oracle, and what differs beyond what rounding explains."""

from __future__ import annotations

import os
import re
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

import edbatch as eb
from edbatch.testing import poisoned_memory
from tests.arrays import on_host
from tests.fuzz import oracle
from tests.fuzz.program import Program
from tests.fuzz.structured import TooClose

SAMPLES = (4, 40)  # runs with random rounding, for those that differ and for those that still differ
FACTOR = 16.0  # how much farther than these an error may be
LEAST = 24.0  # units of the last place that are always allowed, of an array's largest entry
THREADS = 3  # that run a program at once
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
    """What was compared: arrays, those of which rounding may have left nothing, programs that it decides."""

    arrays: int = 0
    blind: int = 0
    undecided: int = 0


def shown(code, library) -> list[tuple[str, np.ndarray]]:
    """Names and numbers in the order in which a program shows them."""
    found = []

    def show(name, value):
        found.append((name, np.array(on_host(value))))

    exec(code, {"eb": library, "np": np, "show": show})
    return found


def on_edbatch(code, threads=1) -> list[tuple[str, np.ndarray]]:
    """What EdBatch shows; in several threads at once, one after the other."""

    def one(_):
        with np.errstate(all="ignore"):
            return shown(code, eb)

    # Its numbers are judged, not what it warns of.
    with poisoned_memory(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "backward: no parameter got a gradient")
        if threads == 1:
            return one(0)
        with ThreadPoolExecutor(threads) as pool:
            return [shown for thread in pool.map(one, range(threads)) for shown in thread]


def in_threads(code) -> list[tuple[str, np.ndarray]]:
    """The same program in several threads, each with graphs and models of its own."""
    return on_edbatch(code, THREADS)


def check(program: Program, counts: Counts | None = None, run: Callable = on_edbatch) -> Failure | None:
    """How what `run` shows differs from what the oracle does; None if the two agree."""
    counts = counts or Counts()
    code = compile(program.source(), f"<program {program.seed}>", "exec")
    epsilon = precision_of(program)
    try:
        with np.errstate(all="ignore"):
            wanted = shown(code, oracle)
    except TooClose:
        counts.undecided += 1
        return None
    try:
        found = run(code)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1].name
        return Failure(f"{type(error).__name__} in {place}", f"{type(error).__name__}: {error}")
    counts.arrays += len(wanted)
    least = 1e8 * float(np.finfo(program.dtype).tiny)  # close to it, numbers have fewer digits or are zero
    allowed = [least + LEAST * epsilon * np.abs(value).max(initial=0) for _, value in wanted]
    copies = max(1, len(found) // max(1, len(wanted)))  # one for each thread
    failure = differs(wanted * copies, found, allowed * copies)
    for samples in SAMPLES:  # what little rounding does not explain, more may
        if failure is None:
            break
        spread = spreads(code, wanted, epsilon, samples)
        allowed = [max(known, FACTOR * off) for known, off in zip(allowed, spread, strict=True)]
        failure = differs(wanted * copies, found, allowed * copies)
    else:
        counts.blind += sum(
            bool(off > BLIND * max(np.abs(right).max(initial=0), 1e-3))
            for (_, right), off in zip(wanted, allowed, strict=True)
        )
    return failure


def precision_of(program) -> float:
    """How much numbers may be off, relative to them."""
    if os.environ.get("EDBATCH_DEVICE", "cpu") != "cpu" and (
        found := re.search("precision='(tf32|bf16)'", program.source())
    ):
        return 2.0**-10 if found[1] == "tf32" else 2.0**-7
    return float(np.finfo(program.dtype).eps)


def spreads(code, wanted, epsilon, samples):
    """Per array, how far off it was at most in runs with random rounding."""
    spread = [0.0] * len(wanted)
    for sample in range(samples):
        with np.errstate(all="ignore"), oracle.rounding(epsilon, sample):
            off = shown(code, oracle)
        if len(off) != len(wanted):  # rounding decides what the program does
            return [np.inf] * len(wanted)
        for at, ((_, exact), (_, value)) in enumerate(zip(wanted, off, strict=True)):
            spread[at] = max(spread[at], float(np.abs(value - exact).max(initial=0)))
    return spread


def differs(wanted, found, spread) -> Failure | None:
    """The first array that is wrong."""
    if len(wanted) != len(found):
        return Failure("wrong count", f"{len(found)} arrays are shown, should be {len(wanted)}")
    for (name, right), (_, value), allowed in zip(wanted, found, spread, strict=True):
        if right.shape != value.shape:
            return Failure("wrong shape", f"{name} has shape {value.shape}, should have {right.shape}")
        with np.errstate(all="ignore"):
            wrong = ~(np.abs(value - right) <= allowed)
        if np.isfinite(allowed) and wrong.any():
            return Failure("wrong", f"{name} should be\n{right}\nis\n{value}\n(rounding explains {allowed:.1e})")
    return None
