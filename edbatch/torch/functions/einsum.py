"""Sums of products by `einsum`, as products of matrices: operand after operand."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.torch.recording import lift, node
from edbatch.torch.registry import refused, register

Axes = tuple[str, ...]  # of an operand, by label


def _axes_of(term: str, x: Any) -> Axes:
    """The labels of an operand; those of an ellipsis are counted from the last."""
    before, dots, after = term.partition("...")
    more = len(x.shape) - len(before) - len(after)
    if more < 0 or (more and not dots) or len({*before, *after}) < len(before) + len(after):
        raise refused(
            f"torch.einsum with {term!r} for a tensor of shape {list(x.shape)}",
            "expected a letter for each axis, once in an operand, and perhaps '...'",
        )
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


def _product(a: Any, of_a: Axes, b: Any, of_b: Axes, needed: set[str]) -> tuple[Any, Axes]:
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
    """Of letters, as `"ij,jk->ik"`."""
    if not isinstance(equation, str):
        raise refused("torch.einsum of lists of axes", "expected an equation, 'ij,jk->ik'")
    xs = [lift(x) for x in (operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands)]
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(xs):
        raise RuntimeError(f"einsum(): {len(terms)} operands in {equation!r}, got {len(xs)}")
    axes = [_axes_of(term, x) for term, x in zip(terms, xs, strict=True)]
    sizes: dict[str, int] = {}
    for of, x in zip(axes, xs, strict=True):
        for axis, size in zip(of, x.shape, strict=True):
            if sizes.setdefault(axis, size) != size:
                raise refused(
                    f"torch.einsum({equation!r}) of sizes {sizes[axis]} and {size}", "expected one for a letter"
                )
    dots = sorted((axis for axis in sizes if axis.isdigit()), key=int, reverse=True)
    if not arrow:
        once = sorted(axis for axis in sizes if not axis.isdigit() and inputs.count(axis) == 1)
        output = ("..." if dots else "") + "".join(once)
    before, _, after = output.partition("...")
    wanted = (*before, *(dots if "..." in output else ()), *after)
    if len(set(wanted)) < len(wanted) or not {*wanted} <= set(sizes):
        raise RuntimeError(f"einsum(): output {output!r} of {equation!r}: expected letters of operands, each once")
    y, of = xs[0], axes[0]
    for at in range(1, len(xs)):
        y, of = _product(y, of, xs[at], axes[at], {*wanted, *(axis for more in axes[at + 1 :] for axis in more)})
    return node(_ordered(y, of, *((axis,) for axis in wanted)))


register(torch.outer, torch.ger, methods="outer ger")(lambda input, vec2: einsum("i,j->ij", input, vec2))


@register(F.bilinear)
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """As `nn.Bilinear`."""
    found = einsum("...i,oij,...j->...o", input1, weight, input2)
    return found if bias is None else found + lift(bias)
