"""Files that nobody but this user, or root, can have written: code that another user put there would run as this one.

On Windows nothing is checked: users' folders there have access lists that keep others out, which Python cannot read.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import ExitStack
from pathlib import Path

from edbatch.errors import EdBatchError

#: Folders that lead to a file and are made here; those above are the user's own.
OWN = 2


def make_folder(folder: Path) -> None:
    """Make a folder, and those of `OWN` that lead to it, for this user alone.

    Raises:
        EdBatchError: it is there, or one that leads to it is, and others may write to it.
        OSError: it cannot be made.
    """
    own = [*reversed([folder, *folder.parents][:OWN])]
    own[0].parent.mkdir(parents=True, exist_ok=True)
    for one in own:
        one.mkdir(mode=0o700, exist_ok=True)
    with ExitStack() as opened:
        _open_folders(own, opened)


def read(path: Path) -> bytes:
    """The content of a file. What was looked at is what is read, whatever takes its place meanwhile.

    Symbolic links may lead to the folder, which is looked at where it is, but not to the file. A pipe in its place is
    not waited for.

    Raises:
        EdBatchError: another user may have written it.
        OSError: it cannot be read, or is no file.
    """
    with ExitStack() as opened:
        folder = _open_folders([*reversed(path.parents[:OWN])], opened)
        flags = os.O_RDONLY
        for name in ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"):
            flags |= getattr(os, name, 0)
        descriptor = _open(path, flags, folder)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "it is no file", str(path))
            _check(path, descriptor)
            return file.read()


def _open_folders(folders: list[Path], opened: ExitStack) -> int | None:
    """Open folders, each in the one before, and check them; the last. None: on Windows, where none can be opened."""
    if sys.platform == "win32":
        return None
    found = None
    for one in folders:
        found = _open(one, os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK, found)
        opened.callback(os.close, found)
        _check(one, found)
    return found


def _open(path: Path, flags: int, folder: int | None) -> int:
    try:
        return os.open(path if folder is None else path.name, flags, dir_fd=folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # with the whole path


def _check(path: Path, descriptor: int) -> None:
    if sys.platform == "win32":
        return
    known, me = os.fstat(descriptor), os.geteuid()
    if known.st_uid not in (0, me):
        problem = f"belongs to user {known.st_uid}, and would run as user {me}"
    elif known.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        problem = f"others may write to it (mode {stat.S_IMODE(known.st_mode):o})"
    else:
        return
    raise EdBatchError(f"{path}: {problem}; expected what only this user, or root, can have written")
