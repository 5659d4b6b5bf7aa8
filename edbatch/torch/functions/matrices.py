"""Products of vectors and matrices, and sums of products."""

# ruff: noqa: D103 (they are PyTorch's)
from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.errors import EdBatchError
from edbatch.torch.recording import lift, node, recording, stacked
from edbatch.torch.registry import Unlike, expect_default, register


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    x, W, b = node(input), lift(weight), lift(bias)
    axes = len(x.spec.shape)
    if axes == 1:
        return eb.matmul(W, x) if b is None else eb.affine(W, x, b)
    if axes == 2 and x.spec.shape[0] == 1 and len(W.spec.shape) == 2:  # [1, d] costs what [d] does
        return eb.unsqueeze(linear(eb.squeeze(x, 0), W, b), 0)
    y = eb.matmul(x, W.T)
    return y if b is None else eb.add(y, b)


@register(F.linear)
def _linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """The same, of rows where samples differ in their number."""
    if isinstance(input, torch.Tensor) and isinstance(weight, torch.Tensor) and input.dtype is not weight.dtype:
        raise EdBatchError(
            f"edbatch.torch: linear of a tensor of {input.dtype}: expected {weight.dtype}, as the weights"
        )
    if isinstance(input, torch.Tensor) and input.ndim == 2 and len(input) > 1 and recording().is_of_sample(input):
        return stacked(linear(eb.array(recording().promoted(input).numpy()), weight, bias))
    return linear(input, weight, bias)


@register(torch.matmul, methods="matmul")
def matmul(input: Any, other: Any) -> Any:
    a, b = lift(input), lift(other)
    if a.shape[:1] == (1,) and len(a.shape) == len(b.shape) == 2 and isinstance(a, eb.Expression):
        return eb.unsqueeze(eb.matmul(eb.squeeze(a, 0), b), 0)
    return eb.matmul(a, b)


def _product(name: str, first: int, second: int, added: str = "") -> None:
    """`matmul` of operands of so many axes, and the function that adds it to something."""

    def handler(input: Any, other: Any) -> Any:
        a, b = lift(input), lift(other)
        if (len(a.shape), len(b.shape)) != (first, second):
            raise Unlike
        return matmul(a, b)

    def adding(input: Any, left: Any, right: Any, *, beta: float = 1, alpha: float = 1) -> Any:
        y, x = handler(left, right), lift(input)
        return (y if alpha == 1 else y * alpha) + (x if beta == 1 else x * beta)

    register(getattr(torch, name), methods=name)(handler)
    if added:
        register(getattr(torch, added), methods=added)(adding)


_product("mm", 2, 2, "addmm")
_product("mv", 2, 1, "addmv")
_product("bmm", 3, 3, "baddbmm")
_product("dot", 1, 1)
_product("vdot", 1, 1)


# --- einsum

Axes = tuple[str, ...]  # of an operand, by label


def _axes_of(term: str, x: Any) -> Axes:
    """The labels of an operand; those of an ellipsis are counted from the last."""
    before, dots, after = term.partition("...")
    more = len(x.shape) - len(before) - len(after)
    if more < 0 or (more and not dots) or len({*before, *after}) < len(before) + len(after):
        raise Unlike  # or a letter is there twice
    return (*before, *(str(at) for at in range(more, 0, -1)), *after)


def _ordered(x: Any, axes: Axes, *groups: Axes) -> Any:
    """An operand with its axes in groups, each of which is one axis, after it was summed over all others."""
    wanted = tuple(axis for group in groups for axis in group)
    rest = tuple(at for at, axis in enumerate(axes) if axis not in wanted)
    if rest:
        x, axes = eb.sum(node(x), rest), tuple(axis for axis in axes if axis in wanted)
    if axes != wanted:  # `W.T` of a parameter is one product for all nodes of a batch
        x = x.T if len(axes) == 2 else eb.transpose(node(x), tuple(map(axes.index, wanted)))
    if all(len(group) == 1 for group in groups):
        return x
    sizes = iter(x.shape)
    return eb.reshape(node(x), tuple(math.prod(next(sizes) for _ in group) for group in groups))


def _contracted(a: Any, of_a: Axes, b: Any, of_b: Axes, needed: set[str]) -> tuple[Any, Axes]:
    """The product of two, summed over what nothing else needs."""
    sizes = dict(zip(of_a, a.shape, strict=True)) | dict(zip(of_b, b.shape, strict=True))
    both = tuple(axis for axis in of_a if axis in of_b and axis in needed)
    rows = tuple(axis for axis in of_a if axis not in of_b and axis in needed)
    columns = tuple(axis for axis in of_b if axis not in of_a and axis in needed)
    summed = tuple(axis for axis in of_a if axis in of_b and axis not in needed)
    axes = (*both, *rows, *columns)
    if not summed:
        shapes = [tuple(sizes[axis] if axis in of else 1 for axis in axes) for of in (of_a, of_b)]
        a, b = _ordered(a, of_a, both + rows), _ordered(b, of_b, both + columns)
        return eb.reshape(node(a), shapes[0]) * eb.reshape(node(b), shapes[1]), axes
    stacks = (both,) if both else ()
    y = eb.matmul(
        _ordered(a, of_a, *stacks, *((rows,) if rows or both else ()), summed),
        _ordered(b, of_b, *stacks, summed, *((columns,) if columns or both else ())),
    )
    return eb.reshape(y, tuple(sizes[axis] for axis in axes)), axes


@register(torch.einsum)
def einsum(equation: Any, *operands: Any) -> Any:
    if not isinstance(equation, str):
        raise Unlike
    xs = [lift(x) for x in (operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands)]
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(xs):
        raise Unlike
    axes = [_axes_of(term, x) for term, x in zip(terms, xs, strict=True)]
    sizes: dict[str, int] = {}
    for of, x in zip(axes, xs, strict=True):
        for axis, size in zip(of, x.shape, strict=True):
            if sizes.setdefault(axis, size) != size:
                raise Unlike
    dots = sorted((axis for axis in sizes if axis.isdigit()), key=int, reverse=True)
    if not arrow:
        once = sorted(axis for axis in sizes if not axis.isdigit() and inputs.count(axis) == 1)
        output = ("..." if dots else "") + "".join(once)
    before, _, after = output.partition("...")
    wanted = (*before, *(dots if "..." in output else ()), *after)
    if len(set(wanted)) < len(wanted) or not {*wanted} <= set(sizes):
        raise Unlike
    y, of = xs[0], axes[0]
    for at in range(1, len(xs)):
        y, of = _contracted(y, of, xs[at], axes[at], {*wanted, *(axis for more in axes[at + 1 :] for axis in more)})
    return node(_ordered(y, of, *((axis,) for axis in wanted)))


register(torch.outer, torch.ger, methods="outer ger")(lambda input, vec2: einsum("i,j->ij", input, vec2))


@register(F.bilinear)
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    found = einsum("...i,oij,...j->...o", input1, weight, input2)
    return found if bias is None else found + lift(bias)


# --- attention

#: Whether `nn.TransformerEncoder` may go a way that is faster for several sequences.
register(torch._nested_tensor_from_mask_left_aligned)(lambda *_: False)


@register(F.scaled_dot_product_attention)
def attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    expect_default(enable_gqa, False)
    q, k, v = node(query), node(key), node(value)
    scores = eb.matmul(q, eb.swapaxes(k, -2, -1)) * (scale or 1 / math.sqrt(q.spec.shape[-1]))
    if is_causal:
        expect_default(attn_mask)
        scores = eb.where(torch.ones(tuple(scores.shape[-2:])).tril().numpy(), scores, -math.inf)
    if attn_mask is not None:
        mask = lift(attn_mask)
        scores = eb.where(mask, scores, -math.inf) if attn_mask.dtype is torch.bool else scores + mask
    weights = eb.softmax(scores, -1)
    return eb.matmul(eb.dropout(weights, dropout_p) if dropout_p else weights, v)
