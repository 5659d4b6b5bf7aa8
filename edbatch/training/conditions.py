"""Conditions that decide the last bits of a run's curve, beside its settings; other machines may have others."""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import Any

from edbatch.base.later import Later
from edbatch.errors import warn
from edbatch.graph.model.collection import ParameterCollection
from edbatch.policy.policy import Policy
from edbatch.policy.registry import get_policy

blas_threads = Later("edbatch.kernels.cpu.blas_threads")


def conditions(model: ParameterCollection, policy: str | os.PathLike[str] | Policy) -> dict[str, str]:
    """By name, as JSON can hold them."""
    return {
        "BLAS": blas_threads.blas_kernels(),
        "device": model.device.name,
        "dtype": str(model.dtype),
        "policy": _described(get_policy(policy)),
    }


def warn_of_changes(place: object, before: dict[str, str], now: dict[str, str]) -> None:
    """Say so where a run goes on under other conditions.

    Args:
        place: what the warning begins with.
        before, now: see `conditions`.
    """
    differ = [f"{name} {before.get(name)}, now {now[name]}" for name in now if before.get(name) != now[name]]
    if differ:
        warn(
            f"{place}: this run was computed with {'; '.join(differ)}; it goes on, but its curve is not to the last "
            "bit what it would have been; under the same it is"
        )


def _described(policy: Any) -> str:
    """A policy's name; of one that was learned, with a digest of what it chooses."""
    name: str = getattr(policy, "name", type(policy).__name__)
    if not hasattr(policy, "table"):
        return name
    choices = [(row["state"], row["choice"]) for row in policy.table()]
    return f"{name} {blake2b(repr(choices).encode(), digest_size=4).hexdigest()}"
