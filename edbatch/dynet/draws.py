"""What is drawn: the generator of initial values, noise and masks, random inputs, dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

import edbatch as eb
from edbatch.dynet.checked import named, sizes, within
from edbatch.dynet.expression import constant, lead, node
from edbatch.dynet.implicit import implicit

_state = {"generator": np.random.default_rng()}


def generator() -> np.random.Generator:
    """The one generator of the module."""
    return _state["generator"]


def reset_random_seed(seed: int) -> None:
    """Begin all that is drawn anew: initial values, noise, and the masks of dropout."""
    _state["generator"] = np.random.default_rng(seed)
    eb.seed(seed)


def kept(shape: tuple[int, ...], rate: float) -> np.ndarray:
    """A mask of dropout: 0 with the probability `rate`, else 1 / (1 - rate)."""
    return (generator().random(shape) >= rate) / (1 - rate if rate < 1 else 1)


def filled(dim: Any, batch_size: int, make: Any) -> Any:
    """What a function makes of a shape; of several if it is to be a mini-batch."""
    shape = sizes("dim", dim)
    implicit.recorded_into()
    if batch_size == 1:
        return eb.input(np.asarray(make(shape), np.float32))
    return eb.array(np.asarray(make((batch_size, *shape)), np.float32))


def _normal(dim: Any, mean: float = 0.0, stddev: float = 1.0, batch_size: int = 1) -> Any:
    return filled(dim, batch_size, lambda shape: generator().normal(mean, within("stddev", stddev, 0), shape))


def _bernoulli(dim: Any, p: float, scale: float = 1.0, batch_size: int = 1) -> Any:
    p = within("random_bernoulli: p", p, 0, 1)
    return filled(dim, batch_size, lambda shape: scale * (generator().random(shape) < p))


def _uniform(dim: Any, left: float, right: float, batch_size: int = 1) -> Any:
    return filled(dim, batch_size, lambda shape: generator().uniform(left, right, shape))


def _gumbel(dim: Any, mu: float = 0.0, beta: float = 1.0, batch_size: int = 1) -> Any:
    return filled(dim, batch_size, lambda shape: generator().gumbel(mu, beta, shape))


def _dropout(x: Any, p: float) -> Any:
    p = within("dropout: p", p, 0, 1)
    return eb.dropout(x, p) if 0 < p < 1 else eb.multiply(x, 0.0) if p else node(x)


def _dropout_dim(x: Any, d: int, p: float) -> Any:
    shape = tuple(1 if axis == d else size for axis, size in enumerate(x.spec.shape))
    return eb.multiply(x, constant(kept((*lead(x), *shape), within("dropout_dim: p", p, 0, 1)), x))


def _noise(x: Any, stddev: float) -> Any:
    drawn = generator().normal(0, within("noise: stddev", stddev, 0), (*lead(x), *x.spec.shape))
    return eb.add(x, constant(drawn, x))


#: By DyNet's name.
TABLE = named(
    random_normal=(_normal, "Gaussian numbers."),
    random_bernoulli=(_bernoulli, "`scale` with probability p, else 0."),
    random_uniform=(_uniform, "Numbers in [left, right)."),
    random_gumbel=(_gumbel, "Numbers of Gumbel's distribution."),
    dropout=(_dropout, "Each entry 0 with probability p, else divided by 1 - p."),
    dropout_dim=(_dropout_dim, "`dropout` of all entries along an axis together."),
    noise=(_noise, "x plus Gaussian numbers."),
)  # fmt: skip
