"""Random numbers that are the same on every device."""

from __future__ import annotations

from typing import Any

import numpy as np


def uniform(xp: Any, seeds: Any, shape: tuple[int, ...]) -> Any:
    """Numbers in [0, 1) that depend on a row's seed and an entry's position only (SplitMix64)."""
    entries = xp.arange(1, 1 + int(np.prod(shape[1:])), dtype=np.uint64)
    with np.errstate(over="ignore"):
        # The seed itself goes through one round, so that neighbouring seeds share no stream.
        base = _mix(seeds.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
        bits = _mix(base[:, None] + entries * np.uint64(0x9E3779B97F4A7C15))
    return ((bits >> np.uint64(11)) * 2.0**-53).reshape(shape)


def _mix(z: Any) -> Any:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
