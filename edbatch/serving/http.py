"""Requests by HTTP: JSON in, JSON out, with figures for Prometheus and a page that shows them."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from edbatch.base.table import printable
from edbatch.serving.batcher import Batcher
from edbatch.serving.errors import BatcherError, DeadlineError, OverloadError, RequestError
from edbatch.serving.guard import LOCAL, Guard, failed, refused
from edbatch.serving.json import written
from edbatch.serving.limits import Limits

CLOSE_SECONDS = 5.0  # in which programs that nobody waits for have to end
STUCK = 70  # status of a process that ends itself, as sysexits.h has it for an internal error
# The first that fits; else 500.
STATUS_OF = {OverloadError: 503, DeadlineError: 504, MemoryError: 413, BatcherError: 500, ValueError: 400}
SAID = {400: "the sample was refused", 413: "there is no memory for this sample", 500: "no answer could be made"}
LATENCIES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)  # seconds

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<title>EdBatch</title><h1>EdBatch</h1><p>What this server has done; <a href="/metrics">/metrics</a> is for Prometheus.
<table>%s</table><p>POST JSON to this address to get an answer.</html>
"""

log = logging.getLogger("edbatch.serving")


class Service:
    """The endpoints of a batcher, of a program that reads bytes (see `edbatch.serving.json.reading`).

    Args:
        debug: whether clients are told what programs raise; otherwise only the log is, with an identifier.
        ends: whether the process ends itself when nobody is answered any more.
        hosts, token: see `Guard`.
    """

    def __init__(
        self,
        batcher: Batcher,
        limits: Limits,
        *,
        debug: bool = False,
        ends: bool = False,
        hosts: Collection[str] = LOCAL,
        token: bytes | None = None,
    ) -> None:
        self._batcher, self._limits = batcher, limits
        self._body_seconds = min(limits.body_seconds, batcher.deadline or limits.body_seconds)
        self._debug, self._ends = debug, ends
        self._guard = Middleware(Guard, hosts=hosts, token=token)
        registry = self._registry = CollectorRegistry()
        registry.register(self)
        self._seconds = Histogram("edbatch_request_seconds", "Time to answer.", registry=registry, buckets=LATENCIES)

    def application(self) -> Starlette:
        """For any ASGI server; closes the batcher when it ends."""

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            watching = asyncio.ensure_future(self._watch())
            try:
                yield
            except asyncio.CancelledError:  # a second Ctrl-C: nobody waits for what is left
                return
            finally:
                watching.cancel()
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
            exception_handlers={HTTPException: refused},
            middleware=[self._guard],
            lifespan=lifespan,
        )

    async def _root(self, request: Request) -> Response:
        if request.method != "POST":
            figures = asdict(self._batcher.counters).items()
            return HTMLResponse(PAGE % "".join(f"<tr><td>{name}<td>{value:,}" for name, value in figures))
        try:
            return await self._answer(request)
        except ClientDisconnect:
            return Response(status_code=499)  # nobody reads it
        except asyncio.CancelledError:
            return failed(503, "the server ends")

    async def _answer(self, request: Request) -> Response:
        clock = asyncio.get_running_loop().time
        begun = clock()
        answering = asyncio.ensure_future(self._batcher(await self._body(request), since=begun))
        leaving = asyncio.ensure_future(_left(request))
        try:
            await asyncio.wait([answering, leaving], return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                raise ClientDisconnect
            found = written(answering.result())
        except ClientDisconnect:
            raise
        except Exception as error:
            return self._told(error)
        finally:
            leaving.cancel()
            answering.cancel()
        self._seconds.observe(clock() - begun)
        return Response(found, media_type="application/json")

    def _told(self, error: Exception) -> Response:
        """Tell what went wrong: who asked, as far as that is theirs to know, and the log."""
        status = next((status for kind, status in STATUS_OF.items() if isinstance(error, kind)), 500)
        if isinstance(error, OverloadError | DeadlineError | RequestError):
            return failed(status, str(error))
        name, said = secrets.token_hex(8), f"{type(error).__name__}: {_text(error)}"
        log.error("%s: %d, %s", name, status, printable(said), exc_info=error if status == 500 else None)
        return failed(status, said if self._debug else SAID[status], id=name)

    async def _body(self, request: Request) -> bytes:
        """What a request says; an `HTTPException` if it is too large, too late, or not plain JSON."""
        coding, kind = (",".join(request.headers.getlist(f"content-{name}")) for name in ("encoding", "type"))
        if coding not in ("", "identity"):
            raise HTTPException(415, f"Content-Encoding: {coding}; expected none", {"Accept-Encoding": "identity"})
        if kind.partition(";")[0].strip().lower() != "application/json":  # others, any page of a browser may send
            raise HTTPException(415, f"Content-Type: {kind or 'none'}; expected application/json")
        limit = self._limits.size
        too_large = HTTPException(413, f"expected at most {limit:,} bytes")
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > limit:  # without reading it
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self._body_seconds):
                async for part in request.stream():
                    body += part
                    if len(body) > limit:
                        raise too_large
        except TimeoutError:
            raise HTTPException(408, f"expected the whole body within {self._body_seconds:g} s") from None
        return bytes(body)

    async def _watch(self) -> None:
        """End the process when nobody is answered any more: the batcher's thread cannot be begun again."""
        while self._ends:
            if trouble := self._batcher.trouble(self._limits.stall_seconds):
                log.critical("%s; this process ends", trouble)
                logging.shutdown()
                os._exit(STUCK)
            await asyncio.sleep(min(1.0, self._limits.stall_seconds))

    async def _health(self, _: Request) -> Response:
        trouble = self._batcher.trouble(self._limits.stall_seconds)
        return failed(503, trouble) if trouble else Response(b'{"status":"ok"}', media_type="application/json")

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
