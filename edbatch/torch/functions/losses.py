"""Losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from inspect import signature
from typing import Any

import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.torch.functions.index import integers
from edbatch.torch.recording import lift, node, recording
from edbatch.torch.registry import Unlike, expect_default, register
from edbatch.torch.unread import Unread


def _loss(theirs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what gives the losses of entries."""
    bind = signature(theirs).bind

    def add(ours: Callable[..., Any]) -> Callable[..., Any]:
        def handler(*args: Any, **kwargs: Any) -> Any:
            given = bind(*args, **kwargs).arguments
            for old in ("size_average", "reduce"):
                expect_default(given.pop(old, None))
            reduction = given.pop("reduction", "mean")
            x = ours(**given)
            if reduction == "batchmean":
                return eb.sum(x) / [*given["input"].shape, 1][0]
            return x if reduction == "none" else eb.mean(x) if reduction == "mean" else eb.sum(x)

        register(theirs)(handler)
        return ours

    return add


def _of_entries(theirs: Any, ours: Callable[..., Any]) -> None:
    """The same of entries, their targets, and perhaps weights."""

    def weighted(input: Any, target: Any, weight: Any = None, **given: Any) -> Any:
        found = ours(lift(input), lift(target), **given)
        return found if weight is None else found * lift(weight)

    _loss(theirs)(weighted)


def _binary(p: Any, y: Any) -> Any:
    _expect_alike(p, y)
    p, y = node(p), node(y)
    right, wrong = (eb.clip(eb.log(x), -100.0, None) for x in (p, 1.0 - p))
    # PyTorch's gradient is cut off, too, and computed in another way.
    slope = (p - y) / eb.clip((1.0 - p) * p, 1e-12, None)
    found = eb.stop_gradient(-(y * right + (1.0 - y) * wrong))
    for x, gradient in ((p, slope), (y, wrong - right)):
        found = found + eb.stop_gradient(gradient) * (x - eb.stop_gradient(x))
    return found


def _expect_alike(x: Any, y: Any) -> None:
    """Leave operands to PyTorch which would be broadcast here."""
    if tuple(x.shape) != tuple(y.shape):
        raise Unlike


def _of_scores(x: Any, y: Any, pos_weight: Any = None) -> Any:
    _expect_alike(x, y)
    of_right = 1.0 if pos_weight is None else 1.0 + (lift(pos_weight) - 1.0) * y
    return (1.0 - y) * x - of_right * eb.log_sigmoid(x)


def _divergence(x: Any, y: Any, log_target: bool = False) -> Any:
    if log_target:
        return eb.exp(y) * (y - x)
    return y * eb.log(eb.where(eb.equal(y, 0.0), 1.0, y)) - y * x


_of_entries(F.mse_loss, lambda x, y: eb.square(x - y))
_of_entries(F.l1_loss, lambda x, y: eb.abs(x - y))
_of_entries(F.soft_margin_loss, lambda x, y: eb.softplus(-(y * x)))
_of_entries(F.binary_cross_entropy, _binary)
_of_entries(F.binary_cross_entropy_with_logits, _of_scores)
_of_entries(F.kl_div, _divergence)


@_loss(F.gaussian_nll_loss)
def _gaussian(input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6) -> Any:
    x, v = node(input), node(var)
    v = v if len(v.spec.shape) in (0, len(x.spec.shape)) else eb.unsqueeze(v, len(v.spec.shape))
    v = v + eb.stop_gradient(eb.clip(v, eps, None) - v)  # which PyTorch's gradient does not see
    found = (eb.log(v) + eb.square(x - lift(target)) / v) * 0.5
    return found + 0.5 * math.log(2 * math.pi) if full else found


# --- of labels


def _likelihood(logs: Any, target: Any, ignore_index: int) -> Any:
    """Of logarithms of probabilities [n, classes] or [classes], and the labels of all."""
    if not isinstance(target, torch.Tensor | Unread):  # an integer argument of a cell
        expect_default(ignore_index, -100)
        return -eb.pick(logs, target)
    labels, classes = integers(target), logs.spec.shape[-1]
    if len(logs.shape) > 2 or labels.shape != logs.spec.shape[:-1] or not labels.size:
        raise Unlike
    if (labels == ignore_index).any():
        raise Unlike
    if labels.min() < 0 or labels.max() >= classes:
        raise IndexError(f"Target {labels} is out of bounds.")
    return -eb.squeeze(eb.gather(logs, labels[..., None], labels.ndim), labels.ndim)


@_loss(F.nll_loss)
def _of_logs(input: Any, target: Any, weight: Any = None, ignore_index: int = -100) -> Any:
    expect_default(weight)
    return _likelihood(node(input), target, ignore_index)


@register(F.cross_entropy)
def cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """One label alone, as in most losses of one sample, is one node."""
    x = node(input)
    shape = x.spec.shape
    if weight is not None or size_average is not None or reduce is not None:
        raise Unlike
    label = target
    if target.__class__ is torch.Tensor and target.shape == shape[:-1] and shape[:-1] in ((), (1,)):
        recording().expect_constant(target)
        label = target.item()
        if label.__class__ is not int or label == ignore_index:
            raise Unlike
        if not 0 <= label < shape[-1]:
            raise IndexError(f"Target {label} is out of bounds.")
    elif isinstance(target, torch.Tensor | eb.Expression | Unread) or hasattr(target, "is_lazy"):
        expect_default(label_smoothing, 0.0)
        expect_default(reduction, "none", "mean", "sum")
        if isinstance(target, eb.Expression) or hasattr(target, "parts") or target.is_floating_point():
            raise Unlike
        found = _likelihood(eb.log_softmax(x, 1 if len(shape) > 1 else 0), target, ignore_index)
        return found if reduction == "none" else eb.mean(found) if reduction == "mean" else eb.sum(found)
    elif ignore_index != -100:
        raise Unlike
    found = eb.cross_entropy(eb.squeeze(x, 0) if len(shape) > 1 else x, label, label_smoothing)
    return eb.unsqueeze(found, 0) if len(shape) > 1 and reduction == "none" else found
