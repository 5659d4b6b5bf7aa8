"""Files that are never left half written."""

import glob
import os
import stat
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from edbatch.errors import EdBatchError, shown

if sys.platform != "win32":
    import fcntl


def checked_path(path: str | os.PathLike[str]) -> Path:
    """Return a path that the system can be asked for; an EdBatchError if it holds a character that no path can."""
    try:
        encoded = os.fsencode(path)
    except TypeError:
        raise EdBatchError(f"{shown(path)}: expected a path, got {type(path).__name__}") from None
    except UnicodeEncodeError:
        encoded = b"\0"
    if b"\0" in encoded:
        raise EdBatchError(f"{os.fspath(path)!r}: not a valid path (it holds a character that paths cannot)")
    return Path(os.fsdecode(encoded))


def write_atomically(path: str | os.PathLike[str], data: bytes | bytearray | str, mode: int | None = None) -> None:
    """Write `data` to `path` so that a reader sees the old file or the new one, never a part.

    The bytes go to a temporary file in the same folder (`.NAME.*.part`), are flushed to the disk, and replace `path` in
    one step. What a killed process left behind of writing the same file is deleted. A symbolic link is followed.

    Args:
        path: the file to replace or create; its folder must exist.
        data: text (written as UTF-8) or bytes.
        mode: who may read and write the file; None: as before, or of a new file as the user's mask has it.

    Raises:
        EdBatchError: the folder does not exist, the disk is full, writing is not allowed, or there is something at
            `path` that is no file (a folder, a device); what was at `path` before is still there, unchanged.
    """
    target = checked_path(path)
    try:
        encoded = data.encode() if isinstance(data, str) else data
    except UnicodeEncodeError as error:
        raise EdBatchError(f"{target}: cannot be written as UTF-8 (character {error.start})") from None
    temporary = None
    try:
        target = Path(os.path.realpath(target))
        if os.path.lexists(target):
            found = os.stat(target).st_mode
            if not stat.S_ISREG(found):
                raise EdBatchError(f"{target}: cannot be written (it is not a regular file, and would be replaced)")
            mode = stat.S_IMODE(found) if mode is None else mode
        with _new_temporary(target, 0o666 if mode is None else 0o600) as file:
            temporary = file.name
            file.write(encoded)
            file.flush()
            os.fsync(file.fileno())
            if mode is not None:
                os.chmod(temporary, mode)
            if sys.platform == "win32":
                file.close()  # there, an open file cannot be renamed
            os.replace(temporary, target)  # while it is locked: no other process may take it for abandoned
    except OSError as error:
        raise EdBatchError(f"{target}: cannot be written ({error.strerror or error})") from error
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)


def _new_temporary(target: Path, mode: int) -> BinaryIO:
    """Open a new file beside `target`, locked until it is closed, or its process ends; delete those that are not.

    The user's mask applies to the mode: to ask for it would be to change it for what other threads make meanwhile.
    """
    for other in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        with suppress(OSError), open(other, "rb+") as file:
            if _lock(file, wait=False):
                other.unlink()
    while True:
        path = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
        mine = open(path, "xb", opener=partial(os.open, mode=mode))  # noqa: SIM115 (it is returned open)
        try:
            if not _lock(mine, wait=True) or path.exists():  # else another process took it for abandoned
                return mine
        except BaseException:  # a Ctrl-C: open, it would stay locked
            mine.close()
            raise
        mine.close()


def _lock(file: BinaryIO, wait: bool) -> bool:
    """Lock an open file, or say that another has it, or that there are no such locks."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a UTF-8 file; an EdBatchError says why it cannot be read, or which byte is not UTF-8."""
    try:
        return checked_path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise EdBatchError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise EdBatchError(f"{path}: not UTF-8 text (byte {error.start})") from error
