"""Connections of the HTTP server: clients that send or take nothing are not waited for, and they are not too many."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from types import FrameType
from typing import Any

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from edbatch.serving.limits import Limits

BACKLOG = 2048  # connections that wait to be accepted
LINGER_BYTES, LINGER_SECONDS = 1 << 20, 2.0  # of a refused body that is read on, so that its sender gets the answer


class Server(uvicorn.Server):
    """A server of the service, whose connections have limits, and requests so many seconds of grace when it ends."""

    def __init__(self, application: Starlette, limits: Limits, grace: int | None = None) -> None:
        config = uvicorn.Config(
            application,
            http=partial(_Connection, limits),  # type: ignore[arg-type]
            ws="none",  # it would be another protocol, without limits
            backlog=1,  # accepted at a time: without files, asyncio tries as often, and logs each
            timeout_keep_alive=limits.header_seconds,
            timeout_graceful_shutdown=grace,
            log_config=None,
            log_level="info",
            access_log=False,
            proxy_headers=False,
        )
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        for one in sockets or ():
            one.listen(BACKLOG)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end; at a second Ctrl-C, drop the connections, which `asyncio` waits for since Python 3.12."""
        super().handle_exit(sig, frame)
        if self.force_exit:
            for connection in list(self.server_state.connections):
                connection.transport.abort()


class _Connection(H11Protocol):
    """One connection."""

    def __init__(self, limits: Limits, **given: Any) -> None:
        super().__init__(**given)
        self._limits = limits
        self._awaited = ""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_Transport(transport, self))  # type: ignore[arg-type]
        transport.set_write_buffer_limits(0)  # writing is paused until all is taken
        if len(self.connections) > self._limits.connections:
            self._refuse("503 Service Unavailable", "too many connections")
        self._await()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._await()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.reads_on and not self.transport.is_closing():
            self.transport.close()

    @property
    def reads_on(self) -> bool:
        """Whether a body is on its way that nobody reads."""
        return self.conn.their_state is h11.SEND_BODY and self.cycle is not None and self.cycle.response_complete

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._await()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._await()

    def _await(self) -> None:
        """Have the time run in which the client has to do what is awaited of it, however it does so part by part."""
        awaited = "answer" if self.flow.write_paused else ""
        if not awaited and self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            awaited = "header"
        if awaited != self._awaited:
            self._awaited = awaited
            if self._timer is not None:
                self._timer.cancel()
            seconds = self._limits.header_seconds if awaited == "header" else self._limits.body_seconds
            self._timer = self.loop.call_later(seconds, self._late) if awaited else None

    def _late(self) -> None:
        if self._awaited == "header":
            self._refuse("408 Request Timeout", "the header took too long")
        else:
            self.transport.abort()

    def _refuse(self, status: str, message: str) -> None:
        """Answer what is no request, and close."""
        said = f'{{"error":"{message}"}}'
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(said)}\r\n"
        self.transport.write(f"{head}Connection: close\r\n\r\n{said}".encode())
        self.transport.close()


class _Transport:
    """A transport that ends its side and reads on when it is closed before a body has come.

    Closing a socket with unread bytes resets the connection, and the client may lose the answer.
    """

    def __init__(self, transport: asyncio.Transport, connection: _Connection) -> None:
        self._transport, self._connection = transport, connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def close(self) -> None:
        """Close, at once or when the client has sent what it is sending."""
        if not self._connection.reads_on:
            self._transport.close()
        elif not isinstance(self._transport.get_protocol(), _Rest):
            self._transport.set_protocol(_Rest(self._transport, self._connection))


class _Rest(asyncio.Protocol):
    """The rest of a body, thrown away until the client closes, or takes too long, or sends too much."""

    def __init__(self, transport: asyncio.Transport, connection: _Connection) -> None:
        self._transport, self._connection, self._size = transport, connection, 0
        transport.write_eof()
        transport.resume_reading()
        self._timer = asyncio.get_running_loop().call_later(LINGER_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Count what comes."""
        self._size += len(data)
        if self._size > LINGER_BYTES:
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Tell the connection."""
        self._timer.cancel()
        self._connection.connection_lost(error)

    def pause_writing(self) -> None:
        """Tell the connection that an answer is not taken; it is told when it is, too."""
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()
