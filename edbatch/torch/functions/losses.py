"""Losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.torch.functions.elementwise import softplus
from edbatch.torch.functions.index import integers
from edbatch.torch.functions.reduce import distance
from edbatch.torch.recording import lift, node, recording
from edbatch.torch.registry import HANDLERS, expect_default, refused, register
from edbatch.torch.unread import Unread


def _total(x: Any, reduction: str, count: Any = None) -> Any:
    if reduction == "none":
        return x
    if reduction == "mean" and count is None:
        return eb.mean(x) if x.spec.shape else x
    return eb.sum(x) if reduction == "sum" else eb.sum(x) / count


def _loss(theirs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what gives the losses of entries, and perhaps by how many their sum is divided for a mean."""
    bind = signature(theirs).bind

    def add(ours: Callable[..., Any]) -> Callable[..., Any]:
        def handler(*args: Any, **kwargs: Any) -> Any:
            given = bind(*args, **kwargs).arguments
            for old in ("size_average", "reduce"):
                expect_default(old, given.pop(old, None))
            reduction = given.pop("reduction", "mean")
            found = ours(**given)
            if reduction == "batchmean":
                return eb.sum(found) / [*given["input"].shape, 1][0]
            return _total(*(found[0], reduction, found[1]) if isinstance(found, tuple) else (found, reduction))

        register(theirs)(handler)
        return ours

    return add


def _of_entries(theirs: Any, ours: Callable[..., Any]) -> None:
    """The same of entries, their targets, and perhaps weights."""

    def weighted(input: Any, target: Any, weight: Any = None, **given: Any) -> Any:
        found = ours(lift(input), lift(target), **given)
        return found if weight is None else found * lift(weight)

    _loss(theirs)(weighted)


def _huber(d: Any, delta: float) -> Any:
    size = eb.abs(d)
    return eb.where(eb.less(size, delta), eb.square(d) * 0.5, (size - 0.5 * delta) * delta)


def _expect_alike(axes_only: bool, *xs: Any) -> None:
    """Refuse operands that would be broadcast, where PyTorch does."""
    if len({len(x.shape) if axes_only else tuple(x.shape) for x in xs}) > 1:
        raise refused(f"this loss of {' and '.join(str(list(x.shape)) for x in xs)}", "expected one shape")


def _binary(p: Any, y: Any) -> Any:
    _expect_alike(False, p, y)
    p, y = node(p), node(y)
    right, wrong = (eb.clip(eb.log(x), -100.0, None) for x in (p, 1.0 - p))
    # PyTorch's gradient is cut off, too, and computed in another way.
    slope = (p - y) / eb.clip((1.0 - p) * p, 1e-12, None)
    found = eb.stop_gradient(-(y * right + (1.0 - y) * wrong))
    for x, gradient in ((p, slope), (y, wrong - right)):
        found = found + eb.stop_gradient(gradient) * (x - eb.stop_gradient(x))
    return found


def _of_scores(x: Any, y: Any, pos_weight: Any = None) -> Any:
    _expect_alike(False, x, y)
    of_right = 1.0 if pos_weight is None else 1.0 + (lift(pos_weight) - 1.0) * y
    return (1.0 - y) * x - of_right * eb.log_sigmoid(x)


def _divergence(x: Any, y: Any, log_target: bool = False) -> Any:
    if log_target:
        return eb.exp(y) * (y - x)
    return y * eb.log(eb.where(eb.equal(y, 0.0), 1.0, y)) - y * x


_of_entries(F.mse_loss, lambda x, y: eb.square(x - y))
_of_entries(F.l1_loss, lambda x, y: eb.abs(x - y))
_of_entries(F.smooth_l1_loss, lambda x, y, beta=1.0: _huber(x - y, beta) / beta if beta else eb.abs(x - y))
_of_entries(F.huber_loss, lambda x, y, delta=1.0: _huber(x - y, delta))
_of_entries(F.soft_margin_loss, lambda x, y: softplus(-(y * x)))
_of_entries(F.binary_cross_entropy, _binary)
_of_entries(F.binary_cross_entropy_with_logits, _of_scores)
_of_entries(F.kl_div, _divergence)


@_loss(F.margin_ranking_loss)
def _ranking(input1: Any, input2: Any, target: Any, margin: float = 0) -> Any:
    _expect_alike(True, input1, input2, target)
    return eb.clip(-(lift(target) * (lift(input1) - lift(input2))) + margin, 0.0, None)


@_loss(F.gaussian_nll_loss)
def _gaussian(input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6) -> Any:
    x, v = node(input), node(var)
    v = v if len(v.spec.shape) in (0, len(x.spec.shape)) else eb.unsqueeze(v, len(v.spec.shape))
    v = v + eb.stop_gradient(eb.clip(v, eps, None) - v)  # which PyTorch's gradient does not see
    found = (eb.log(v) + eb.square(x - lift(target)) / v) * 0.5
    return found + 0.5 * math.log(2 * math.pi) if full else found


def _poisson(x: Any, y: Any, log_input: bool = True, full: bool = False, eps: float = 1e-8) -> Any:
    found = eb.exp(x) - y * x if log_input else x - y * eb.log(x + eps)
    if not full:
        return found
    many = eb.greater(y, 1.0)
    some = eb.where(many, y, 1.0)
    return found + eb.where(many, some * eb.log(some) - some + eb.log(some * 2 * math.pi) * 0.5, 0.0)


def _hinge(x: Any, y: Any, margin: float = 1.0) -> Any:
    return eb.where(eb.not_equal(y, 1.0), eb.clip(margin - x, 0.0, None), 0.0) + eb.where(eb.not_equal(y, -1.0), x, 0.0)


_of_entries(F.poisson_nll_loss, _poisson)
_of_entries(F.hinge_embedding_loss, _hinge)


@_loss(F.cosine_embedding_loss)
def _cosine(input1: Any, input2: Any, target: Any, margin: float = 0) -> Any:
    a, b, y = node(input1), node(input2), lift(target)
    _expect_alike(True, a, b)
    lengths = (eb.sum(eb.square(a), -1) + 1e-12) * (eb.sum(eb.square(b), -1) + 1e-12)
    cosine = eb.sum(a * b, -1) * eb.power(lengths, -0.5)
    far = eb.where(eb.equal(y, -1.0), eb.clip(cosine - margin, 0.0, None), 0.0)
    return eb.where(eb.equal(y, 1.0), 1.0 - cosine, far)


@_loss(F.triplet_margin_loss)
def _triplet(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False
) -> Any:
    _expect_alike(True, anchor, positive, negative)
    near, far = distance(anchor, positive, p, eps), distance(anchor, negative, p, eps)
    if swap:
        far = eb.minimum(far, distance(positive, negative, p, eps))
    return eb.clip(near - far + margin, 0.0, None)


@_loss(F.multi_margin_loss)
def _margins(input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None) -> Any:
    expect_default("weight", weight)
    expect_default("p", p, 1, 2)
    x, labels = node(input), integers(target)
    if labels.shape != x.spec.shape[:-1] or (labels < 0).any():
        raise refused(f"multi_margin_loss of {list(x.shape)} and labels {labels}", "expected one from 0 for each row")
    right = eb.gather(x, labels[..., None], labels.ndim)
    each = eb.clip(x - right + margin, 0.0, None)
    others = np.arange(x.spec.shape[-1]) != labels[..., None]
    return eb.mean(eb.where(others, each if p == 1 else eb.square(each), 0.0), -1)


def _of_labels(logs: Any, target: Any, weight: Any, ignore: int, smoothing: float = 0.0) -> Any:
    """Of logarithms of probabilities and labels, which may be left out, and have weights."""
    labels, classes = integers(target), logs.spec.shape[-1]
    if len(logs.shape) > 2 or labels.shape != logs.spec.shape[:-1]:
        raise refused(f"a loss of {list(logs.shape)} and labels {list(labels.shape)}", "expected [n, classes] and [n]")
    kept = np.asarray(labels != ignore)
    if ((labels < 0) | (labels >= classes))[kept].any():
        raise IndexError(f"Target {labels[kept]} is out of bounds.")
    places = np.asarray(labels * kept)
    if weight is None and not smoothing and kept.all():  # the usual, and fast
        return -eb.squeeze(eb.gather(logs, places[..., None], labels.ndim), labels.ndim), float(labels.size)
    if weight is not None:
        recording().expect_constant(weight)
    weights = torch.ones(classes, dtype=logs.dtype) if weight is None else weight.detach()
    chosen = torch.where(torch.from_numpy(kept), weights[torch.from_numpy(places)], 0.0)
    right = eb.gather(logs, places[..., None], labels.ndim)
    found = -(eb.squeeze(right, labels.ndim) * lift(chosen))
    if smoothing:
        found = found * (1 - smoothing) - eb.sum(logs * lift(weights), -1) * (smoothing / classes)
    return eb.where(kept, found, 0.0), float(chosen.sum())  # what is left out may be infinite


def _expect_plain(weight: Any = None, ignore_index: int = -100, **_: Any) -> None:
    """Refuse what depends on a label's number where that is an integer argument of a cell."""
    expect_default("weight", weight)
    expect_default("ignore_index", ignore_index, -100)


@_loss(F.nll_loss)
def _likelihood(input: Any, target: Any, weight: Any = None, ignore_index: int = -100) -> Any:
    if isinstance(target, torch.Tensor):
        return _of_labels(node(input), target, weight, ignore_index)
    _expect_plain(weight, ignore_index)
    return -eb.pick(node(input), target)


@_loss(F.cross_entropy)
def _entropy(
    input: Any, target: Any, weight: Any = None, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Any:
    x, logs = node(input), eb.log_softmax(node(input), 1 if len(input.shape) > 1 else 0)
    if not (isinstance(target, eb.Expression) or target.is_floating_point()):
        return _of_labels(logs, target, weight, ignore_index, label_smoothing)
    y = lift(target)
    expect_default("ignore_index", ignore_index, -100)
    if tuple(y.shape) != x.spec.shape or len(y.shape) > 2:
        raise refused(f"cross_entropy of {list(x.shape)} and target {list(y.shape)}", "expected one shape")
    if label_smoothing:
        y = y * (1 - label_smoothing) + label_smoothing / x.spec.shape[-1]
    return -eb.sum(y * (logs if weight is None else logs * lift(weight)), -1)


_of_many = HANDLERS[F.cross_entropy]
_bound = signature(F.cross_entropy).bind


@register(F.cross_entropy)
def cross_entropy(input: Any, target: Any, *args: Any, **given: Any) -> Any:
    """One label alone, as in most losses of one sample, is one node."""
    x, smoothing = node(input), given.get("label_smoothing", 0.0)
    if isinstance(target, Unread) and target.shape:
        target = target.tensor
    elif not isinstance(target, torch.Tensor | Unread):
        target = lift(target)  # rows of several numbers, or an integer
    if not isinstance(target, torch.Tensor | eb.Expression):  # an integer argument of a cell
        given = _bound(input, target, *args, **given).arguments
        _expect_plain(**given)
        return eb.cross_entropy(x, target, given.get("label_smoothing", 0.0))
    shape = x.spec.shape
    is_plain = not args and all(given.get(name) is None for name in ("weight", "size_average", "reduce"))
    if is_plain and target.__class__ is torch.Tensor and tuple(target.shape) == shape[:-1] and shape[:-1] in ((), (1,)):
        recording().expect_constant(target)
        label = target.item()
        if label.__class__ is int and label != given.get("ignore_index", -100):
            if not 0 <= label < shape[-1]:
                raise IndexError(f"Target {label} is out of bounds.")
            found = eb.cross_entropy(eb.squeeze(x, 0) if len(shape) > 1 else x, label, smoothing)
            return eb.unsqueeze(found, 0) if len(shape) > 1 and given.get("reduction") == "none" else found
    return _of_many(input, target, *args, **given)
