"""Compiled code that nobody uses is deleted, by whoever compiles something next; a folder may be of no use."""

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import edbatch as eb
from edbatch.compiling import cache as code_cache
from edbatch.compiling.cache import cache_folder, keep, kept, path_of
from edbatch.compiling.fingerprint import DIGEST

OLD, NEW = b"o" * DIGEST, b"n" * DIGEST
MONTHS = 100 * 86_400


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(code_cache, "_pruned", threading.Event())
    return cache_folder()


def used(key, seconds_ago):
    """Have a file be one that was used so long ago."""
    then = time.time() - seconds_ago
    os.utime(path_of(key), (then, then))


def fresh(monkeypatch):
    """From now on, like a process that has compiled nothing yet."""
    monkeypatch.setattr(code_cache, "_pruned", threading.Event())


def test_what_was_not_used_for_months_is_deleted_when_something_is_kept(folder, monkeypatch):
    keep(OLD, b"old")
    used(OLD, MONTHS)
    keep(NEW, b"new")
    assert path_of(OLD).exists(), "once a process"
    (folder / "notes.txt").touch()
    os.utime(folder / "notes.txt", (0, 0))
    fresh(monkeypatch)
    keep(NEW, b"new")
    assert (kept(OLD), kept(NEW)) == (None, b"new")
    assert (folder / "notes.txt").exists()


def test_what_is_found_was_used(monkeypatch):
    keep(OLD, b"old")
    used(OLD, MONTHS)
    assert kept(OLD) == b"old"
    fresh(monkeypatch)
    keep(NEW, b"new")
    assert kept(OLD) == b"old"


def test_a_large_folder_loses_what_was_not_used_for_longest(monkeypatch):
    keys = [bytes([number]) * DIGEST for number in range(5)]
    for number, key in enumerate(keys):
        keep(key, b"x" * 1000)
        used(key, 1000 - number)
    monkeypatch.setattr(code_cache, "_LARGE", 3 * path_of(keys[0]).stat().st_size)
    fresh(monkeypatch)
    keep(NEW, b"x" * 1000)
    assert [kept(key) is not None for key in keys] == [False] * 3 + [True] * 2
    assert kept(NEW) is not None


def test_a_folder_that_may_not_be_searched_holds_nothing(monkeypatch):
    """As one of another user, whose environment was inherited."""

    def refuse(path, *given):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(code_cache, "_warned", threading.Event())
    with pytest.warns(eb.EdBatchWarning, match=r"compiled code is not kept.*bin: cannot be read \(Permission denied\)"):
        assert kept(NEW) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no pipes in folders")
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(monkeypatch):
    keep(OLD, b"old")
    os.mkfifo(path_of(NEW))
    monkeypatch.setattr(code_cache, "_warned", threading.Event())
    with pytest.warns(eb.EdBatchWarning, match=r"compiled code is not kept.*bin: cannot be read \(it is no file\)"):
        assert kept(NEW) is None
    keep(NEW, b"new")
    assert kept(NEW) is None
    assert kept(OLD) == b"old"


def test_without_a_home_folder_nothing_is_kept(monkeypatch):
    """As for a user that a container makes up."""

    def unknown():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(code_cache, "_warned", threading.Event())
    with pytest.warns(eb.EdBatchWarning, match="compiled code is not kept.*no home folder is known; expected one, or"):
        keep(NEW, b"x")
    assert kept(NEW) is None
    with pytest.raises(eb.EdBatchError, match="no home folder"):
        cache_folder()


PRUNING = """
import sys
from edbatch.compiling import cache as code_cache
sys.stdin.read(1)
for number in range(100):
    code_cache.prune()
    key = bytes([number]) * code_cache.DIGEST
    code_cache.keep(key, b"x")
    print(code_cache.kept(key) is not None)
"""


def test_two_processes_that_delete_at_once(folder):
    keep(NEW, b"new")
    old = [number.to_bytes(DIGEST, "little") for number in range(1000, 1300)]
    for key in old:
        keep(key, b"old")
        used(key, MONTHS)
    both = [subprocess.Popen([sys.executable, "-W", "error", "-c", PRUNING], stdin=-1, stdout=-1, stderr=-1, text=True)
            for _ in range(2)]  # fmt: skip
    for process in both:
        process.stdin.write("x")
        process.stdin.flush()
    assert [process.communicate() for process in both] == [("True\n" * 100, "")] * 2
    assert not any(path_of(key).exists() for key in old)
    assert kept(NEW) == b"new"
    assert not list(folder.glob(".*"))
