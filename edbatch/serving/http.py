"""Requests by HTTP: JSON in, JSON out, with figures for Prometheus and a page that shows them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

import msgspec
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from edbatch.errors import EdBatchError
from edbatch.serving.batcher import Batcher, DeadlineError, OverloadError
from edbatch.serving.json import sample_of, written
from edbatch.serving.page import PAGE

SIZE_LIMIT = 1 << 20  # bytes of a request
BODY_SECONDS = 60.0  # in which a body has to come, whatever the deadline
CLOSE_SECONDS = 5.0  # in which programs that nobody waits for have to end
STATUS_OF = {
    OverloadError: 503,
    DeadlineError: 504,
    EdBatchError: 400,
    ValueError: 400,
}  # the first that fits; else 500
LATENCIES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)  # seconds

log = logging.getLogger("edbatch.serving")


class Service:
    """The endpoints of a batcher.

    Args:
        batcher: answers requests.
        size_limit: bytes that a request may have.
        body_seconds: in which they have to come; the deadline of the batcher holds as well.
    """

    def __init__(self, batcher: Batcher, size_limit: int = SIZE_LIMIT, body_seconds: float = BODY_SECONDS) -> None:
        self._batcher = batcher
        self._size_limit = size_limit
        self._body_seconds = min(body_seconds, batcher.deadline or body_seconds)
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._seconds = Histogram(
            "edbatch_request_seconds", "Time to the answer.", registry=self._registry, buckets=LATENCIES
        )

    def application(self) -> Starlette:
        """For any ASGI server; closes the batcher when it ends."""

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            try:
                yield
            except asyncio.CancelledError:  # a second Ctrl-C: nobody waits for what is left
                return
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._batcher.close()
            except TimeoutError:
                log.error("a program goes on, %g s after all who waited have left", CLOSE_SECONDS)

        return Starlette(
            routes=[
                Route("/", self._root, methods=["GET", "POST"]),
                Route("/health", self._health, methods=["GET"]),
                Route("/metrics", self._metrics, methods=["GET"]),
            ],
            exception_handlers={HTTPException: _refused},
            lifespan=lifespan,
        )

    async def _root(self, request: Request) -> Response:
        if request.method != "POST":
            return HTMLResponse(PAGE)
        try:
            return await self._answer(request)
        except ClientDisconnect:
            return Response(status_code=499)  # nobody reads it
        except HTTPException as error:
            return await _refused(request, error)
        except asyncio.CancelledError:
            return _failed(503, "the server ends")

    async def _answer(self, request: Request) -> Response:
        clock = asyncio.get_running_loop().time
        begun = clock()
        body = await self._body(request)
        try:
            sample = sample_of(body)
        except EdBatchError as error:
            return _failed(400, str(error))
        answering = asyncio.ensure_future(self._batcher(sample, since=begun))
        leaving = asyncio.ensure_future(_left(request))
        try:
            await asyncio.wait([answering, leaving], return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                raise ClientDisconnect
            result = answering.result()
        except ClientDisconnect:
            raise
        except Exception as error:
            status = next((status for kind, status in STATUS_OF.items() if isinstance(error, kind)), 500)
            if status == 500:
                log.error("a program failed", exc_info=error)
            return _failed(status, f"{type(error).__name__}: {_text(error)}")
        finally:
            leaving.cancel()
            answering.cancel()
        try:
            found = written(result)
        except EdBatchError as error:
            return _failed(500, str(error))
        self._seconds.observe(clock() - begun)
        return Response(found, media_type="application/json")

    async def _body(self, request: Request) -> bytes:
        """What a request says.

        Raises:
            HTTPException: it is too large, does not come in time, or is written in another way than plainly.
            ClientDisconnect: whoever asked has gone.
        """
        coding = request.headers.get("content-encoding", "identity")
        if coding != "identity":
            raise HTTPException(415, f"Content-Encoding: {coding}; expected none", {"Accept-Encoding": "identity"})
        too_large = HTTPException(413, f"expected at most {self._size_limit:,} bytes")
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._size_limit:  # without reading it
            raise too_large
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._body_seconds):
                async for part in request.stream():
                    size += len(part)
                    if size > self._size_limit:
                        raise too_large
                    parts.append(part)
        except TimeoutError:
            message = f"expected the whole body within {self._body_seconds:g} s"
            raise HTTPException(408, message, {"Connection": "close"}) from None
        return b"".join(parts)

    async def _health(self, _: Request) -> Response:
        return Response(b'{"status":"ok"}', media_type="application/json")

    async def _metrics(self, _: Request) -> Response:
        return Response(generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    def collect(self) -> Iterable[Metric]:
        """The batcher's counters, as Prometheus's client asks for them."""
        counted = self._batcher.counters
        requests = CounterMetricFamily("edbatch_requests", "Requests that have ended.", labels=["how"])
        for how in ("answered", "failed", "refused", "expired", "cancelled"):
            requests.add_metric([how], getattr(counted, how))
        yield requests
        yield GaugeMetricFamily("edbatch_in_flight", "Requests that run.", counted.in_flight)
        yield GaugeMetricFamily("edbatch_waiting", "Requests that wait.", counted.waiting)
        yield CounterMetricFamily("edbatch_rounds", "Rounds.", counted.rounds)
        yield CounterMetricFamily("edbatch_batches", "Batches.", counted.batches)


async def _left(request: Request) -> None:
    """Until whoever asked has gone."""
    while not await request.is_disconnected():
        await asyncio.sleep(0.05)


def _text(error: Exception) -> str:
    """What an error says, if it can."""
    try:
        return str(error)
    except Exception:
        return "it has no text"


async def _refused(request: Request, error: Exception) -> Response:
    """What the framework refuses, in the form of other answers."""
    assert isinstance(error, HTTPException)
    message, headers = error.detail, error.headers
    if error.status_code == 404:
        message = f"{request.url.path}: there is only /, /health and /metrics"
    elif headers and "Allow" in headers:
        allowed = ", ".join(sorted(headers["Allow"].split(", ")))  # in the order of a set
        message, headers = f"{request.method}: expected {allowed}", {"Allow": allowed}
    return _failed(error.status_code, message, headers)


def _failed(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    headers = {"Retry-After": "1"} if status == 503 else headers
    said = message.encode("utf-8", "replace").decode()  # what is no Unicode cannot be sent
    return Response(msgspec.json.encode({"error": said}), status, headers, "application/json")
