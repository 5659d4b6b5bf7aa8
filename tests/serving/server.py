"""The HTTP service in a thread, on a port that is free."""

import socket
import threading
import time
from functools import partial

import httpx

from edbatch.serving import Batcher
from edbatch.serving.connection import Server as Uvicorn
from edbatch.serving.http import Service
from edbatch.serving.json import reading
from edbatch.serving.limits import Limits

HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
JSON = {"Content-Type": "application/json"}
LIMITS = Limits(size=1000, depth=200, header_seconds=60, body_seconds=60, connections=768, stall_seconds=60)

# Code may have to be compiled before there is an answer, and the machine may be busy.
get, post = partial(httpx.get, timeout=60), partial(httpx.post, timeout=60, headers=JSON)


class Server:
    """Answers while its block is open.

    Args:
        program: as of a `Batcher`, from samples.
        service: settings of the service.
        settings: limits, and settings of the batcher.
    """

    def __init__(self, program, service=None, **settings):
        limits = LIMITS._replace(**{name: settings.pop(name) for name in Limits._fields if name in settings})
        self.batcher = Batcher(reading(program, limits.depth), **settings)
        self._server = Uvicorn(Service(self.batcher, limits, **service or {}).application(), limits)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],))

    @property
    def connections(self):
        """How many are open."""
        return len(self._server.server_state.connections)

    def __enter__(self):
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self._server.should_exit = True
        self._thread.join()
