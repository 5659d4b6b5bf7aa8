"""Tests that the check runs: what is told of them."""

import subprocess
from time import perf_counter

import pytest

from scripts.gpu.suite import run_tests

GOOD = "def test_good():\n    pass\n"
BAD = "import pytest\n\n\n@pytest.mark.parametrize('x', ['a b'])\ndef test_bad(x):\n    assert x == 'c'\n"
SLOW = "from time import sleep\n\n\ndef test_slow():\n    sleep(10_000)\n"
LONG = 600


@pytest.fixture
def written(tmp_path):
    def write(**sources):
        paths = [tmp_path / f"test_{name}.py" for name in sources]
        for path, source in zip(paths, sources.values(), strict=True):
            path.write_text(source)
        return tuple(map(str, paths))

    return write


def test_counts_and_failures(written):
    found = run_tests("cpu", LONG, written(bad=BAD, good=GOOD))
    assert sorted(found["tests"].split(", ")) == ["1 failed", "1 passed"]
    assert not found["right"]
    assert found["failed"].rpartition("::")[2] == "test_bad[a b]"
    assert "assert 'a b' == 'c'" in found["output"]


@pytest.mark.slow
def test_those_before_time_is_over_count(written):
    begin = perf_counter()
    assert run_tests("cpu", LONG, written(good=GOOD))["right"]
    seconds = 3 + 3 * (perf_counter() - begin)  # until the first has run, however busy the machine
    found = run_tests("cpu", seconds, written(good=GOOD, slow=SLOW))
    assert found["tests"] == f"1 passed; stopped after {seconds:.0f} s"
    assert found["right"]


def test_a_failure_before_time_is_over_counts(monkeypatch):
    def over(*_, **__):
        raise subprocess.TimeoutExpired(
            "pytest", 5, output=b"a.py::test_good PASSED\n[gw1] [ 50%] FAILED a.py::test_bad \n"
        )

    monkeypatch.setattr(subprocess, "run", over)
    found = run_tests("cpu", 5)
    assert found["tests"] == "1 passed, 1 failed; stopped after 5 s"
    assert (found["right"], found["failed"]) == (False, "a.py::test_bad")


def test_no_tests_at_all_are_not_right(written):
    assert not run_tests("cpu", LONG, written(none=""))["right"]
