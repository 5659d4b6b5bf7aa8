"""Requests by HTTP: JSON in, JSON out, with figures for Prometheus and a page that shows them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any

import msgspec
import numpy as np
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from edbatch.errors import EdBatchError
from edbatch.serving.batcher import Batcher, DeadlineError, OverloadError

SIZE_LIMIT = 1 << 20  # bytes of a request
STATUS_OF = {
    OverloadError: 503,
    DeadlineError: 504,
    EdBatchError: 400,
    ValueError: 400,
}  # the first that fits; else 500
LATENCIES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)  # seconds


class _TooLarge(Exception):
    """A body of more bytes than are read."""


class Service:
    """The endpoints of a batcher.

    Args:
        batcher: answers requests.
        size_limit: bytes that a request may have.
    """

    def __init__(self, batcher: Batcher, size_limit: int = SIZE_LIMIT) -> None:
        self._batcher = batcher
        self._size_limit = size_limit
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._seconds = Histogram(
            "edbatch_request_seconds", "Time to the answer.", registry=self._registry, buckets=LATENCIES
        )

    def application(self) -> Starlette:
        """For any ASGI server; closes the batcher when it ends."""

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            async with self._batcher:
                yield

        return Starlette(
            routes=[
                Route("/", self._page, methods=["GET"]),
                Route("/", self._answer, methods=["POST"]),
                Route("/health", self._health, methods=["GET"]),
                Route("/metrics", self._metrics, methods=["GET"]),
            ],
            lifespan=lifespan,
        )

    async def _answer(self, request: Request) -> Response:
        begun = perf_counter()
        try:
            sample = msgspec.json.decode(await self._body(request))
        except _TooLarge:
            return _failed(413, f"expected at most {self._size_limit:,} bytes")
        except msgspec.DecodeError as error:
            return _failed(400, f"expected JSON: {error}")
        except ClientDisconnect:
            return Response(status_code=499)
        answering = asyncio.ensure_future(self._batcher(sample))
        leaving = asyncio.ensure_future(_left(request))
        try:
            await asyncio.wait([answering, leaving], return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                return Response(status_code=499)  # nobody reads it
            result = answering.result()
        except Exception as error:
            status = next((status for kind, status in STATUS_OF.items() if isinstance(error, kind)), 500)
            return _failed(status, f"{type(error).__name__}: {error}")
        finally:
            leaving.cancel()
            answering.cancel()
        try:
            found = msgspec.json.encode(result, enc_hook=_plain)
        except (TypeError, ValueError) as error:
            return _failed(500, f"the program returned what JSON does not know: {error}")
        self._seconds.observe(perf_counter() - begun)
        return Response(found, media_type="application/json")

    async def _body(self, request: Request) -> bytes:
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > self._size_limit:
                raise _TooLarge
            parts.append(part)
        return b"".join(parts)

    async def _health(self, _: Request) -> Response:
        return Response(b'{"status":"ok"}', media_type="application/json")

    async def _metrics(self, _: Request) -> Response:
        return Response(generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _page(self, _: Request) -> Response:
        return HTMLResponse(PAGE)

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


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as JSON has them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise EdBatchError(
        f"the program returned {type(value).__name__}, which JSON does not know; expected numbers, texts, lists"
    )


def _failed(status: int, message: str) -> Response:
    headers = {"Retry-After": "1"} if status == 503 else None
    return Response(msgspec.json.encode({"error": message}), status, headers, "application/json")


PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>EdBatch</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 46em; margin: 3em auto; padding: 0 1em; color: #222 }
  table { border-collapse: collapse; width: 100% } td { padding: .3em .6em; border-bottom: 1px solid #ddd }
  td:last-child { text-align: right; font-variant-numeric: tabular-nums }
  svg { width: 100%; height: 8em; background: #f6f6f6 }
  polyline { fill: none; stroke: #2a6fb0; stroke-width: 2 } h1 { font-weight: 600 } .gone { color: #a00 }
</style>
<h1>EdBatch</h1>
<p id="state">Requests a second, of the last two minutes:</p>
<svg viewBox="0 0 120 40" preserveAspectRatio="none"><polyline id="line" vector-effect="non-scaling-stroke"/></svg>
<table id="figures"></table>
<p>POST JSON to this address to get an answer; <a href="/metrics">/metrics</a> is for Prometheus.</p>
<script>
const seen = [];
async function look() {
  const state = document.getElementById("state");
  let text;
  try { text = await (await fetch("/metrics")).text(); }
  catch { state.textContent = "The server does not answer."; state.className = "gone"; return; }
  const figures = {};
  for (const line of text.split("\\n")) {
    const found = /^edbatch_([a-z_]+?)(?:\\{how="(\\w+)"\\})? ([-\\d.e+]+)$/.exec(line);
    if (found && !found[1].endsWith("created")) figures[found[2] || found[1].replace("_total", "")] = Number(found[3]);
  }
  const mean = figures.request_seconds_count ? 1000 * figures.request_seconds_sum / figures.request_seconds_count : 0;
  const rows = [["answered", figures.answered], ["failed", figures.failed], ["refused", figures.refused],
    ["out of time", figures.expired], ["cancelled", figures.cancelled], ["in flight", figures.in_flight],
    ["waiting", figures.waiting], ["rounds", figures.rounds], ["batches", figures.batches],
    ["mean time to the answer, ms", mean.toFixed(2)]];
  document.getElementById("figures").innerHTML =
    rows.map(([name, value]) => `<tr><td>${name}<td>${Number(value).toLocaleString("en")}`).join("");
  seen.push(figures.answered);
  if (seen.length > 121) seen.shift();
  const rates = seen.slice(1).map((value, at) => value - seen[at]), top = Math.max(1, ...rates);
  document.getElementById("line").setAttribute(
    "points", rates.map((rate, at) => `${120 - rates.length + at},${39 - 38 * rate / top}`).join(" "));
  state.className = "";
  state.textContent = `Requests a second, of the last two minutes: now ${rates.at(-1) ?? 0}, at most ${top}`;
}
look(); setInterval(look, 1000);
</script></html>
"""
