"""`edbatch serve`: answer requests by HTTP."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
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

/health says that it runs, /metrics has figures for Prometheus, and / a page that shows them. What goes wrong is told
as {"error": ...}: by 400 if the sample is no JSON, or the program raises a ValueError (as an EdBatchError is); 413 if
the body is too large, 408 if it takes longer than the deadline or a minute; 503 if too many requests wait, 504 after
the deadline; and 500 if the program raises something else, which is logged, or returns what JSON does not have: NaN,
infinity, an object.

Ctrl-C or SIGTERM answers what has come, and ends. It takes `pip install 'edbatch[serve]'`. Run `edbatch warm-up` once,
or the first requests wait while code is compiled. Clients that are not trusted belong behind a proxy that limits how
many they are, and how slow.
"""

BACKLOG = 2048  # connections that wait to be accepted
GRACE = 20  # seconds; who runs processes often kills those that take more than 30


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "serve", run, "answer requests by HTTP", DESCRIPTION)
    parser.add_argument("source", metavar="MODULE:FUNCTION", help="returns a model and a program")
    parser.add_argument("--checkpoint", metavar="FILE", help="parameters of the model; a policy beside it is used")
    parser.add_argument("--policy", metavar="FILE", help="policy file, or a policy's name (default: critical-path)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: %(default)s)")
    parser.add_argument(
        "--port", type=integer(0, 65535), default=8000, help="0: one that is free (default: %(default)s)"
    )
    parser.add_argument(
        "--max-in-flight", type=integer(1), default=64, help="requests that run at a time (default: %(default)s)"
    )
    parser.add_argument(
        "--max-waiting", type=integer(0), default=1024, help="requests that may wait (default: %(default)s)"
    )
    parser.add_argument("--deadline", type=float, metavar="SECONDS", help="that a request may take, its body included")
    parser.add_argument(
        "--size-limit", type=integer(1), default=1 << 20, metavar="BYTES", help="of a request (default: %(default)s)"
    )
    parser.add_argument(
        "--grace",
        type=integer(0),
        default=GRACE,
        metavar="SECONDS",
        help="that requests may take when it ends; they are then cancelled (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Serve until it is interrupted.

    Raises:
        EdBatchError: there is no such function, it returns something else, a file cannot be read, or the address cannot
            be listened at.
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
    config = uvicorn.Config(application, log_level="info", access_log=False, timeout_graceful_shutdown=arguments.grace)
    with listening(arguments.host, arguments.port) as sockets, suppress(KeyboardInterrupt):
        for one in sockets:
            host, port = one.getsockname()[:2]
            shown_host = f"[{host}]" if ":" in host else host
            print(f"edbatch: running on http://{shown_host}:{port} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        uvicorn.Server(config).run(sockets)


@contextmanager
def listening(host: str, port: int) -> Iterator[list[socket.socket]]:
    """Sockets that listen at all addresses of a host.

    Raises:
        EdBatchError: there is no such host, or one of them is taken.
    """
    with ExitStack() as opened:
        sockets, missing = [], None
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            for family, address in dict.fromkeys((family, address) for family, *_, address in found):
                try:
                    one = socket.create_server(address, family=family, backlog=BACKLOG)
                    sockets.append(opened.enter_context(one))
                except OSError as error:
                    if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                        raise
                    missing = error  # a name may have an address of IPv6 where there is none
            if not sockets and missing is not None:
                raise missing
        except OSError as error:
            raise EdBatchError(f"--host {host} --port {port}: cannot be listened at ({error})") from error
        yield sockets


def loaded(source: str) -> tuple[eb.ParameterCollection, Callable[[Any], Any]]:
    """The model and the program that `module:function` returns.

    Raises:
        EdBatchError: there is no such function, or it returns something else.
    """
    module, _, name = source.partition(":")
    if not name or not all(part.isidentifier() for part in module.split(".")):
        raise EdBatchError(f"{source}: expected MODULE:FUNCTION, the module as `import` names it")
    with _naming(source):
        sys.path.insert(0, os.getcwd())  # as `python -m` does
        try:
            found = importlib.import_module(module)
        finally:
            sys.path.pop(0)
    function = getattr(found, name, None)
    if not callable(function):
        raise EdBatchError(f"{source}: the module has no function {name!r}")
    with _naming(source):
        made = function()
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], eb.ParameterCollection)):
        raise EdBatchError(f"{source}: expected it to return a model and a program, got {shown(made)}")
    if not callable(made[1]):
        raise EdBatchError(f"{source}: expected the program to be a function, got {shown(made[1])}")
    return made


@contextmanager
def _naming(source: str) -> Iterator[None]:
    """Name the line of the user's module in whatever goes wrong in it."""
    try:
        yield
    except (Exception, SystemExit) as error:
        lines = traceback.extract_tb(error.__traceback__)
        ours = (__file__, importlib.__file__)
        places = [x for x in lines if x.filename not in ours and not x.filename.startswith("<frozen")]
        place = f" ({places[-1].filename}:{places[-1].lineno})" if places else ""
        what = "" if isinstance(error, EdBatchError | ImportError) else f"{type(error).__name__}: "
        raise EdBatchError(f"{source}: {what}{error}{place}") from error
