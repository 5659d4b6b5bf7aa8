"""Functions entry by entry."""

# ruff: noqa: D103 (they are PyTorch's)
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.torch.recording import lift, written
from edbatch.torch.registry import expect_default, refused, register
from edbatch.torch.unread import Unread


def _unary(function: Callable[[Any], Any], *functions: Any, name: str) -> None:
    register(*functions, methods=name, in_place=hasattr(torch.Tensor, f"{name}_"))(lambda input: function(lift(input)))


for _name in ["tanh", "sigmoid", "exp", "log", "sqrt", "abs", "square", "sin", "cos", "erf", "erfc"]:
    _unary(getattr(eb, _name), getattr(torch, _name), name=_name)
_unary(eb.neg, torch.neg, torch.negative, name="neg")
_unary(eb.relu, torch.relu, name="relu")
_unary(lambda x: eb.power(x, -0.5), torch.rsqrt, name="rsqrt")
_unary(lambda x: 1.0 / x, torch.reciprocal, name="reciprocal")
register(torch.positive, methods="positive", view=True)(lambda input: input)
register(torch.special.expit)(lambda input: eb.sigmoid(lift(input)))
register(F.tanh)(lambda input: eb.tanh(lift(input)))
register(F.sigmoid)(lambda input: eb.sigmoid(lift(input)))


def _activation(*functions: Any, **defaults: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of torch.nn.functional that can be done in place."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        def handler(input: Any, *args: Any, inplace: bool = False, **given: Any) -> Any:
            names = dict(zip(defaults, args, strict=False))
            if len(args) > len(defaults):  # the flag comes last
                inplace = args[len(defaults)]
            if unknown := given.keys() - defaults.keys():
                raise TypeError(f"unexpected {', '.join(sorted(unknown))}")
            result = function(lift(input), **(defaults | names | given))
            if inplace:
                return written(input, result, functions[0].__name__)
            return result

        register(*functions)(handler)
        return function

    return add


_activation(F.relu)(eb.relu)
_activation(F.silu)(eb.silu)
_activation(F.elu, alpha=1.0)(eb.elu)
_activation(F.leaky_relu, negative_slope=0.01)(lambda x, negative_slope: eb.leaky_relu(x, negative_slope))
_activation(F.relu6)(lambda x: hardtanh(x, 0.0, 6.0))
_activation(F.mish)(lambda x: x * eb.tanh(eb.softplus(x)))
_activation(F.celu, alpha=1.0)(lambda x, alpha: eb.elu(x / alpha) * alpha)
register(torch.selu)(lambda input: _selu(lift(input)))
register(F.softsign)(lambda input: eb.softsign(lift(input)))
register(F.tanhshrink)(lambda input: lift(input) - eb.tanh(lift(input)))
register(F.logsigmoid)(lambda input: eb.log_sigmoid(lift(input)))


@_activation(F.selu)
def _selu(x: Any) -> Any:
    return eb.elu(x, 1.6732632423543772848170429916717) * 1.0507009873554804934193349852946


@_activation(F.hardtanh, min_val=-1.0, max_val=1.0)
def hardtanh(x: Any, min_val: float, max_val: float) -> Any:
    # At the limits PyTorch's gradient is 0, that of `clip` is 1.
    inside = eb.greater(x, min_val) * eb.less(x, max_val)
    return eb.where(inside, x, eb.stop_gradient(eb.clip(x, min_val, max_val)))


@register(F.softplus)
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    x = lift(input)
    scaled = x * beta if beta != 1 else x
    found = eb.softplus(scaled)
    return eb.where(eb.greater(scaled, threshold), x, found / beta if beta != 1 else found)


@register(F.gelu)
def gelu(input: Any, approximate: str = "none") -> Any:
    x = lift(input)
    if approximate == "none":
        return eb.gelu(x)
    expect_default("approximate", approximate, "tanh")
    return x * 0.5 * (eb.tanh((x + eb.power(x, 3) * 0.044715) * math.sqrt(2 / math.pi)) + 1.0)


@register(F.glu)
def glu(input: Any, dim: int = -1) -> Any:
    x = lift(input)
    a, b = eb.split(x, 2, dim)
    return a * eb.sigmoid(b)


@register(torch.prelu, methods="prelu")
def prelu(input: Any, weight: Any) -> Any:
    x, w = lift(input), lift(weight)
    if w.shape not in ((), (1,)):
        if len(x.shape) < 2 or w.shape != (x.shape[1],):
            raise refused(f"prelu of shape {list(x.shape)} with {list(w.shape)} weights")
        w = eb.reshape(eb.parameter(w) if isinstance(w, eb.Parameter) else w, (-1, *(1 for _ in x.shape[2:])))
    return eb.where(eb.greater(x, 0.0), x, x * w)


# --- of two operands


def _binary(function: Callable[[Any, Any], Any], *functions: Any, methods: str, **marks: bool) -> None:
    def handler(input: Any, other: Any, *, alpha: Any = 1) -> Any:
        b = lift(other)
        return function(lift(input), b if alpha == 1 else b * alpha)

    register(*functions, methods=methods, **marks)(handler)


_binary(eb.add, torch.add, methods="add", in_place=True)
_binary(eb.subtract, torch.sub, torch.subtract, methods="sub subtract", in_place=True)
_binary(lambda a, b: eb.subtract(b, a), torch.rsub, methods="")
for _ours, _theirs, _methods in (
    (eb.multiply, (torch.mul, torch.multiply), "mul multiply"),
    (eb.divide, (torch.true_divide,), "true_divide"),
):
    register(*_theirs, methods=_methods, in_place=True)(lambda input, other, f=_ours: f(lift(input), lift(other)))
register(torch.maximum, methods="maximum")(lambda input, other: eb.maximum(lift(input), lift(other)))
register(torch.minimum, methods="minimum")(lambda input, other: eb.minimum(lift(input), lift(other)))


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
    x = lift(input)
    return x + lift(weight) * (lift(end) - x)


# --- comparisons, and what chooses

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {}


def _comparison(name: str, function: Callable[[Any, Any], Any], *others: Any, methods: str) -> None:
    @register(getattr(torch, name), *others, methods=f"{name} {methods}")
    def handler(input: Any, other: Any) -> Any:
        return Unread(function(lift(input), lift(other)))

    COMPARISONS[name] = handler


_comparison("gt", eb.greater, torch.greater, methods="greater")
_comparison("ge", eb.greater_equal, torch.greater_equal, methods="greater_equal")
_comparison("lt", eb.less, torch.less, methods="less")
_comparison("le", eb.less_equal, torch.less_equal, methods="less_equal")
_comparison("eq", eb.equal, methods="")
_comparison("ne", eb.not_equal, torch.not_equal, methods="not_equal")


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
    x, condition = lift(input), _truth(mask)
    if getattr(value, "shape", ()):
        raise refused("masked_fill with a tensor of several entries", "torch.where(mask, value, x)")
    return eb.where(condition, lift(value), x)


@register(torch.clamp, torch.clip, methods="clamp clip", in_place=True)
def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    if not all(x is None or isinstance(x, int | float) for x in (min, max)):
        raise refused("clamp to tensors", "torch.maximum and torch.minimum")
    return eb.clip(lift(input), min, max)


register(torch.clamp_min, methods="clamp_min", in_place=True)(lambda input, min: clamp(input, min))
register(torch.clamp_max, methods="clamp_max", in_place=True)(lambda input, max: clamp(input, None, max))
