"""Functions entry by entry."""

# ruff: noqa: D103 (they are PyTorch's)
from __future__ import annotations

import math
from collections.abc import Callable
from inspect import signature
from typing import Any

import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.torch.recording import lift, node, written
from edbatch.torch.registry import Unlike, expect_default, refused, register
from edbatch.torch.unread import Unread


def _register(ours: Callable[..., Any], *functions: Any, methods: str = "", view: bool = False) -> None:
    """A function of a tensor and more, each of which may be a tensor or a number."""
    register(*functions, methods=methods, view=view)(
        lambda input, *args, **given: ours(
            lift(input), *map(lift, args), **{name: lift(x) for name, x in given.items()}
        )
    )


for _name in ("tanh", "sigmoid", "exp", "log", "sqrt", "abs", "square", "sin", "cos", "erf", "erfc", "neg", "relu"):
    _register(getattr(eb, _name), getattr(torch, _name), methods=_name)
_register(eb.neg, torch.negative, methods="negative")
_register(eb.sigmoid, torch.special.expit)
_register(eb.softsign, F.softsign)
_register(eb.log_sigmoid, F.logsigmoid)
_register(lambda x: eb.power(x, -0.5), torch.rsqrt, methods="rsqrt")
_register(lambda x: 1.0 / x, torch.reciprocal, methods="reciprocal")
_register(lambda x: eb.greater(x, 0.0) - eb.less(x, 0.0), torch.sign, methods="sign")
_register(node, torch.positive, methods="positive", view=True)


def _activation(theirs: Any, ours: Callable[..., Any]) -> None:
    """A function of torch.nn.functional that can be done in place."""
    bind = signature(theirs).bind

    def handler(*args: Any, **kwargs: Any) -> Any:
        given = bind(*args, **kwargs).arguments
        x, in_place = given.pop("input"), given.pop("inplace", False)
        result = ours(lift(x), **given)
        return written(x, result, theirs.__name__) if in_place else result

    register(theirs)(handler)


_activation(F.relu, eb.relu)
_activation(F.silu, eb.silu)
_activation(F.elu, eb.elu)
_activation(F.leaky_relu, lambda x, negative_slope=0.01: eb.leaky_relu(x, negative_slope))


def _softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    scaled = x * beta
    return eb.where(eb.greater(scaled, threshold), x, eb.softplus(scaled) / beta)


def _gelu(x: Any, approximate: str = "none") -> Any:
    expect_default(approximate, "none")
    return eb.gelu(x)


def _glu(x: Any, dim: int = -1) -> Any:
    a, b = eb.split(node(x), 2, dim)
    return a * eb.sigmoid(b)


def _rrelu(x: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Any:
    if training:
        raise refused("rrelu in training", "expected another activation, or the module in eval()")
    return eb.leaky_relu(x, (lower + upper) / 2)


_register(_rrelu, torch.rrelu)
_register(_softplus, F.softplus)
_register(_gelu, F.gelu)
_register(_glu, F.glu)


# --- of two operands, and more


def _scaled(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda x, other, *, alpha=1: function(x, other if alpha == 1 else other * alpha)


def _divide(x: Any, other: Any, *, rounding_mode: Any = None) -> Any:
    expect_default(rounding_mode)
    return eb.divide(x, other)


_register(_scaled(eb.add), torch.add, methods="add")
_register(_scaled(eb.subtract), torch.sub, torch.subtract, methods="sub subtract")
_register(lambda x, other, *, alpha=1: eb.subtract(other, x if alpha == 1 else x * alpha), torch.rsub)
_register(eb.multiply, torch.mul, torch.multiply, methods="mul multiply")
_register(eb.divide, torch.true_divide, methods="true_divide")
_register(_divide, torch.div, torch.divide, methods="div divide")
_register(eb.maximum, torch.maximum, methods="maximum")
_register(eb.minimum, torch.minimum, methods="minimum")
_register(eb.power, torch.pow, methods="pow")
_register(lambda x, a, b, *, value=1: x + a * b * value, torch.addcmul, methods="addcmul")
_register(lambda x, a, b, *, value=1: x + a / b * value, torch.addcdiv, methods="addcdiv")
_register(lambda x, end, weight: x + weight * (end - x), torch.lerp, methods="lerp")


# --- comparisons, and what chooses

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {}
_COMPARED = {"gt": "greater", "ge": "greater_equal", "lt": "less", "le": "less_equal", "eq": "equal", "ne": "not_equal"}


def _comparison(name: str, long: str) -> None:
    function = getattr(eb, long)
    also = long if name != "eq" else ""  # torch.equal is something else

    @register(*(getattr(torch, one) for one in (name, also) if one), methods=f"{name} {also}")
    def handler(input: Any, other: Any) -> Any:
        return Unread(function(lift(input), lift(other)))

    COMPARISONS[name] = handler


for _name, _long in _COMPARED.items():
    _comparison(_name, _long)


#: Read where they are asked for, as comparisons are.
register(torch.isnan, methods="isnan")(lambda input: Unread(eb.not_equal(lift(input), lift(input))))
register(torch.isfinite, methods="isfinite")(lambda input: Unread(eb.less(eb.abs(lift(input)), math.inf)))
register(torch.isinf, methods="isinf")(lambda input: Unread(eb.equal(eb.abs(lift(input)), math.inf)))


def _truth(condition: Any) -> Any:
    if condition.dtype is not torch.bool:
        raise refused(f"a condition of dtype {condition.dtype}", "expected a comparison, or a tensor of bools")
    return lift(condition)


@register(torch.where)
def where(condition: Any, input: Any, other: Any) -> Any:
    return eb.where(_truth(condition), lift(input), lift(other))


register(methods="where")(lambda input, condition, other: where(condition, input, other))


@register(torch.masked_fill, methods="masked_fill")
def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    if getattr(value, "shape", ()):
        raise Unlike
    return eb.where(_truth(mask), lift(value), lift(input))


@register(torch.clamp, torch.clip, methods="clamp clip")
def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    if not all(x is None or isinstance(x, int | float) for x in (min, max)):
        raise Unlike
    return eb.clip(lift(input), min, max)


register(torch.clamp_min, methods="clamp_min")(lambda input, min: clamp(input, min))
register(torch.clamp_max, methods="clamp_max")(lambda input, max: clamp(input, None, max))
