"""Compiled code on disk, in the user's cache folder, found by a digest of all that it depends on.

Whatever is wrong with the folder or a file - damaged, of something else, of another user, read-only, full - is said
once, and worked around by compiling again; what that gives replaces a damaged file. Files are replaced in one step, so
that processes may write at once. They hold code: only those are read that nobody but this user, or root, can have
written. (On Windows that is not checked: users' folders there have access lists that keep others out.)
"""

# mypy: disable-error-code="import-untyped,no-untyped-call,attr-defined"

from __future__ import annotations

import errno
import hashlib
import os
import platform
import stat
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import llvmlite
import numba
import numpy as np
from numba.core import config
from numba.core.registry import cpu_target

from edbatch.base.files import write_atomically
from edbatch.compiling.fingerprint import DIGEST
from edbatch.errors import EdBatchError, warn

_MAGIC = b"edbatch 1\n"

# Code of versions, programs and processors that are gone is found by nobody. When a process has compiled something, it
# deletes what was not used for so many seconds, and what was not used for longest where all is more than so many bytes.
_UNUSED = 90 * 86_400.0
_LARGE = 1 << 30
_DAY = 86_400.0

_pruned, _warned, _healed = threading.Event(), threading.Event(), threading.Event()


def cache_folder() -> Path:
    """Return the folder of compiled code: `edbatch` in the user's cache folder; may be deleted at any time.

    Raises:
        EdBatchError: nothing says where the user's folders are, as in a container that is run by a made-up user.
    """
    named = (os.environ.get(name, "") for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"))
    root = next((path for path in named if os.path.isabs(path)), None)  # the XDG standard has relative ones ignored
    try:
        return Path(root or Path.home() / ".cache") / "edbatch" / "compiled"
    except RuntimeError as error:
        raise EdBatchError(
            "no home folder is known to keep compiled code in; set XDG_CACHE_HOME to a folder"
        ) from error


def path_of(key: bytes) -> Path:
    """Return the file of a key."""
    return cache_folder() / f"{key.hex()}.bin"


def kept(key: bytes) -> bytes | None:
    """Return what was kept under a key (a digest of all that it depends on); None: nothing, or it is damaged."""
    try:
        path = path_of(key)
        data = _read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        complain(f"{error.filename or path}: cannot be read ({error.strerror})")
        return None
    except EdBatchError as error:
        complain(str(error))
        return None
    content = data[len(_MAGIC) + 2 * DIGEST :]
    if not data.startswith(_head(key, content)):
        complain(f"{path}: damaged", heals=True)
        with suppress(OSError):  # of a folder that is read-only
            path.unlink()  # what may be interpreted is not compiled for it
        return None
    return content


def keep(key: bytes, content: bytes) -> None:
    """Keep something for later processes; where that cannot be done, say so once."""
    try:
        path = path_of(key)
        path.parents[2].mkdir(parents=True, exist_ok=True)
        for folder in (path.parents[1], path.parent):
            folder.mkdir(mode=0o700, exist_ok=True)
            _check(folder, os.stat(folder))
        write_atomically(path, _head(key, content) + content, mode=0o644)
    except (OSError, EdBatchError) as error:
        complain(str(error))
        return
    if not _pruned.is_set():
        _pruned.set()
        prune()


def prune() -> None:
    """Delete what is not used any more.

    Any process may do so at any time: what another one wants and does not find, it compiles.
    """
    found = []
    with suppress(OSError), os.scandir(cache_folder()) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.name.endswith((".bin", ".part")):
                    known = entry.stat()
                    found.append((known.st_mtime, known.st_size, entry.path))
    oldest, total = time.time() - _UNUSED, sum(size for _, size, _ in found)
    for used, size, path in sorted(found):
        if used >= oldest and total <= _LARGE:
            break
        with suppress(OSError):
            os.unlink(path)
        total -= size


def _head(key: bytes, content: bytes) -> bytes:
    return _MAGIC + key + hashlib.blake2b(content, digest_size=DIGEST).digest()


def _read(path: Path) -> bytes:
    """Read a file that others cannot have written, and note the day of its use as the time of its change.

    Symbolic links may lead to the folder, but not to the file. A pipe in its place is not waited for.
    """
    for folder in (path.parents[1], path.parent):
        _check(folder, os.stat(folder))
    extra = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | extra)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no file", str(path))
        _check(path, status)
        if status.st_mtime < time.time() - _DAY:
            with suppress(OSError):  # of a folder that is read-only
                os.utime(path)
        return file.read()


def _check(path: Path, status: os.stat_result) -> None:
    """Raise an EdBatchError for what another user may have written: its code would run as this user."""
    if sys.platform == "win32":
        return
    me = os.geteuid()
    if status.st_uid not in (0, me):
        problem = f"belongs to user {status.st_uid}, and would run as user {me}"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        problem = f"others may write to it (mode {stat.S_IMODE(status.st_mode):o})"
    else:
        return
    raise EdBatchError(f"{path}: {problem}; expected that only this user or root can write it")


def works() -> bool:
    """Whether files could be read and written so far, and a folder for them is there or can be made."""
    if _warned.is_set():
        return False
    try:
        place = cache_folder()
    except EdBatchError:
        return False
    there = next((path for path in (place, *place.parents) if os.path.exists(path)), place)
    return os.path.isdir(there) and os.access(there, os.W_OK | os.X_OK)


def complain(problem: str, heals: bool = False) -> None:
    """Say that the cache does not work, once per process; or that a file was of no use, if it is replaced (`heals`)."""
    said = _healed if heals else _warned
    if said.is_set():
        return
    said.set()
    what = "a file of compiled code is of no use" if heals else "compiled code is not kept, or not found again"
    when = "once, and the file replaced" if heals else "in every process"
    try:
        hint = f" (the folder {cache_folder()} may be deleted, or another be named by XDG_CACHE_HOME)"
    except EdBatchError:
        hint = ""
    warn(f"{what}: {problem}; it is compiled again, which takes seconds, {when}{hint}")


def say_once(text: str, said: threading.Event) -> None:
    """Tell the reader of a log why nothing happens for some seconds: once per process, and not among tests' output."""
    if not said.is_set() and sys.stderr is not None and "PYTEST_CURRENT_TEST" not in os.environ:
        said.set()
        print(text, file=sys.stderr, flush=True)


@cache
def environment() -> bytes:
    """What compiled code depends on beside its source: versions, processor, settings of the compiler."""
    settings = (config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE, config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT)
    # What another release has kept otherwise is not found.
    form = "functions are numbered at random, named tuples made without Python, libraries as Numba has them"
    known = (
        form, sys.implementation.cache_tag, platform.python_version(), np.__version__, numba.__version__,
        llvmlite.__version__, cpu_target.target_context.codegen().magic_tuple(), settings,
    )  # fmt: skip
    return repr(known).encode()
