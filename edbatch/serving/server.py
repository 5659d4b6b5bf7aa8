"""A server whose second Ctrl-C ends it at once."""

from __future__ import annotations

from types import FrameType

import uvicorn


class Server(uvicorn.Server):
    """Uvicorn's, which waits for connections even then: since Python 3.12, `asyncio` calls none closed that is open."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end; at a second Ctrl-C, drop the connections."""
        super().handle_exit(sig, frame)
        if self.force_exit:
            for connection in list(self.server_state.connections):
                connection.transport.abort()
