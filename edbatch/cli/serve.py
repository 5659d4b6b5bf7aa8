"""`edbatch serve`: answer requests by HTTP."""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
from contextlib import suppress

import edbatch as eb
from edbatch.base.table import printable
from edbatch.cli.arguments import Options, flag, number, option
from edbatch.cli.script import served
from edbatch.errors import EdBatchError
from edbatch.graph.model.checkpoint import policy_path

LOCAL = ("localhost", "127.0.0.1", "::1")
OTHERS = 0o026  # permissions: the group may write, or all may read or write

HELP = "answer requests by HTTP"
DESCRIPTION = """\
Answer requests by HTTP: POST a sample as JSON to /, and get what a program returns for it, as JSON.

MODULE:FUNCTION (or FILE.py:FUNCTION) is called once, without arguments, and returns a model and a program:

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
    "--port": number("0: one that is free", 8000, least=0),
    "--max-in-flight": number("requests that run at a time", 64),
    "--max-waiting": number("requests that may wait", 1024, least=0),
    "--deadline": option("that a request may take, its body included", "SECONDS", type=float),
    "--grace": number("seconds that requests have when it ends; then they are cancelled", 20, least=0),
    "--size-limit": number("bytes of a body", 1 << 20, dest="size"),
    "--depth-limit": number("levels of lists and objects in a sample", 200, dest="depth"),
    "--header-seconds": number("in which the header of a connection's next request has to come", 10),
    "--body-seconds": number("in which a body has to come, and an answer has to be taken", 60),
    "--max-connections": number(
        "open at a time, each of which is an open file (see `ulimit -n`)", 768, dest="connections"
    ),
    "--stall-seconds": number("in one round, after which /health answers 503", 60),
    "--exit-when-stalled": flag("end, with status 70, when /health says so"),
    "--allow-host": option(
        "a Host of requests, beside the address and localhost; may be repeated; *: any", "NAME", action="append"
    ),
    "--token-file": option("of the bearer token that all but /health needs", "FILE"),
    "--debug": flag("tell clients what programs raise"),
}


def run(arguments: argparse.Namespace) -> None:
    """Serve until it is interrupted."""
    try:
        from edbatch.serving.connection import Server  # part of an extra
        from edbatch.serving.http import Service
        from edbatch.serving.json import reading
        from edbatch.serving.limits import Limits
    except ImportError as missing:
        raise EdBatchError(f"edbatch serve: {missing}; expected `pip install 'edbatch[serve]'`") from None
    limits = Limits(**{name: getattr(arguments, name) for name in Limits._fields})
    token = _read_token(arguments.token_file) if arguments.token_file else None
    model, program = served(arguments.source)
    policy = arguments.policy
    if arguments.checkpoint:
        model.load(arguments.checkpoint)
        beside = policy_path(arguments.checkpoint)
        policy = policy or (beside if beside.exists() else None)
    given = {name: getattr(arguments, name) for name in ("max_in_flight", "max_waiting", "deadline")}
    batcher = eb.serving.Batcher(reading(program, limits.depth), model, policy=policy, **given)
    with _listening(arguments.host, arguments.port) as listening, suppress(KeyboardInterrupt):
        host, port = listening.getsockname()[:2]
        names = (*LOCAL, host, arguments.host, *(arguments.allow_host or ()))
        hosts = {name.strip("[]").rstrip(".").lower() for name in names}
        how = {"debug": arguments.debug, "ends": arguments.exit_when_stalled, "hosts": hosts, "token": token}
        service = Service(batcher, limits, **how)
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        print(f"edbatch: running on http://{address} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        handler = logging.StreamHandler()
        handler.setFormatter(Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logging.basicConfig(handlers=[handler])
        Server(service.application(), limits, arguments.grace).run([listening])


class Formatter(logging.Formatter):
    """Log lines, of which only the first of each record begins at the left: no text of a client passes for another."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        return printable(super().format(record), keeps="\n\t").replace("\n", "\n    ")


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens at an address of a host: one of IPv4, if there is one."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = min(found, key=lambda one: one[0] != socket.AF_INET)
        return socket.create_server(address, family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        raise EdBatchError(f"--host {host} --port {port}: cannot listen ({error})") from error


def _read_token(path: str) -> bytes:
    """The token that a file holds."""
    try:
        with open(path, "rb") as file:
            mode, token = os.fstat(file.fileno()).st_mode, file.read(4097).strip()
    except OSError as error:
        raise EdBatchError(f"{path}: cannot be read ({error})") from None
    if os.name == "posix" and mode & OTHERS:
        raise EdBatchError(f"{path}: other users may read or write it (mode {mode & 0o777:o}); run `chmod 600` on it")
    if not 16 <= len(token) <= 4096 or not all(33 <= byte <= 126 for byte in token):
        raise EdBatchError(f"{path}: expected one token, of 16 characters or more, as `openssl rand -hex 32` writes")
    return token
