"""Compiled code that nobody uses is deleted, by whoever compiles something next; a folder may be of no use."""

import hashlib
import os
import pickle
import subprocess
import sys
import threading
import time

import pytest

import edbatch as eb
from edbatch.compiling import cache as code_cache
from edbatch.compiling.cache import cache_folder, keep, kept, path_of
from edbatch.compiling.compiled import compiled
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


def read_again(monkeypatch, match):
    """That what is kept under `NEW` is not read, and why not is said once."""
    monkeypatch.setattr(code_cache, "_warned", threading.Event())
    with pytest.warns(eb.EdBatchWarning, match=f"compiled code is not kept, or not found again: .*{match}") as said:
        assert [kept(NEW), kept(NEW)] == [None, None]
    assert len(said) == 1


def give_away(path, monkeypatch):
    """Have a file or folder, and all that is in it, belong to another user."""
    try:
        for one in [path, *path.rglob("*")]:
            os.chown(one, 12_345, -1)
    except PermissionError:  # of one who is not root
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


no_modes = pytest.mark.skipif(sys.platform == "win32", reason="has no such modes")


@no_modes
@pytest.mark.parametrize("mode", [0o720, 0o702])
@pytest.mark.parametrize("place", ["folder", "folder above", "file"])
def test_what_others_may_write_is_not_read(place, mode, folder, monkeypatch):
    keep(NEW, b"new")
    writable = {"folder": folder, "folder above": folder.parent, "file": path_of(NEW)}[place]
    writable.chmod(mode)
    read_again(monkeypatch, rf"{writable}: others may write to it \(mode {mode:o}\)")
    monkeypatch.setattr(code_cache, "_warned", threading.Event())
    if place == "file":
        keep(NEW, b"newer")
        assert kept(NEW) == b"newer"
        return
    with pytest.warns(eb.EdBatchWarning, match="others may write to it .*the folder .* may be deleted"):
        keep(OLD, b"old")  # nor written
    assert not path_of(OLD).exists()


@no_modes
@pytest.mark.parametrize("place", ["folder", "folder above", "file"])
def test_what_is_of_another_user_is_not_read(place, folder, monkeypatch):
    keep(NEW, b"new")
    theirs = {"folder": folder, "folder above": folder.parent, "file": path_of(NEW)}[place]
    give_away(theirs, monkeypatch)
    read_again(monkeypatch, r"belongs to user \d+, and would run as user \d+; expected that only this user or root")


@no_modes
def test_links_lead_to_folders_and_not_to_files(folder, monkeypatch, tmp_path):
    keep(NEW, b"new")
    disk = tmp_path / "disk"
    folder.rename(disk)
    folder.symlink_to(disk)
    assert kept(NEW) == b"new"
    path_of(NEW).rename(tmp_path / "elsewhere")
    path_of(NEW).symlink_to(tmp_path / "elsewhere")
    read_again(monkeypatch, r"bin: cannot be read \(.*symbolic links\)")
    path_of(NEW).unlink()
    keep(NEW, b"new")
    disk.chmod(0o777)
    read_again(monkeypatch, r"compiled: others may write to it \(mode 777\)")


@no_modes
def test_code_that_another_put_there_does_not_run(folder, monkeypatch, capsys):
    """A pickle with its checksum, in the place where a function's code would be."""

    @compiled
    def function(x):
        return x + 4_321

    assert function(1) == 4_322
    (file,) = folder.iterdir()

    class Planted:
        def __reduce__(self):
            return print, ("code of another user",)

    content, key = pickle.dumps(Planted()), bytes.fromhex(file.stem)
    file.write_bytes(b"edbatch 1\n" + key + hashlib.blake2b(content, digest_size=DIGEST).digest() + content)
    folder.chmod(0o777)
    monkeypatch.setattr(code_cache, "_warned", threading.Event())
    with pytest.warns(eb.EdBatchWarning, match="others may write to it"):
        assert compiled(function.py_func)(1) == 4_322
    assert capsys.readouterr().out == ""
