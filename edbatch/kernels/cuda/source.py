"""The CUDA C++ that is written by hand."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def rows() -> str:
    """What moves rows, and adds all of them to one, for NVRTC."""
    return "\n".join([common(), *map(_text, ("rows.cu", "lists.cu"))])


@cache
def common() -> str:
    """What written and generated kernels share."""
    return _text("common.cu")


def _text(name: str) -> str:
    return files("edbatch.kernels.cuda").joinpath(name).read_text(encoding="utf-8")
