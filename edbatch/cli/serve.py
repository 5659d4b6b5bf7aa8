"""`edbatch serve`: answer requests by HTTP."""

from __future__ import annotations

import argparse
import logging
import sys
from contextlib import suppress

import edbatch as eb
from edbatch.base.text import printable
from edbatch.cli.access import LOCAL, listening, read_token
from edbatch.cli.arguments import Options, flag, number, option
from edbatch.cli.script import served
from edbatch.errors import EdBatchError, warn
from edbatch.graph.model.checkpoint import policy_path

OTHER_FILES = 64  # that a process has open beside connections

HELP = "answer requests by HTTP"
DESCRIPTION = """\
Answer requests by HTTP: POST a sample as JSON to /, and get what a program returns for it, as JSON.

MODULE:FUNCTION is called once, without arguments, and returns a model and a program:

    def parser():
        model = eb.ParameterCollection()
        network = TransitionParser(model, ...)
        return model, lambda words: network.parse(words)

/health says whether it answers, /metrics has figures for Prometheus, and / a page that shows them. What goes wrong is
told as {"error": ...}; what a program raises is logged, and only the text of an `edbatch.serving.RequestError` is sent.
The guide, docs/serving.md, has all statuses, and what to do about clients that are not trusted.

Ctrl-C or SIGTERM answers what has come, and ends. It takes `pip install 'edbatch[serve]'`. Run `edbatch warm-up` once,
or the first requests wait while code is compiled.
"""
OPTIONS: Options = {
    "source": option("returns a model and a program", "MODULE:FUNCTION"),
    "--checkpoint": option("parameters of the model; a policy beside it is used", "FILE"),
    "--policy": option("policy file, or a policy's name (default: critical-path)", "FILE"),
    "--host": option("address to listen at", default="127.0.0.1"),
    "--port": number("0: one that is free", 8000, least=0, most=65535),
    "--max-in-flight": number("requests that run at a time", 64),
    "--max-waiting": number("requests that may wait", 1024, least=0),
    "--deadline": option("that a request may take, its body included", "SECONDS", type=float),
    "--grace": number("seconds that requests have when it ends; then they are cancelled", 20, least=0),
    "--size-limit": number("bytes of a body", 1 << 20, dest="size"),
    "--depth-limit": number("levels of lists and objects in a sample", 200, dest="depth"),
    "--header-seconds": number("in which the header of a connection's next request has to come", 10),
    "--body-seconds": number("in which a body has to come, and an answer has to be taken", 60),
    "--max-connections": number(
        "that are open at a time; fewer where fewer files may be open", 768, dest="connections"
    ),
    "--stall-seconds": number("in one round, after which /health answers 503", 60),
    "--exit-when-stalled": flag("end, with status 70, when /health says so"),
    "--allow-host": option(
        "that requests may be sent to, as their Host says; may be repeated; *: any "
        "(default: the address listened at, and localhost)",
        "NAME",
        action="append",
    ),
    "--token-file": option("of the bearer token that all but /health needs", "FILE"),
    "--debug": flag("tell clients what programs raise"),
}


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
    arguments.connections = _connections(arguments.connections)
    limits = Limits(**{name: getattr(arguments, name) for name in Limits._fields})
    token = read_token(arguments.token_file) if arguments.token_file else None
    model, program = served(arguments.source)
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
        hosts = (*LOCAL, *(host for host, _ in addresses), arguments.host, *(arguments.allow_host or ()))
        service = Service(
            batcher,
            limits,
            debug=arguments.debug,
            ends=arguments.exit_when_stalled,
            hosts={host.strip("[]").rstrip(".").lower() for host in hosts},
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
