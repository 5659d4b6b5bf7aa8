"""What all benchmarks share: a clean environment, medians, tables, the machine they ran on."""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from tabulate import tabulate


def interleaved(functions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median seconds of each function; the functions take turns, so that noise hits all alike."""
    for function in functions.values():
        function()
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            gc.collect()
            start = perf_counter()
            function()
            seconds[name].append(perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def machine() -> dict[str, Any]:
    """Processor, cores, versions, and what the BLAS says of itself."""
    from threadpoolctl import threadpool_info

    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        name = next(
            (line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")),
            name,
        )
    np.dot(np.ones((2, 2)), np.ones((2, 2)))
    blas = [f"{pool['internal_api']} {pool['version']}, {pool.get('architecture')}, {pool['num_threads']} thread(s)"
            for pool in threadpool_info() if pool["user_api"] == "blas"]  # fmt: skip
    return {
        "processor": name,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": blas,
    }


def arguments(description: str) -> argparse.Namespace:
    """The command line of a benchmark without options of its own."""
    return parser(description).parse_args()


def parser(description: str) -> argparse.ArgumentParser:
    """What every command line has: `--json` for one JSON object instead of tables, `--rounds`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--rounds", type=int, default=9, help="runs that a median is taken over (default: 9)")
    return parser


def figure(name: str, measured: float | str, asked: float | str, unit: str = "") -> dict[str, Any]:
    """One measured figure beside the one asked for."""
    return {"figure": name, "measured": measured, "asked": asked, "unit": unit}


def show(title: str, rows: Sequence[dict[str, Any]]) -> None:
    """A table of figures, as Markdown."""
    print(f"\n### {title}\n")
    print(tabulate(rows, headers="keys", tablefmt="github", floatfmt=".3g"))


def finish(results: dict[str, Any], as_json: bool) -> None:
    """Print everything."""
    results["machine"] = machine()
    if as_json:
        print(json.dumps(results, indent=2))
        return
    for title, rows in results.items():
        if isinstance(rows, list):
            show(title, rows)
    print("\n" + tabulate(results["machine"].items(), tablefmt="plain"))
