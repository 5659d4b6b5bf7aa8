"""Where a server listens, and who may ask it."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from edbatch.errors import EdBatchError

LOCAL = ("localhost", "127.0.0.1", "::1")
OTHERS = 0o026  # permissions: the group may write, or all may read or write


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
                    one = socket.create_server(address, family=family, backlog=2048)
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


def read_token(path: str) -> bytes:
    """The token that a file holds.

    Raises:
        EdBatchError: it cannot be read, others may read or write it, or it holds no token.
    """
    try:
        with open(path, "rb") as file:
            mode, token = os.fstat(file.fileno()).st_mode, file.read(4097).strip()
    except OSError as error:
        raise EdBatchError(f"{path}: cannot be read ({error})") from None
    if os.name == "posix" and mode & OTHERS:
        raise EdBatchError(f"{path}: others may read or write it, its mode is {mode & 0o777:o}; expected `chmod 600`")
    if not 16 <= len(token) <= 4096 or not all(33 <= byte <= 126 for byte in token):
        raise EdBatchError(f"{path}: expected one token, of 16 characters or more, as `openssl rand -hex 32` writes")
    return token
