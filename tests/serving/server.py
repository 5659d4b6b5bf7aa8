"""The HTTP service in a thread, on a port that is free."""

import threading
import time
from functools import partial

import httpx
import uvicorn

from edbatch.serving import Batcher
from edbatch.serving.http import Service

# Code may have to be compiled before there is an answer, and the machine may be busy.
get, post = partial(httpx.get, timeout=60), partial(httpx.post, timeout=60)


class Server:
    """Answers while its block is open.

    Args:
        program: as of a `Batcher`.
        size_limit: bytes that a request may have.
        body_seconds: in which they have to come.
        settings: others of the batcher.
    """

    def __init__(self, program, size_limit=1000, body_seconds=60, **settings):
        self.batcher = Batcher(program, **settings)
        application = Service(self.batcher, size_limit, body_seconds).application()
        self._server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="error"))
        self._thread = threading.Thread(target=self._server.run)

    def __enter__(self):
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *_):
        self._server.should_exit = True
        self._thread.join()
