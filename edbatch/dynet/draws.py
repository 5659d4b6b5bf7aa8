"""The generator that initial values, noise and masks which NumPy draws come from."""

from __future__ import annotations

import numpy as np

import edbatch as eb

_state = {"generator": np.random.default_rng()}


def generator() -> np.random.Generator:
    """The one generator of the module."""
    return _state["generator"]


def reset_random_seed(seed: int) -> None:
    """Begin all that is drawn anew: initial values, noise, and the masks of dropout."""
    _state["generator"] = np.random.default_rng(seed)
    eb.seed(seed)
