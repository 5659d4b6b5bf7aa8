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
from edbatch.torch.registry import expect_default, refused, register
from edbatch.torch.unread import Unread


def _of_one(function: Callable[[Any], Any], *functions: Any, method: str = "") -> None:
    in_place = hasattr(torch.Tensor, f"{method}_")
    register(*functions, methods=method, in_place=in_place)(lambda input: function(lift(input)))


for _name in ("tanh", "sigmoid", "exp", "log", "sqrt", "abs", "square", "sin", "cos", "erf", "erfc", "neg", "relu"):
    _of_one(getattr(eb, _name), getattr(torch, _name), method=_name)
_of_one(eb.neg, torch.negative)
_of_one(eb.sigmoid, torch.special.expit)
_of_one(eb.softsign, F.softsign)
_of_one(eb.log_sigmoid, F.logsigmoid)
_of_one(lambda x: eb.sin(x) / eb.cos(x), torch.tan, method="tan")
_of_one(lambda x: eb.log(x) / math.log(2), torch.log2, method="log2")
_of_one(lambda x: eb.log(x) / math.log(10), torch.log10, method="log10")
_of_one(lambda x: eb.log(x + 1.0), torch.log1p, method="log1p")
_of_one(lambda x: eb.tanh(x * 0.5) * (eb.exp(x) + 1.0), torch.expm1, method="expm1")
_of_one(lambda x: eb.power(x, -0.5), torch.rsqrt, method="rsqrt")
_of_one(lambda x: 1.0 / x, torch.reciprocal, method="reciprocal")
_of_one(lambda x: eb.greater(x, 0.0) - eb.less(x, 0.0), torch.sign, method="sign")
register(torch.positive, methods="positive", view=True)(node)


def _activation(theirs: Any, ours: Callable[..., Any], *others: Any) -> None:
    """A function of torch.nn.functional that can be done in place, and what it is called elsewhere."""
    bind = signature(theirs).bind

    def handler(*args: Any, **kwargs: Any) -> Any:
        given = bind(*args, **kwargs).arguments
        x, in_place = given.pop("input"), given.pop("inplace", False)
        result = ours(lift(x), **given)
        return written(x, result, theirs.__name__) if in_place else result

    register(theirs, *others)(handler)


def _hardtanh(x: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    # At the limits PyTorch's gradient is 0, that of `clip` is 1.
    inside = eb.greater(x, min_val) * eb.less(x, max_val)
    return eb.where(inside, x, eb.stop_gradient(eb.clip(x, min_val, max_val)))


_activation(F.relu, eb.relu)
_activation(F.silu, eb.silu)
_activation(F.elu, eb.elu)
_activation(F.leaky_relu, lambda x, negative_slope=0.01: eb.leaky_relu(x, negative_slope))
_activation(F.mish, lambda x: x * eb.tanh(eb.softplus(x)))
_activation(F.celu, lambda x, alpha=1.0: eb.elu(x / alpha) * alpha)
_activation(F.selu, lambda x: eb.elu(x, 1.6732632423543772) * 1.0507009873554805, torch.selu)
_activation(F.hardtanh, _hardtanh)
_activation(F.relu6, lambda x: _hardtanh(x, 0.0, 6.0))
_activation(F.hardsigmoid, lambda x: _hardtanh(x + 3.0, 0.0, 6.0) / 6.0)
_activation(F.hardswish, lambda x: x * _hardtanh(x + 3.0, 0.0, 6.0) / 6.0)
_activation(F.threshold, lambda x, threshold, value: eb.where(eb.greater(x, threshold), x, value))


def _with_more(theirs: Any, ours: Callable[..., Any], methods: str = "") -> None:
    """A function of an expression and numbers."""
    register(theirs, methods=methods)(lambda input, *args, **given: ours(lift(input), *args, **given))


def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    scaled = x * beta
    return eb.where(eb.greater(scaled, threshold), x, eb.softplus(scaled) / beta)


def _gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "none":
        return eb.gelu(x)
    expect_default("approximate", approximate, "tanh")
    return x * 0.5 * (eb.tanh((x + eb.power(x, 3) * 0.044715) * math.sqrt(2 / math.pi)) + 1.0)


def _glu(x: Any, dim: int = -1) -> Any:
    a, b = eb.split(node(x), 2, dim)
    return a * eb.sigmoid(b)


def _prelu(x: Any, weight: Any) -> Any:
    w = node(weight)
    if w.spec.size > 1:
        w = eb.reshape(w, (-1, *(1 for _ in x.shape[2:])))
    return eb.where(eb.greater(x, 0.0), x, x * w)


def _rrelu(x: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Any:
    expect_default("training", training, False)
    return eb.leaky_relu(x, (lower + upper) / 2)


_with_more(F.softplus, softplus)
_with_more(F.gelu, _gelu)
_with_more(F.glu, _glu)
_with_more(F.hardshrink, lambda x, lambd=0.5: eb.where(eb.greater(eb.abs(x), lambd), x, 0.0))
_with_more(F.softshrink, lambda x, lambd=0.5: x - eb.clip(x, -lambd, lambd))
_with_more(torch.prelu, _prelu, methods="prelu")
_with_more(torch.rrelu, _rrelu)


# --- of two operands, and more


def _of_two(function: Callable[[Any, Any], Any], *functions: Any, methods: str = "", in_place: bool = False) -> None:
    register(*functions, methods=methods, in_place=in_place)(lambda input, other: function(lift(input), lift(other)))


def _scaled(function: Callable[[Any, Any], Any], *functions: Any, methods: str = "") -> None:
    def handler(input: Any, other: Any, *, alpha: Any = 1) -> Any:
        return function(lift(input), lift(other) if alpha == 1 else lift(other) * alpha)

    register(*functions, methods=methods, in_place=True)(handler)


_scaled(eb.add, torch.add, methods="add")
_scaled(eb.subtract, torch.sub, torch.subtract, methods="sub subtract")
_scaled(lambda a, b: eb.subtract(b, a), torch.rsub)
_of_two(eb.multiply, torch.mul, torch.multiply, methods="mul multiply", in_place=True)
_of_two(eb.divide, torch.true_divide, methods="true_divide", in_place=True)
_of_two(eb.maximum, torch.maximum, methods="maximum")
_of_two(
    lambda a, b: eb.maximum(a, b) + eb.softplus(eb.where(eb.equal(a, b), 0.0, -eb.abs(a - b))),
    torch.logaddexp,
    methods="logaddexp",
)
_of_two(eb.minimum, torch.minimum, methods="minimum")


@register(torch.div, torch.divide, methods="div divide", in_place=True)
def divide(input: Any, other: Any, *, rounding_mode: Any = None) -> Any:
    expect_default("rounding_mode", rounding_mode)
    return eb.divide(lift(input), lift(other))


@register(torch.pow, methods="pow", in_place=True)
def power(input: Any, exponent: Any) -> Any:
    return eb.power(lift(input), lift(exponent))


@register(torch.addcmul, methods="addcmul")
def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    return lift(input) + lift(tensor1) * lift(tensor2) * value


@register(torch.addcdiv, methods="addcdiv")
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    return lift(input) + lift(tensor1) / lift(tensor2) * value


@register(torch.lerp, methods="lerp")
def lerp(input: Any, end: Any, weight: Any) -> Any:
    return lift(input) + lift(weight) * (lift(end) - lift(input))


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


@register(torch.masked_fill, methods="masked_fill", in_place=True)
def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    if getattr(value, "shape", ()):
        raise refused("masked_fill with a tensor of several entries", "torch.where(mask, value, x)")
    return eb.where(_truth(mask), lift(value), lift(input))


@register(torch.clamp, torch.clip, methods="clamp clip", in_place=True)
def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    if not all(x is None or isinstance(x, int | float) for x in (min, max)):
        raise refused("clamp to tensors", "torch.maximum and torch.minimum")
    return eb.clip(lift(input), min, max)


register(torch.clamp_min, methods="clamp_min", in_place=True)(lambda input, min: clamp(input, min))
register(torch.clamp_max, methods="clamp_max", in_place=True)(lambda input, max: clamp(input, None, max))
