"""Part of the test suite, on a device, for as long as there is time."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from typing import Any

from scripts import ROOT

#: The most telling first.
TESTS = (
    "tests/kernels/cuda/test_cupy_driver.py", "tests/runtime/test_on_gpu.py",
    "tests/graph/test_ops.py", "tests/graph/test_gradients.py", "tests/kernels/cuda", "tests/runtime", "tests/models",
    "tests/training",
)  # fmt: skip
_RESULTS = "(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)"
RESULT = re.compile(rf"^(\S+::.*?) {_RESULTS}\b", re.MULTILINE)
OF_A_PROCESS = re.compile(rf"^\[gw\d+\] \[ *\d+%\] {_RESULTS} (\S+::.*?) *$", re.MULTILINE)


def run_tests(device: str, seconds: float, tests: tuple[str, ...] = TESTS) -> dict[str, Any]:
    """How many passed, which failed, and the end of what pytest printed."""
    command = [sys.executable, "-m", "pytest", "-v", "-nauto", "--tb=short", "--maxfail=5", "-p", "no:cacheprovider"]
    command += [*tests, *([] if device == "cpu" else ["--device", device.partition(":")[0]])]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False)
        printed, code, end = done.stdout + done.stderr, done.returncode, ""
    except subprocess.TimeoutExpired as error:
        printed = error.stdout.decode(errors="replace") if isinstance(error.stdout, bytes) else error.stdout or ""
        code, end = 0, f"; stopped after {seconds:.0f} s"
    found = RESULT.findall(printed) + [(name, result) for result, name in OF_A_PROCESS.findall(printed)]
    counts = Counter(result.lower() for _, result in found)
    failed = [name for name, result in found if result in ("FAILED", "ERROR")]
    right = code == 0 and not failed and bool(found)
    return {
        "tests": ", ".join(f"{n} {result}" for result, n in counts.most_common()) + end,
        "right": right,
        "failed": ", ".join(failed),
        "output": "" if right else "\n".join(printed.strip().splitlines()[-60:]),
    }
