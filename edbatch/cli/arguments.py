"""Options of commands, as tables: by their names, with spaces between, what argparse is told of each."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any, TypeAlias

from edbatch.errors import EdBatchError

Options: TypeAlias = dict[str, dict[str, Any]]


def option(help: str, metavar: str | None = None, default: Any = None, **more: Any) -> dict[str, Any]:
    """An argument with a value; its help says the default, if there is one."""
    shown = help if default is None else f"{help} (default: %(default)s)"
    return {"help": shown, "metavar": metavar, "default": default, **more}


def number(help: str, default: int | None = None, least: int = 1, **more: Any) -> Any:
    """An argument that is an integer from `least` on."""

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"expected an integer from {least} on, got {text!r}")
        return value

    return option(help, "N", default, type=convert, **more)


def flag(help: str) -> dict[str, Any]:
    """An option without a value."""
    return {"help": help, "action": "store_true"}


JSON = {"--json": flag("print one JSON object instead of tables")}


def check_output(path: str, *read: str | os.PathLike[str]) -> None:
    """Raise before minutes of work where `path` can never be written, or is one of the files that are read.

    Raises:
        EdBatchError: its folder does not exist, or `path` is a folder itself, or one of those files.
    """
    if os.path.isdir(path):
        raise EdBatchError(f"{path}: is a folder; expected a file to write")
    if not os.path.isdir(Path(path).parent):
        raise EdBatchError(f"{path}: cannot be written (there is no folder {Path(path).parent})")
    if any(os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other) for other in read):
        raise EdBatchError(f"{path}: expected another file to write than one that is read")
