"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from edbatch.errors import EdBatchError

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

MADE_UP = 300  # samples, where no file is given


def add_command(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], None], help: str, description: str
) -> argparse.ArgumentParser:
    """Add a command; its parser, for its arguments.

    Args:
        run: does what it is for.
        help: one line; `description`: what its own help says, line by line.
    """
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser(name, help=help, description=description, formatter_class=form)
    parser.set_defaults(run=run)
    return parser


def add_option(parser: argparse.ArgumentParser, name: str, help: str, default: int, least: int = 1) -> None:
    """Add an option that is an integer."""
    parser.add_argument(name, type=integer(least), default=default, metavar="N", help=f"{help} (default: %(default)s)")


def integer(least: int, most: int | None = None) -> Callable[[str], int]:
    """An argparse type: integers from `least` on, to `most` if there is one."""

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            where = f"from {least} on" if most is None else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"expected an integer {where}, got {text!r}")
        return value

    return convert


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def add_model(parser: argparse.ArgumentParser, batch_size: int) -> None:
    """Add what says which model, over which samples."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="tree-lstm, tagger, ...")
    add("--data", "--trees", nargs="+", metavar="FILE", help=f"samples (default: {MADE_UP} that are made up)")
    add("--skip-bad", action="store_true", help="skip malformed samples, and count them")
    add("--limit", type=integer(1), metavar="N", help="take the first N samples of --data, or make up so many")
    add_option(parser, "--batch-size", "samples", batch_size)
    add("--hidden", type=integer(1), help="size of embeddings and states (default: 128; rntn 32, module-network 16)")
    add_option(parser, "--seed", "of what is random", 0, least=0)
    add_json(parser)


def check_output(path: str, *read: str | os.PathLike[str]) -> None:
    """Raise early where `path` can never be written, or had better not be, before minutes of work.

    Args:
        read: files that the command reads, which it must not replace.

    Raises:
        EdBatchError: its folder does not exist, or `path` is a folder itself, or one of those files.
    """
    if os.path.isdir(path):
        raise EdBatchError(f"{path}: is a folder; expected a file to write")
    if not os.path.isdir(Path(path).parent):
        raise EdBatchError(f"{path}: cannot be written (there is no folder {Path(path).parent})")
    if any(os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other) for other in read):
        raise EdBatchError(f"{path}: expected another file to write than one that is read")
