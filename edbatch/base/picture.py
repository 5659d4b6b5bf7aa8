"""Figures of Matplotlib written as files."""

from __future__ import annotations

import io
import os
from typing import Any

from edbatch.base.files import checked_path, write_atomically
from edbatch.errors import EdBatchError

FORMATS = ("png", "svg", "pdf")


def format_of(path: str | os.PathLike[str]) -> str:
    """What a picture's name ends with; PNG where it says nothing.

    Raises:
        EdBatchError: it is no path, or ends otherwise than with one of `FORMATS`.
    """
    ending = checked_path(path).suffix.removeprefix(".").lower() or "png"
    if ending not in FORMATS:
        raise EdBatchError(f"{path}: expected a name that ends with .{', .'.join(FORMATS)}")
    return ending


def write_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure as its file's name ends, in one step; the same figure is the same file.

    Raises:
        EdBatchError: the name ends otherwise than with one of `FORMATS`, or the file cannot be written.
    """
    form = format_of(path)
    drawn = io.BytesIO()
    undated = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[form]
    figure.savefig(drawn, format=form, metadata=undated)
    write_atomically(path, drawn.getvalue())


def missing(path: str | os.PathLike[str], error: ImportError) -> EdBatchError:
    """What is said where a library that draws is not installed."""
    name = "Matplotlib" if (error.name or "").startswith("matplotlib") else error.name
    return EdBatchError(f"{path}: {name} is not installed; expected pip install 'edbatch[plot]'")
