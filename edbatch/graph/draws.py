"""What is random in a graph: numbers that follow from one seed, the number of the graph, and the place in the graph."""

from __future__ import annotations

import os
import threading
from typing import Any

from edbatch.base.numbers import as_integer
from edbatch.errors import EdBatchError, shown

_ROUND = 0x9E3779B97F4A7C15
_WORD = 2**64 - 1

_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lock._at_fork_reinit)  # type: ignore[attr-defined]
_seed = 0
_graphs = 0  # that have drawn


def seed(value: int) -> None:
    """Begin anew what dropout draws: the graphs that draw from now on are the first, second, ... of this seed.

    A graph takes its number when it draws first; one that never draws (as in evaluation) takes none. The masks in it
    follow from the seed, that number, and how many were drawn in the graph before; not from the policy, from what runs
    together, from cells, or from the device. A program that never calls this has seed 0, and draws the same each time
    it is started. Threads that record graphs at once take numbers in any order: give their graphs seeds of their own,
    `eb.Graph(seed=...)`.

    A checkpoint holds seed and number of graphs, and loading one with its trainer sets both; see `model.save`.

    Args:
        value: an integer, at least 0 and below 2**64.

    Raises:
        EdBatchError: it is none.

    Example:
        >>> import edbatch as eb
        >>> for _ in range(2):
        ...     eb.seed(1)
        ...     with eb.Graph():
        ...         print(eb.dropout(eb.ones(5), 0.5).value())
        [2. 0. 0. 2. 2.]
        [2. 0. 0. 2. 2.]
    """
    global _seed, _graphs
    value = checked_seed("seed", value)
    with _lock:
        _seed, _graphs = value, 0


def checked_seed(place: str, value: Any, bits: int = 64) -> int:
    """A seed as a Python int, in range."""
    try:
        found = as_integer(value)
    except TypeError:
        raise EdBatchError(f"{place}: expected an integer, got {type(value).__name__}") from None
    if not 0 <= found < 2**bits:
        raise EdBatchError(f"{place}: expected an integer of at least 0 and below 2**{bits}, got {shown(found)}")
    return found


def next_graph() -> int:
    """The first draw of the next graph."""
    global _graphs
    with _lock:
        _graphs += 1
        return first_draw(_seed, _graphs)


def first_draw(seed: int, graph: int) -> int:
    """The first draw of a graph by its number, below 2**30; the next ones follow it, and remain below 2**31."""
    return _mix(_mix(seed + _ROUND) + graph * _ROUND) >> 34


def stream(of: int, number: int) -> int:
    """The number of a stream of draws among those that begin in another, far from all others; never 0."""
    return _mix(of + (number + 1) * _ROUND) or 1


def _mix(z: int) -> int:
    """SplitMix64's: neighbours become far apart."""
    z &= _WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _WORD
    return z ^ (z >> 31)


def state() -> dict[str, int]:
    """What `restore` takes: the seed, and how many graphs have drawn."""
    with _lock:
        return {"seed": _seed, "graphs": _graphs}


def is_state(found: dict[str, Any]) -> bool:
    """Whether it is what `state` gives."""
    return found.keys() == {"seed", "graphs"} and all(type(x) is int and 0 <= x <= _WORD for x in found.values())


def restore(found: dict[str, int]) -> None:
    """Go on from a state."""
    global _seed, _graphs
    with _lock:
        _seed, _graphs = found["seed"], found["graphs"]
