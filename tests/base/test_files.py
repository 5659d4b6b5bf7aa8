"""Files that are replaced in one step: what a killed process left is deleted, what another is writing is not."""

import os
import signal
import stat
import subprocess
import sys

import pytest

from edbatch.base.files import write_atomically
from edbatch.errors import EdBatchError
from tests.interrupts import Interrupt

WRITING = """
import os, sys
from edbatch.base.files import write_atomically
def wait(_):
    print("written", flush=True)
    sys.stdin.read(1)
os.fsync = wait
write_atomically(sys.argv[1], "theirs")
"""


def writer(path):
    """A process that has written all, and waits before it replaces the file."""
    process = subprocess.Popen([sys.executable, "-c", WRITING, path], stdin=-1, stdout=-1, text=True)
    assert process.stdout.readline() == "written\n"
    return process


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGKILL")
def test_what_killed_processes_left_is_deleted(tmp_path):
    path = tmp_path / "m.safetensors"
    for _ in range(2):
        with writer(path) as process:
            process.send_signal(signal.SIGKILL)
    others = {".m.safetensors.mine", ".other.12345678.part", "m.safetensors.part"}
    for name in others:
        (tmp_path / name).touch()
    assert len(os.listdir(tmp_path)) == 4  # the second has deleted what the first left
    write_atomically(path, "ours")
    assert set(os.listdir(tmp_path)) == {path.name, *others}
    assert path.read_text() == "ours"


# Python closes a file that was opened when nobody had it yet, and says so.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <_io:pytest.PytestUnraisableExceptionWarning")
def test_what_interrupts_left_is_deleted(tmp_path):
    path = tmp_path / "m.safetensors"
    line = 1
    while Interrupt(line).run(lambda: write_atomically(path, "ours")):
        line += 1
        write_atomically(path, "ours")
        assert os.listdir(tmp_path) == [path.name], line
    assert line > 10


@pytest.mark.skipif(sys.platform == "win32", reason="cannot replace a file that is open")
def test_what_another_process_is_writing_is_not(tmp_path):
    path = tmp_path / "m.safetensors"
    with writer(path) as process:
        for _ in range(3):
            write_atomically(path, "ours")
        assert len(os.listdir(tmp_path)) == 2
        process.communicate("x")
        assert process.returncode == 0
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == [path.name]


def test_a_link_is_followed_and_the_mode_of_a_file_stays(tmp_path):
    (tmp_path / "disk").mkdir()
    link = tmp_path / "latest"
    link.symlink_to(tmp_path / "disk" / "first")
    write_atomically(link, "one")
    assert link.is_symlink()
    (tmp_path / "disk" / "first").chmod(0o600)
    write_atomically(link, "two")
    found = tmp_path / "disk" / "first"
    assert (found.read_text(), found.stat().st_mode & 0o777) == ("two", 0o600)
    write_atomically(link, "three", mode=0o644)
    assert (found.read_text(), found.stat().st_mode & 0o777) == ("three", 0o644)
    assert os.listdir(tmp_path / "disk") == ["first"]


@pytest.mark.skipif(sys.platform == "win32", reason="has no such modes")
def test_a_new_file_is_as_the_mask_wants_it_which_other_threads_do_not_notice(tmp_path, monkeypatch):
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(os, "umask", None)  # what they make meanwhile would be anybody's
            write_atomically(tmp_path / "new", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(tmp_path / "new").st_mode) == 0o640


def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(EdBatchError, match="it is not a regular file, and would be replaced"):
            write_atomically(tmp_path / name, "data")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_path_without_a_meaning_to_the_system_is_refused():
    with pytest.raises(EdBatchError, match=r"'m\\x00': not a valid path \(it holds a character that paths cannot\)"):
        write_atomically("m\0", "data")
