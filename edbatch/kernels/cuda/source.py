"""The CUDA C++ that is written by hand."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def rows() -> str:
    """Gathers, scatters, reductions and softmax: `rows.cu`, for NVRTC."""
    return files("edbatch.kernels.cuda").joinpath("rows.cu").read_text(encoding="utf-8")
