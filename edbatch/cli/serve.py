"""`edbatch serve`: answer requests by HTTP."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

import edbatch as eb
from edbatch.cli.arguments import Commands, add_command, integer
from edbatch.errors import EdBatchError, shown
from edbatch.graph.model.checkpoint import policy_path

DESCRIPTION = """\
Answer requests by HTTP: POST a sample as JSON to /, and get what a program returns for it, as JSON.

MODULE:FUNCTION is called once, without arguments, and returns a model and a program:

    def parser():
        model = eb.ParameterCollection()
        network = TransitionParser(model, ...)
        return model, lambda words: network.parse(words)

/health says that it runs, /metrics has figures for Prometheus, and / a page that shows them. Ctrl-C answers what has
come, and ends. It takes `pip install 'edbatch[serve]'`.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "serve", run, "answer requests by HTTP", DESCRIPTION)
    parser.add_argument("source", metavar="MODULE:FUNCTION", help="returns a model and a program")
    parser.add_argument("--checkpoint", metavar="FILE", help="parameters of the model; a policy beside it is used")
    parser.add_argument("--policy", metavar="FILE", help="policy file, or the name of a policy (default: sufficient)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: %(default)s)")
    parser.add_argument("--port", type=integer(0), default=8000, help="0: one that is free (default: %(default)s)")
    parser.add_argument(
        "--max-in-flight", type=integer(1), default=64, help="requests that run at a time (default: %(default)s)"
    )
    parser.add_argument(
        "--max-waiting", type=integer(0), default=1024, help="requests that may wait (default: %(default)s)"
    )
    parser.add_argument("--deadline", type=float, metavar="SECONDS", help="that a request may take")
    parser.add_argument(
        "--size-limit", type=integer(1), default=1 << 20, metavar="BYTES", help="of a request (default: %(default)s)"
    )


def run(arguments: argparse.Namespace) -> None:
    """Serve until it is interrupted.

    Raises:
        EdBatchError: there is no such function, it returns something else, or a file cannot be read.
    """
    try:
        import uvicorn  # part of an extra

        from edbatch.serving.http import Service
    except ImportError as missing:
        raise EdBatchError(f"edbatch serve: {missing}; expected `pip install 'edbatch[serve]'`") from None
    model, program = loaded(arguments.source)
    policy = arguments.policy
    if arguments.checkpoint:
        model.load(arguments.checkpoint)
        beside = policy_path(arguments.checkpoint)
        policy = policy or (beside if beside.exists() else None)
    batcher = eb.serving.Batcher(
        program,
        model,
        max_in_flight=arguments.max_in_flight,
        max_waiting=arguments.max_waiting,
        deadline=arguments.deadline,
        policy=policy,
    )
    application = Service(batcher, arguments.size_limit).application()
    uvicorn.run(application, host=arguments.host, port=arguments.port, log_level="info", access_log=False)


def loaded(source: str) -> tuple[eb.ParameterCollection, Callable[[Any], Any]]:
    """The model and the program that `module:function` returns.

    Raises:
        EdBatchError: there is no such function, or it returns something else.
    """
    module, _, name = source.partition(":")
    if not module or not name:
        raise EdBatchError(f"{source}: expected MODULE:FUNCTION")
    sys.path.insert(0, os.getcwd())  # as `python -m` does
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise EdBatchError(f"{source}: {error}") from error
    finally:
        sys.path.pop(0)
    function = getattr(found, name, None)
    if not callable(function):
        raise EdBatchError(f"{source}: the module has no function {name!r}")
    made = function()
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], eb.ParameterCollection)):
        raise EdBatchError(f"{source}: expected it to return a model and a program, got {shown(made)}")
    if not callable(made[1]):
        raise EdBatchError(f"{source}: expected the program to be a function, got {shown(made[1])}")
    return made
