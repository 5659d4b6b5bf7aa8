"""The CPU backend: NumPy's functions, and the few that NumPy lacks."""

from __future__ import annotations

from typing import Any

import numpy as np


class NumPyBackend:
    """What an op's `forward` computes with: every NumPy function by its name, plus those defined here.

    Example:
        >>> import numpy as np
        >>> k, out = NumPyBackend(), np.empty(2)
        >>> k.sigmoid(np.array([0.0, 100.0]), out)
        >>> out
        array([0.5, 1. ])
    """

    name = "numpy"

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def sigmoid(x: Any, out: Any) -> None:
        """out = 1 / (1 + e⁻ˣ) by way of tanh, which NumPy vectorises (scipy's expit takes six times as long)."""
        np.multiply(x, 0.5, out=out)
        np.tanh(out, out=out)
        np.multiply(out, 0.5, out=out)
        np.add(out, 0.5, out=out)

    @staticmethod
    def erf(x: Any, out: Any) -> None:
        """out = erf(x)."""
        from scipy.special import erf  # 0.3 s to import: only who calls it pays

        erf(x, out=out)

    @staticmethod
    def segment_reduce(ufunc: Any, out: Any, rows: Any, offsets: Any) -> None:
        """out[i] = reduction of rows[offsets[i]:offsets[i + 1]]; no segment is empty."""
        if len(out) == 1:
            ufunc.reduce(rows, axis=0, out=out[0] if out.ndim > 1 else out.reshape(()))
        else:
            ufunc.reduceat(rows, offsets[:-1], axis=0, out=out)

    @staticmethod
    def uniform(seeds: Any, shape: tuple[int, ...]) -> Any:
        """Numbers in [0, 1) that depend on a row's seed and an entry's position only (SplitMix64)."""
        entries = np.arange(1, 1 + int(np.prod(shape[1:])), dtype=np.uint64)
        with np.errstate(over="ignore"):
            # The seed itself goes through one round, so that neighbouring seeds share no stream.
            base = _mix(seeds.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
            bits = _mix(base[:, None] + entries * np.uint64(0x9E3779B97F4A7C15))
        return ((bits >> np.uint64(11)) * 2.0**-53).reshape(shape)

    @staticmethod
    def stage(out: Any, values: list[Any]) -> None:
        """Copy one given array into each row."""
        np.stack(values, out=out)

    @staticmethod
    def copy(out: Any, values: Any) -> None:
        """Copy a given array into every row."""
        np.copyto(out, values)

    @staticmethod
    def fill(out: Any, value: float) -> None:
        """Fill with a number."""
        out.fill(value)


def _mix(z: Any) -> Any:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
