"""Prove that the tests catch the classes of faults that the library has had.

    python -m tests.mutants              # all of them, some ten minutes
    python -m tests.mutants NAME ...     # these

Each mutant of `faults.py` is the library with one fault planted: some text of one module is replaced as it is imported.
The test that is named with it has to fail under the mutant, in a process of its own, and to pass without. What all of
them gave last is in `table.md`.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.mutants.faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]
LIMIT = 300  # seconds of a test: on a busy machine
PASSED, FAILED, NOT_PLANTED = 0, 1, 90  # exit statuses: the first two are pytest's


class Planted(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Finds and loads one module with the fault in it; nothing is read of or written to Python's caches."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(
            "edbatch." + fault.path.removesuffix(".py").replace("/", "."), str(ROOT / "edbatch" / fault.path)
        )
        self._fault = fault
        self.is_loaded = False

    def find_spec(self, name, path=None, target=None):
        """Of this module alone."""
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, name):
        """The code of the text with the fault."""
        self.is_loaded = True
        return compile(mutated(self._fault), self.path, "exec", dont_inherit=True)


def mutated(fault: Fault) -> str:
    """The text of a module with the fault in it."""
    text = (ROOT / "edbatch" / fault.path).read_text(encoding="utf-8")
    found = text.count(fault.old)
    if found != 1:
        raise SystemExit(
            f"{fault.name}: {fault.path} has {found} times what the fault replaces, expected once:\n{fault.old}"
        )
    return text.replace(fault.old, fault.new)


def run_inside(name: str, arguments: list[str]) -> int:
    """Run pytest in this process, with a fault planted; the exit status."""
    import pytest

    planted = Planted(next(fault for fault in FAULTS if fault.name == name)) if name else None
    if planted is not None:
        sys.meta_path.insert(0, planted)
    import tests.fuzz.shrink

    tests.fuzz.shrink.shrunk = lambda program, failure: (program, failure)  # nobody reads the program
    status = int(pytest.main([*arguments, "-n0", "-x", "-q", "-p", "no:cacheprovider", "--tb=line"]))
    return NOT_PLANTED if planted is not None and not planted.is_loaded else status


def run(test: str, name: str = "") -> tuple[int | None, str]:
    """Run a test in a process of its own; its exit status (None: it took too long) and what it printed."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    # Compiled code is found by its content, but what mutants are made of should not push out what others use.
    environment = {**os.environ, "XDG_CACHE_HOME": str(home / "edbatch-mutants")}
    command = [sys.executable, "-m", "tests.mutants", "--inside", name, test]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired as late:
        return None, str(late.stdout)
    return done.returncode, done.stdout


def judge(fault: Fault, sound: dict[str, str]) -> tuple[str, float]:
    """What became of a mutant ("caught", or what else), and the seconds that its test took to catch it."""
    if fault.test not in sound:
        status, said = run(fault.test)
        sound[fault.test] = "" if status == PASSED else f"FAILS WITHOUT IT ({status})\n{said[-3000:]}"
    start = time.perf_counter()
    status, said = run(fault.test, fault.name)
    seconds = time.perf_counter() - start
    if sound[fault.test]:
        return sound[fault.test], seconds
    others = {None: "too slow", PASSED: "MISSED", NOT_PLANTED: "MODULE NOT IMPORTED"}
    return "caught" if status == FAILED else others.get(status, f"ERROR ({status})\n{said[-3000:]}"), seconds


def _columns(fault: Fault) -> tuple[str, str, str]:
    return fault.name, fault.kind, fault.test.removeprefix("tests/")


def main() -> int:
    """Judge the mutants that are named, or all; 0 if all are caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="of mutants; none: all")
    parser.add_argument("--inside", nargs="+", metavar="NAME TEST", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        return run_inside(given.inside[0], given.inside[1:])
    unknown = set(given.names) - {fault.name for fault in FAULTS}
    if unknown:
        parser.error(f"no mutants of these names: {', '.join(sorted(unknown))}")
    chosen = [fault for fault in FAULTS if not given.names or fault.name in given.names]
    sound: dict[str, str] = {}
    missed = 0
    widths = [max(map(len, column)) for column in zip(*map(_columns, FAULTS), strict=True)]
    row = "| " + " | ".join(f"{{:{width}}}" for width in widths) + " | {:>7} |"
    print(row.format("mutant", "class", "caught by", "seconds"))
    print(row.format(*("-" * width for width in widths), "------:"), flush=True)
    for fault in chosen:
        outcome, seconds = judge(fault, sound)
        missed += outcome != "caught"
        print(
            row.format(*_columns(fault), f"{seconds:.0f}") + ("" if outcome == "caught" else f" {outcome}"), flush=True
        )
    print(f"{len(chosen) - missed} of {len(chosen)} are caught")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
