"""Pooling of the windows of sequences and images."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.torch.functions.layers import each
from edbatch.torch.recording import node
from edbatch.torch.registry import expect_default, refused, register


def _largest(ours: Any, axes: int, *functions: Any) -> None:
    def handler(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        expect_default("ceil_mode", ceil_mode, False)
        expect_default("return_indices", return_indices, False)
        numbers = [_plain(one, axes) for one in (kernel_size, stride or None, padding, dilation)]
        return each(lambda x: ours(x, *numbers), node(input), axes)

    register(*functions)(handler)


def _mean(ours: Any, axes: int, *functions: Any) -> None:
    def handler(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> Any:
        expect_default("ceil_mode", ceil_mode, False)
        expect_default("divisor_override", divisor_override)
        expect_default("count_include_pad", count_include_pad or padding in (0, (0,), (0, 0)), True)
        numbers = [_plain(one, axes) for one in (kernel_size, stride or None, padding)]
        return each(lambda x: ours(x, *numbers), node(input), axes)

    register(*functions)(handler)


def _plain(given: Any, axes: int) -> Any:
    """An integer, where there is one axis."""
    return given[0] if axes == 2 and isinstance(given, tuple | list) else given


_largest(eb.max_pool1d, 2, F.max_pool1d, torch.max_pool1d)
_largest(eb.max_pool2d, 3, F.max_pool2d, torch.max_pool2d)
_mean(eb.avg_pool1d, 2, F.avg_pool1d, torch.avg_pool1d)
_mean(eb.avg_pool2d, 3, F.avg_pool2d)


def _all_of(axes: int, *functions: Any) -> None:
    def handler(input: Any, output_size: Any) -> Any:
        if any(one != 1 for one in (output_size if isinstance(output_size, tuple | list) else (output_size,))):
            raise refused(f"adaptive pooling to {output_size}", "expected 1")
        return eb.mean(node(input), tuple(range(-axes, 0)), True)

    register(*functions)(handler)


_all_of(1, F.adaptive_avg_pool1d, torch.adaptive_avg_pool1d)
_all_of(2, F.adaptive_avg_pool2d)
