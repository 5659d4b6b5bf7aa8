"""One command that checks and measures EdBatch on a GPU: correctness, then throughput against PyTorch, in ten minutes.

    EDBATCH_DATA=... python scripts/gpu_check.py --json gpu.json > gpu.md
    python scripts/gpu_check.py --device cpu --quick        # the same code, in a minute, without a GPU

Needs the extras `bench`, `test`, and `cuda12` or `cuda13`. Without EDBATCH_DATA the samples are made up. First
TreeLSTM, BiLSTM tagger and LatticeLSTM are compared with the CPU and with float64, and tests run on the device; then
the device's ceilings are measured, then throughput, the most important points first, until `--minutes` are over: what
did not run is listed. PyTorch's networks have the same parameters (the tests compare them): per sample, batched by
hand, compiled, and captured as CUDA graphs.

What the columns mean:

- ms: from samples to the device being done, median of mini-batches, each of another structure; EdBatch's from
  recording in Python on, PyTorch's with what the host prepares. "ms prepared" is without that preparation; "ms in a
  row" is per mini-batch when nobody waits between them, and sentences/s follow from it.
- host ms: until everything is enqueued. device ms: in which a kernel or a copy ran (by CUPTI, in a run of its own).
- ratio: ms over EdBatch's ms, how many times as fast EdBatch is; "ratio prepared" (of EdBatch all is counted) and
  "ratio in a row" likewise.
- GFLOP: of the model's matrix products, however they are batched. MB: what must be moved at least.
  The fractions are of the ceilings measured in the same run.
- CUDA graphs are the best case: each mini-batch's own structure was captured before, and only replayed.

The exit code is 1 if something is wrong or failed.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import bench_common as bench  # first: it sets up the environment before NumPy loads
import torch
from gpu_ceilings import ceilings
from gpu_clock import message
from gpu_correctness import check
from gpu_figures import figures
from gpu_points import Point, points, run_point
from gpu_tasks import Task, all_tasks
from tqdm import tqdm

# What runs on the device in the time that tests get.
TESTS = ("tests/graph/test_ops.py", "tests/graph/test_gradients.py", "tests/runtime", "tests/models", "tests/training")
SHOWN = ("batch", "hidden", "precision", "by", "ms", "ms prepared", "ms in a row", "host ms", "device ms",
         "sentences/s", "batches", "launches", "waits", "GFLOP", "MB", "% of matrix rate", "% of copy bandwidth",
         "memory, MB", "ratio", "ratio prepared", "ratio in a row", "profile")  # fmt: skip
TO_COMPILE = 60  # seconds that have to be left for a point with torch.compile


def arguments(given: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, ... or cpu (default: cuda)")
    parser.add_argument("--minutes", type=float, default=9, help="time for everything (default: 9)")
    parser.add_argument("--json", type=Path, help="file for everything that was found out, written after every point")
    parser.add_argument("--show", type=Path, help="print the tables of such a file, and nothing else")
    parser.add_argument("--quick", action="store_true", help="small sizes and few points")
    parser.add_argument("--models", nargs="+", help="TreeLSTM, 'BiLSTM tagger', LatticeLSTM (default: all)")
    parser.add_argument("--rounds", type=int, default=None, help="mini-batches that a median is of (default: 9)")
    parser.add_argument("--tests", type=float, default=None, help="seconds for tests; 0: none (default: 90; quick: 0)")
    options = parser.parse_args(given)
    options.rounds = options.rounds or (2 if options.quick else 9)
    if options.tests is None:
        options.tests = 0 if options.quick else 90
    return options


def run_tests(device: str, seconds: float) -> dict[str, Any]:
    """Part of the suite, on the device."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *TESTS]
    command += [] if device == "cpu" else ["--device", device]
    try:
        done = subprocess.run(
            command, cwd=Path(__file__).parent.parent, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        return {"tests": f"none failed in {error.timeout:.0f} s, then stopped", "right": True, "output": ""}
    lines = (done.stdout + done.stderr).strip().splitlines()
    return {"tests": lines[-1] if lines else "", "right": done.returncode == 0, "output": "\n".join(lines[-40:])}


def about(device: str) -> dict[str, Any]:
    """Machine, GPU, versions."""
    found: dict[str, Any] = {"device": device, **bench.machine(), "torch": torch.__version__}
    if device == "cpu":
        return found
    where = torch.device(device).index or 0
    properties = torch.cuda.get_device_properties(where)
    found |= {
        "GPU": properties.name,
        "multiprocessors": properties.multi_processor_count,
        "memory, GB": 1e-9 * properties.total_memory,
        "compute capability": f"{properties.major}.{properties.minor}",
        "CUDA of PyTorch": torch.version.cuda,
        "cuDNN": torch.backends.cudnn.version(),
    }
    asked = ["nvidia-smi", f"--id={where}", "--query-gpu=driver_version,clocks.max.sm,clocks.max.mem",
             "--format=csv,noheader"]  # fmt: skip
    try:
        said = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
        found |= dict(zip(("driver", "largest SM clock", "largest memory clock"), said.split(", "), strict=False))
    except (OSError, subprocess.SubprocessError) as error:
        found["driver"] = f"unknown ({type(error).__name__})"
    if importlib.util.find_spec("cupy"):
        import cupy

        found |= {"cupy": cupy.__version__, "CUDA of CuPy": cupy.cuda.runtime.runtimeGetVersion()}
    return found


def run_points(
    todo: list[Point], tasks: dict[str, Task], options: argparse.Namespace, results: dict[str, Any], deadline: float
) -> None:
    """Rows of all points that the time suffices for, and what it did not suffice for, are added to the results."""
    broken = ""
    progress = tqdm(todo, "points", disable=None)
    for point in progress:
        if broken or perf_counter() + (TO_COMPILE if point.compiled else 0) > deadline:
            results["not run"].append(f"{point}{broken}")
            continue
        progress.set_postfix_str(str(point))
        try:
            rows = run_point(point, tasks[point.model], options.device, results["ceilings"], options.rounds, seconds=4)
        except Exception as error:
            rows = [{**point.place, "by": "all", "error": message(error)}]
        results["points"] += rows
        save(results, options.json)
        if options.device != "cpu":
            if not usable():
                broken = " (an error before has made the GPU unusable)"
            else:
                torch.cuda.empty_cache()  # EdBatch has a pool of its own beside it


def save(results: dict[str, Any], path: Path | None) -> None:
    """Replace the file in one step: whatever ends the run, what was measured is there."""
    if path is not None:
        beside = path.with_name(f".{path.name}")
        beside.write_text(json.dumps(results, indent=2) + "\n")
        beside.replace(path)


def usable() -> bool:
    """Whether the GPU still answers; after a fault in a kernel it does not."""
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def show(results: dict[str, Any]) -> None:
    """Everything as Markdown."""
    bench.show("Correctness: largest difference over the largest entry", results["correctness"])
    if "tests" in results:
        print(f"\nTests on the device: {results['tests']['tests']}")
        if not results["tests"]["right"]:
            print(results["tests"]["output"])
    bench.show("Ceilings", [{"ceiling": name, "measured": value} for name, value in results["ceilings"].items()])
    if results["asked for"]:
        bench.show("Asked for, of a data-centre GPU", results["asked for"])
    good = [row for row in results["points"] if "error" not in row]
    for model, mode in dict.fromkeys((row["model"], row["mode"]) for row in good):
        rows = [row for row in good if (row["model"], row["mode"]) == (model, mode)]
        columns = [name for name in SHOWN if any(name in row for row in rows)]
        bench.show(f"{model}, {mode}, {results['data']} data",
                   [{name: row.get(name, "") for name in columns} for row in rows])  # fmt: skip
    failed = [row for row in results["points"] if "error" in row]
    if failed:
        names = ("model", "mode", "batch", "hidden", "precision", "by", "error")
        bench.show("Failed", [{name: row[name] for name in names} for row in failed])
    if results["not run"]:
        print("\nNot run, for want of time: " + "; ".join(results["not run"]))
    print()
    for name, value in results["machine"].items():
        print(f"- {name}: {value}")


def compared(names: list[str], tasks: dict[str, Task], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Correctness of all models; one that fails has its error for a result."""
    sizes = [(16, 4)] if options.quick else [(64, 16), (37, 5)]  # 37: rows that are no multiple of 16 bytes
    rows: list[dict[str, Any]] = []
    for name, (hidden, size) in tqdm([(name, at) for name in names for at in sizes], "correctness", disable=None):
        try:
            rows += check(tasks[name], options.device, hidden, size)
        except Exception as error:
            rows.append({"model": name, "hidden": hidden, "compared": message(error), "right": False})
    return rows


def main(given: list[str] | None = None) -> int:
    """Run everything; the exit code."""
    options = arguments(given)
    if options.show:
        show(json.loads(options.show.read_text()))
        return 0
    deadline = perf_counter() + 60 * options.minutes
    if options.device == "cpu":
        torch.set_num_threads(1)
    elif torch.cuda.is_available():
        torch.cuda.set_device(torch.device(options.device).index or 0)
    else:
        print(f"--device {options.device}: PyTorch finds no GPU; --device cpu runs without one", file=sys.stderr)
        return 1
    folder = bench.data_folder()
    tasks = all_tasks(folder)
    names = options.models or list(tasks)
    if unknown := set(names) - tasks.keys():
        print(f"--models: {', '.join(sorted(unknown))}; expected some of {', '.join(tasks)}", file=sys.stderr)
        return 1
    gc.collect()
    gc.freeze()  # the data stays; the collector's work is then that of what is measured
    results: dict[str, Any] = {"data": "real" if folder else "made-up", "machine": about(options.device)}
    results["correctness"] = compared(names, tasks, options)
    if options.tests:
        results["tests"] = run_tests(options.device, options.tests)
    results["ceilings"] = ceilings(options.device, options.quick)
    results |= {"asked for": [], "points": [], "not run": []}
    todo = points(names, options.device, options.quick)
    run_points(todo, tasks, options, results, deadline)
    results["asked for"] = figures(results["points"], todo[0].batch, todo[0].hidden)
    if options.device != "cpu" and usable():
        free, total = torch.cuda.mem_get_info()
        results["machine"]["GPU memory in use at the end, GB"] = 1e-9 * (total - free)
    save(results, options.json)
    show(results)
    wrong = [row for row in [*results["correctness"], results.get("tests", {"right": True})] if not row["right"]]
    return int(bool(wrong) or any("error" in row for row in results["points"]))


if __name__ == "__main__":
    sys.exit(main())
