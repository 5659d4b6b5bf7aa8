"""Losses."""

# ruff: noqa: D103 (they are PyTorch's)
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.torch.functions.elementwise import softplus
from edbatch.torch.functions.shape import integers
from edbatch.torch.recording import lift, node
from edbatch.torch.registry import expect_default, refused, register


def _total(x: Any, reduction: str, count: Any = None) -> Any:
    if reduction == "none":
        return x
    if reduction == "sum":
        return eb.sum(x)
    if reduction == "mean":
        return eb.mean(x) if count is None else eb.sum(x) / count
    raise ValueError(f"{reduction} is not a valid value for reduction")


def _old_way(size_average: Any, reduce: Any) -> None:
    expect_default("size_average", size_average)
    expect_default("reduce", reduce)


def _difference(function: Any, of_pairs: Callable[..., Any], *extra: str) -> None:
    """A loss of entries and what they should be."""

    def handler(
        input: Any,
        target: Any,
        *args: Any,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        **more: Any,
    ) -> Any:
        _old_way(*(size_average, reduce) if not args else (args[0], args[1] if len(args) > 1 else None))
        if len(args) > 2:
            reduction = args[2]
            more |= dict(zip(extra, args[3:], strict=False))
        weight = more.pop("weight", None)
        found = of_pairs(lift(input), lift(target), **more)
        return _total(found if weight is None else found * lift(weight), reduction)

    register(function)(handler)


_difference(F.mse_loss, lambda x, y: eb.square(x - y), "weight")
_difference(F.l1_loss, lambda x, y: eb.abs(x - y), "weight")


def _smooth(x: Any, y: Any, beta: float) -> Any:
    d = x - y
    size = eb.abs(d)
    return eb.where(eb.less(size, beta), eb.square(d) * (0.5 / beta), size - 0.5 * beta) if beta else size


_difference(F.smooth_l1_loss, lambda x, y, beta=1.0: _smooth(x, y, beta), "beta")
_difference(F.soft_margin_loss, lambda x, y: softplus(-(y * x)))


@register(F.huber_loss)
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Any:
    x = lift(input) - lift(target)
    size = eb.abs(x)
    found = eb.where(eb.less(size, delta), eb.square(x) * 0.5, (size - 0.5 * delta) * delta)
    return _total(found if weight is None else found * lift(weight), reduction)


@register(F.binary_cross_entropy)
def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    _old_way(size_average, reduce)
    p, y = node(input), node(target)
    right, wrong = (eb.clip(eb.log(x), -100.0, None) for x in (p, 1.0 - p))
    # PyTorch's gradient is cut off, too, and computed in another way.
    slope = (p - y) / eb.clip((1.0 - p) * p, 1e-12, None)
    found = eb.stop_gradient(-(y * right + (1.0 - y) * wrong))
    for x, gradient in ((p, slope), (y, wrong - right)):
        found = found + eb.stop_gradient(gradient) * (x - eb.stop_gradient(x))
    return _total(found if weight is None else found * lift(weight), reduction)


@register(F.binary_cross_entropy_with_logits)
def binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    _old_way(size_average, reduce)
    x, y = node(input), lift(target)
    if pos_weight is None:
        found = (1.0 - y) * x - eb.log_sigmoid(x)
    else:
        found = (1.0 - y) * x - (1.0 + (lift(pos_weight) - 1.0) * y) * eb.log_sigmoid(x)
    return _total(found if weight is None else found * lift(weight), reduction)


@register(F.kl_div)
def kl_div(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    _old_way(size_average, reduce)
    x = node(input)
    if log_target:
        y = node(target)
        found = eb.exp(y) * (y - x)
    else:
        y = node(target)
        some = eb.greater(y, 0.0)
        found = eb.where(some, y * eb.log(eb.where(some, y, 1.0)), y * 0.0) - y * x
    return eb.sum(found) / x.spec.shape[0] if reduction == "batchmean" else _total(found, reduction)


@register(F.cross_entropy)
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    _old_way(size_average, reduce)
    x = node(input)
    if isinstance(target, eb.Expression) or (isinstance(target, torch.Tensor) and target.is_floating_point()):
        return _of_distribution(x, target, weight, reduction, label_smoothing)
    if len(x.shape) == 1 and isinstance(target, torch.Tensor) and weight is None and target.item() != ignore_index:
        return eb.cross_entropy(x, int(target), label_smoothing)
    if not isinstance(target, torch.Tensor):  # an integer argument of a cell
        expect_default("weight", weight)
        return eb.cross_entropy(x, target, label_smoothing)
    return _of_labels(eb.log_softmax(x), target, weight, ignore_index, reduction, label_smoothing)


def _of_distribution(x: Any, target: Any, weight: Any, reduction: str, smoothing: float) -> Any:
    y = lift(target)
    if tuple(y.shape) != tuple(x.spec.shape) or len(y.shape) > 2:
        raise refused(f"cross_entropy of shape {list(x.shape)} and target {list(y.shape)}", "expected one shape")
    if smoothing:
        y = y * (1 - smoothing) + smoothing / x.spec.shape[-1]
    logs = eb.log_softmax(x)
    found = -eb.sum(y * (logs if weight is None else logs * lift(weight)), -1)
    return _total(found, reduction)


def _of_labels(logs: Any, target: Any, weight: Any, ignore: int, reduction: str, smoothing: float = 0.0) -> Any:
    """Of logarithms of probabilities and labels, which may be left out, and have weights."""
    labels, classes = integers(target), logs.spec.shape[-1]
    if len(logs.shape) > 2 or labels.shape != logs.spec.shape[:-1]:
        raise refused(
            f"a loss of shape {list(logs.shape)} and labels {list(labels.shape)}", "expected [n, classes], [n]"
        )
    kept = np.asarray(labels != ignore)
    if ((labels < 0) | (labels >= classes))[kept].any():
        raise IndexError(f"Target {labels[kept]} is out of bounds.")
    numbers = torch.ones(classes, dtype=logs.dtype) if weight is None else weight.detach()
    chosen = torch.where(torch.from_numpy(kept), numbers[torch.from_numpy(np.asarray(labels * kept))], 0.0)
    right = eb.squeeze(eb.gather(logs, (labels * kept)[..., None], len(labels.shape)), -1)
    found = -(right * lift(chosen))
    if smoothing:
        spread = eb.sum(logs if weight is None else logs * lift(numbers), -1) * lift(torch.from_numpy(kept))
        found = found * (1 - smoothing) - spread * (smoothing / classes)
    if reduction == "mean" and not kept.any():
        raise refused("a mean loss of labels that are all ignored", "it would be NaN")
    return _total(found, reduction, float(chosen.sum()))


@register(F.nll_loss)
def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    _old_way(size_average, reduce)
    x = node(input)
    if not isinstance(target, torch.Tensor):
        expect_default("weight", weight)
        return -eb.pick(x, target)
    return _of_labels(x, target, weight, ignore_index, reduction)


@register(F.margin_ranking_loss)
def margin_ranking_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    _old_way(size_average, reduce)
    found = -(lift(target) * (lift(input1) - lift(input2))) + margin
    return _total(eb.clip(found, 0.0, None), reduction)
