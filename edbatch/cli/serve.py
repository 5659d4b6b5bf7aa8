"""`edbatch serve`: answer requests by HTTP."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import edbatch as eb
from edbatch.base.text import printable
from edbatch.cli.access import hosts_of, listening, read_token
from edbatch.cli.arguments import Commands, add_command, add_option, integer
from edbatch.errors import EdBatchError, shown, warn
from edbatch.graph.model.checkpoint import policy_path

DESCRIPTION = """\
Answer requests by HTTP: POST a sample as JSON to /, and get what a program returns for it, as JSON.

MODULE:FUNCTION is called once, without arguments, and returns a model and a program:

    def parser():
        model = eb.ParameterCollection()
        network = TransitionParser(model, ...)
        return model, lambda words: network.parse(words)

/health says whether it answers, /metrics has figures for Prometheus, and / a page that shows them. What goes wrong is
told as {"error": ...}: by 400 if the sample is no JSON, or the program raises a ValueError; 413 if the body is too
large, or the sample takes more memory than there is; 415 if it is not sent as application/json; 408 if it takes too
long; 503 if too many requests wait, 504 after the deadline; and 500 if the program raises something else, or returns
what JSON does not have: NaN, infinity, an object. What a program raises is logged, with an identifier that the client
is told; only the text of an `edbatch.serving.RequestError` is sent.

Ctrl-C or SIGTERM answers what has come, and ends. It takes `pip install 'edbatch[serve]'`. Run `edbatch warm-up` once,
or the first requests wait while code is compiled. Clients that are not trusted belong behind a proxy: see the guide.
"""

OTHER_FILES = 64  # that a process has open beside connections
LIMITS = (  # the argument, its default, and what it means: it is an integer, and the field of `Limits` is not its name
    ("size", "--size-limit", 1 << 20, "bytes of a body"),
    ("depth", "--depth-limit", 200, "levels of lists and objects in a sample"),
    ("header_seconds", "--header-seconds", 10, "in which the header of a connection's next request has to come"),
    ("body_seconds", "--body-seconds", 60, "in which a body has to come, and an answer has to be taken"),
    ("connections", "--max-connections", 768, "that are open at a time; fewer where fewer files may be open"),
    ("stall_seconds", "--stall-seconds", 60, "in one round, after which /health answers 503"),
)
GRACE = 20  # seconds; who runs processes often kills those that take more than 30


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "serve", run, "answer requests by HTTP", DESCRIPTION)
    add = parser.add_argument
    add("source", metavar="MODULE:FUNCTION", help="returns a model and a program")
    add("--checkpoint", metavar="FILE", help="parameters of the model; a policy beside it is used")
    add("--policy", metavar="FILE", help="policy file, or a policy's name (default: critical-path)")
    add("--host", default="127.0.0.1", help="address to listen at (default: %(default)s)")
    add("--port", type=integer(0, 65535), default=8000, help="0: one that is free (default: %(default)s)")
    add_option(parser, "--max-in-flight", "requests that run at a time", 64)
    add_option(parser, "--max-waiting", "requests that may wait", 1024, least=0)
    add("--deadline", type=float, metavar="SECONDS", help="that a request may take, its body included")
    add_option(parser, "--grace", "seconds that requests have when it ends; then they are cancelled", GRACE, least=0)
    for _, name, default, meaning in LIMITS:
        add_option(parser, name, meaning, default)
    add("--exit-when-stalled", action="store_true", help="end, with status 70, when /health says so")
    hosts = "that requests may be sent to, as their Host says; may be repeated; *: any"
    hosts += " (default: the address listened at, and localhost)"
    add("--allow-host", action="append", default=[], metavar="NAME", help=hosts)
    add("--token-file", metavar="FILE", help="of the bearer token that all but /health needs")
    add("--debug", action="store_true", help="tell clients what programs raise")


def run(arguments: argparse.Namespace) -> None:
    """Serve until it is interrupted.

    Raises:
        EdBatchError: there is no such function, it returns something else, a file cannot be read, or the address cannot
            be listened at.
    """
    try:
        from edbatch.serving.connection import Server  # part of an extra
        from edbatch.serving.http import Service
        from edbatch.serving.json import reading
        from edbatch.serving.limits import Limits
    except ImportError as missing:
        raise EdBatchError(f"edbatch serve: {missing}; expected `pip install 'edbatch[serve]'`") from None
    given = {field: getattr(arguments, name[2:].replace("-", "_")) for field, name, *_ in LIMITS}
    limits = Limits(**given | {"connections": _connections(arguments.max_connections)})
    token = read_token(arguments.token_file) if arguments.token_file else None
    model, program = loaded(arguments.source)
    policy = arguments.policy
    if arguments.checkpoint:
        model.load(arguments.checkpoint)
        beside = policy_path(arguments.checkpoint)
        policy = policy or (beside if beside.exists() else None)
    batcher = eb.serving.Batcher(
        reading(program, limits.depth),
        model,
        max_in_flight=arguments.max_in_flight,
        max_waiting=arguments.max_waiting,
        deadline=arguments.deadline,
        policy=policy,
    )
    with listening(arguments.host, arguments.port) as sockets, suppress(KeyboardInterrupt):
        addresses = [one.getsockname()[:2] for one in sockets]
        service = Service(
            batcher,
            limits,
            debug=arguments.debug,
            ends=arguments.exit_when_stalled,
            hosts=hosts_of([host for host, _ in addresses], [arguments.host, *arguments.allow_host]),
            token=token,
        )
        for host, port in addresses:
            shown_host = f"[{host}]" if ":" in host else host
            print(f"edbatch: running on http://{shown_host}:{port} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        handler = logging.StreamHandler()
        handler.setFormatter(Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logging.basicConfig(handlers=[handler])
        Server(service.application(), limits, arguments.grace).run(sockets)


class Formatter(logging.Formatter):
    """Log lines, of which only the first of each record begins at the left: no text of a client passes for another."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        return printable(super().format(record), keeps="\n\t").replace("\n", "\n    ")


def _connections(most: int) -> int:
    """How many there may be, as each is an open file."""
    with suppress(ImportError):
        import resource  # not on Windows

        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files != resource.RLIM_INFINITY and files - OTHER_FILES < most:
            most = max(1, files - OTHER_FILES)
            warn(f"at most {most} connections, as {files} files may be open; expected more (see `ulimit -n`)")
    return most


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
