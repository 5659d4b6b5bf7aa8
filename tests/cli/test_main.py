"""The command as a whole: exit statuses, and that its start is fast."""

import os
import subprocess
import sys

import pytest

from edbatch.cli import inspect


def python(*arguments, **options):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, **options)


def test_python_m_edbatch_is_the_command():
    result = python("-m", "edbatch", "inspect", "none")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "none: runs every node alone\n"
    result = python("-m", "edbatch", "inspect", "nothing")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("edbatch: error: no policy is named 'nothing'")


def test_ctrl_c_is_quiet(tmp_path):
    (tmp_path / "script.py").write_text(
        "import signal\n"
        "def stop():\n"
        "    signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background ignores it\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    yield\n"
    )
    result = python("-m", "edbatch", "learn", f"{tmp_path}/script.py:stop", "-o", f"{tmp_path}/policy.json")
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_output_that_cannot_be_written():
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "edbatch", "inspect", "none"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (result.returncode, result.stderr) == (2, b"edbatch: error: [Errno 28] No space left on device\n")


def test_a_closed_pipe_is_quiet():
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [sys.executable, "-m", "edbatch", "inspect", "none"], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (result.returncode, result.stderr) == (141, b"")


def test_importing_the_command_adds_nothing_heavy():
    heavy = {"numba", "scipy", "tqdm", "matplotlib", "cupy", "torch"}
    code = "import sys, edbatch; old = set(sys.modules); import edbatch.cli; print(*set(sys.modules) - old)"
    assert not heavy & set(python("-c", code).stdout.split())


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KeyboardInterrupt(), 130, ""),
        (MemoryError("Unable to allocate 3.64 TiB"), 2, "edbatch: error: Unable to allocate 3.64 TiB\n"),
        (MemoryError(), 2, "edbatch: error: out of memory\n"),
    ],
)
def test_what_stops_a_command(edbatch, monkeypatch, error, status, said):
    def stop(arguments):
        raise error

    monkeypatch.setattr(inspect, "run", stop)
    assert edbatch("inspect", "none") == (status, "", said)
