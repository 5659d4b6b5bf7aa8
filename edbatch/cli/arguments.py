"""Arguments that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from edbatch.errors import EdBatchError


def integer(least: int) -> Callable[[str], int]:
    """An argparse type: integers from `least` on."""

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"expected an integer from {least} on, got {text!r}")
        return value

    return convert


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def check_folder(path: str) -> None:
    """Raise early where `path` can never be written, before minutes of work.

    Raises:
        EdBatchError: its folder does not exist, or `path` is a folder itself.
    """
    if Path(path).is_dir():
        raise EdBatchError(f"{path}: is a folder; expected a file to write")
    if not Path(path).parent.is_dir():
        raise EdBatchError(f"{path}: cannot be written (there is no folder {Path(path).parent})")
