"""The `edbatch` command: learn policies, look at them, compare them."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence

import edbatch
from edbatch.base.table import printable
from edbatch.cli import demo, inspect, learn, run, schedule, serve, train, warm_up
from edbatch.errors import EdBatchError

BAD_INPUT = 2  # as argparse exits on a bad argument
INTERRUPTED = 128 + 2  # as a shell reports a program that SIGINT stopped
CLOSED_PIPE = 128 + 13  # as a shell reports a program that SIGPIPE stopped


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: the arguments; None takes those of the process.

    Returns:
        The exit status, unless argparse exits: 0; 2 after bad input, which is explained in one line on stderr; 130
        after Ctrl-C; 141 when nobody reads the output any more.

    Example:
        >>> main(["inspect", "agenda"])
        agenda: runs the ready type of smallest average depth, taken once over all its nodes
        0
    """
    arguments = _parser().parse_args(argv)
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: _say(f"edbatch: warning: {message}")
        try:
            arguments.run(arguments)
            print(end="", flush=True)  # so that what goes wrong with the output does so here
        except (EdBatchError, MemoryError) as error:
            return _explain(str(error) or "out of memory")
        except KeyboardInterrupt:
            return INTERRUPTED
        except OSError as error:
            # Python flushes stdout once more when it exits; let that go nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return CLOSED_PIPE if isinstance(error, BrokenPipeError) else _explain(str(error))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="edbatch",
        description="Automatic batching of neural networks whose structure differs per sample.",
        epilog="`edbatch COMMAND --help` explains a command.",
    )
    parser.add_argument("--version", action="version", version=f"edbatch {edbatch.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    form = argparse.RawDescriptionHelpFormatter
    for module in (demo, run, train, learn, schedule, inspect, serve, warm_up):
        name = module.__name__.rpartition(".")[2].replace("_", "-")
        command = commands.add_parser(name, help=module.HELP, description=module.DESCRIPTION, formatter_class=form)
        command.set_defaults(run=module.run)
        for names, how in module.OPTIONS.items():
            command.add_argument(*names.split(), **how)
    return parser


def _explain(message: str) -> int:
    _say(f"edbatch: error: {message}")
    return BAD_INPUT


def _say(text: str) -> None:
    print(printable(text, keeps="\n\t"), file=sys.stderr)
