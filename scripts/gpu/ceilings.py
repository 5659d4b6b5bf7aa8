"""What the hardware can do at most: copies, matrix products, launches. Measured by PyTorch, which is there anyway."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from time import perf_counter
from typing import Any

import torch

PRECISIONS = ("float32", "tf32", "bf16")


@contextmanager
def torch_precision(precision: str) -> Iterator[Callable[[], AbstractContextManager[Any]]]:
    """PyTorch's matrix products, cuDNN's among them, in a precision: gives the context that runs have to be in."""
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest" if precision == "float32" else "high")
    torch.backends.cudnn.allow_tf32 = precision != "float32"
    bf16 = partial(torch.autocast, "cuda", torch.bfloat16, cache_enabled=False)
    try:
        yield bf16 if precision == "bf16" else nullcontext
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]


def hardware_ceilings(device: str, quick: bool = False) -> dict[str, float]:
    """Bytes per second of a copy (read and written), FLOP per second by precision, seconds per launch."""
    found = {"copy, B/s": copy_rate(device, (1 << 22) if quick else (1 << 28))}
    for precision in PRECISIONS if device != "cpu" else PRECISIONS[:1]:
        found[f"{precision}, FLOP/s"] = product_rate(device, precision, 512 if quick else 8192)
    return found if device == "cpu" else found | launches(device)


def copy_rate(device: str, entries: int) -> float:
    """Of one large copy."""
    source = torch.randn(entries, device=device)
    target = torch.empty_like(source)
    return 2 * source.nbytes / seconds_of(lambda: target.copy_(source), device)


def product_rate(device: str, precision: str, size: int) -> float:
    """Of square matrices of random numbers: products of zeros would be faster."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    out = torch.empty_like(a)
    with torch_precision(precision):
        return 2 * size**3 / seconds_of(lambda: torch.mm(a, b, out=out), device)


def seconds_of(function: Callable[[], Any], device: str, rounds: int = 5) -> float:
    """Median seconds per call on the device; several calls per round, so that it has no pause."""
    calls = 1 if device == "cpu" else 5
    for _ in range(2):
        function()
    measured = []
    for _ in range(rounds):
        if device == "cpu":
            start = perf_counter()
            function()
            measured.append(perf_counter() - start)
            continue
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(calls):
            function()
        end.record()
        end.synchronize()
        measured.append(1e-3 * begin.elapsed_time(end) / calls)
    return statistics.median(measured)


def launches(device: str, n: int = 500) -> dict[str, float]:
    """Of kernels with next to nothing to do: PyTorch's time on the host, and the device's from one to the next."""
    x = torch.zeros(1, device=device)

    def run() -> None:
        for _ in range(n):
            x.add_(1.0)

    run()
    torch.cuda.synchronize()
    hosts = []
    for _ in range(5):
        start = perf_counter()
        run()
        hosts.append(perf_counter() - start)
        torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return {
        "launch by PyTorch, host, s": statistics.median(hosts) / n,
        "launch in a CUDA graph, device, s": seconds_of(graph.replay, device) / n,
    }
