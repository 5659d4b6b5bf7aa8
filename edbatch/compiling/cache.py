"""Compiled code on disk, in the user's cache folder, found by a digest of all that it depends on.

Whatever is wrong with the folder or a file - damaged, of something else, of another user, read-only, full - is said
once, and worked around by compiling again; what that gives replaces a damaged file. Files are replaced in one step, so
that processes may write at once. They hold code, and pickles, which are code too: see `trusted` for whose are read.
"""

# mypy: disable-error-code="import-untyped,no-untyped-call,attr-defined"

from __future__ import annotations

import hashlib
import os
import platform
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
from edbatch.compiling import trusted
from edbatch.compiling.fingerprint import DIGEST
from edbatch.errors import EdBatchError, warn

_MAGIC = b"edbatch 1\n"

# Code of versions, programs and processors that are gone is found by nobody. When a process has compiled something, it
# deletes what was not used for so many seconds, and what was not used for longest where all is more than so many bytes.
_UNUSED = 90 * 86_400.0
_LARGE = 1 << 30
_DAY = 86_400.0


def cache_folder() -> Path:
    """Where compiled code is kept: `edbatch` in the user's cache folder; may be deleted at any time.

    Raises:
        EdBatchError: nothing says where the user's folders are, as in a container that is run by a made-up user.
    """
    named = (os.environ.get(name, "") for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"))
    root = next((path for path in named if os.path.isabs(path)), None)  # the XDG standard has relative ones ignored
    try:
        return Path(root or Path.home() / ".cache") / "edbatch" / "compiled"
    except RuntimeError as error:
        raise EdBatchError("no home folder is known; expected one, or a folder named by XDG_CACHE_HOME") from error


def path_of(key: bytes) -> Path:
    """Where something is kept under a key."""
    return cache_folder() / f"{key.hex()}.bin"


def kept(key: bytes) -> bytes | None:
    """What was kept under a key (a digest of all that it depends on); None: nothing, or it is damaged."""
    try:
        path = path_of(key)
        data = trusted.read(path)
        _note_use(path)
    except FileNotFoundError:
        return None
    except (OSError, EdBatchError) as error:
        complain(_unread(error))
        return None
    content = data[len(_MAGIC) + 2 * DIGEST :]
    if not data.startswith(_MAGIC + key + _checksum(content)):
        complain(f"{path}: damaged", heals=True)
        with suppress(OSError):  # of a folder that is read-only
            path.unlink()  # what may be interpreted is not compiled for it
        return None
    return content


def keep(key: bytes, content: bytes) -> None:
    """Keep something for later processes; where that cannot be done, say so once."""
    try:
        path = path_of(key)
        trusted.make_folder(path.parent)
        write_atomically(path, _MAGIC + key + _checksum(content) + content, mode=0o644)
    except (OSError, EdBatchError) as error:
        complain(str(error))
        return
    if not _pruned.is_set():
        _pruned.set()
        prune()


_pruned = threading.Event()


def prune() -> None:
    """Delete what is not used any more.

    Any process may do so at any time: what another one wants and does not find, it compiles.
    """
    found = []
    with suppress(OSError), os.scandir(cache_folder()) as entries:
        for entry in entries:
            if not entry.name.endswith((".bin", ".part")):
                continue
            with suppress(OSError):
                known = entry.stat()
                found.append((known.st_mtime, known.st_size, entry.path))
    oldest, total = time.time() - _UNUSED, sum(size for _, size, _ in found)
    for used, size, path in sorted(found):
        if used >= oldest and total <= _LARGE:
            break
        with suppress(OSError):
            os.unlink(path)
        total -= size


def _note_use(path: Path) -> None:
    """Keep the day on which a file was last used as the time of its change: that of its last access is not kept."""
    with suppress(OSError):  # of a folder that is read-only
        if path.stat().st_mtime < time.time() - _DAY:
            os.utime(path)


def _unread(error: OSError | EdBatchError) -> str:
    return f"{error.filename}: cannot be read ({error.strerror})" if isinstance(error, OSError) else str(error)


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST).digest()


_warned = threading.Event()
_healed = threading.Event()


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
    warn(f"{what}: {problem}; it is compiled anew, which takes seconds, {when}{hint}")


@cache
def environment() -> bytes:
    """What compiled code depends on beside its source: versions, processor, settings of the compiler."""
    settings = (config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE, config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT)
    # What another release has kept otherwise is not found.
    form = "functions are numbered at random, named tuples made without Python"
    known = (
        form, sys.implementation.cache_tag, platform.python_version(), np.__version__, numba.__version__,
        llvmlite.__version__, cpu_target.target_context.codegen().magic_tuple(), settings,
    )  # fmt: skip
    return repr(known).encode()
