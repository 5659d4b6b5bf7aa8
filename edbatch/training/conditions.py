"""Conditions that decide the last bits of a run's curve, beside its settings; other machines may have others."""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import Any

from edbatch.base.later import Later
from edbatch.errors import warn
from edbatch.graph.model.collection import ParameterCollection
from edbatch.policy.policy import Policy, get_policy

blas_threads = Later("edbatch.kernels.cpu.blas_threads")


def conditions(model: ParameterCollection, policy: str | os.PathLike[str] | Policy) -> dict[str, str]:
    """By name, as JSON can hold them; a policy that was learned, with a digest of what it chooses."""
    found: Any = get_policy(policy)
    name = getattr(found, "name", type(found).__name__)
    if hasattr(found, "table"):
        choices = [(row["state"], row["choice"]) for row in found.table()]
        name = f"{name} {blake2b(repr(choices).encode(), digest_size=4).hexdigest()}"
    kernels = blas_threads.blas_kernels()
    return {"BLAS": kernels, "device": model.device.name, "dtype": str(model.dtype), "policy": name}


def warn_of_changes(place: object, before: dict[str, str], now: dict[str, str]) -> None:
    """Say so where a run goes on under other conditions."""
    differ = [f"{name} {before.get(name)}, now {now[name]}" for name in now if before.get(name) != now[name]]
    if differ:
        warn(
            f"{place}: this run was computed with {'; '.join(differ)}; it goes on, but its curve is not to the last "
            "bit what it would have been; under the same it is"
        )
