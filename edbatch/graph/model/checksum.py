"""A checksum over every byte of a checkpoint: tensors, their names, shapes and dtypes, and all of the header.

safetensors notices a file that is too short, but not a bit that changed. The checksum is itself an entry of the file's
header; it is computed with zeros in its place.
"""

from __future__ import annotations

import re
import zlib
from pathlib import Path

from edbatch.errors import EdBatchError

KEY = "edbatch_checksum"
BLANK = "0" * 8
_ENTRY = re.compile(rb'"%s":"([0-9a-f]{8})"' % KEY.encode())
_BLOCK = 1 << 20


def sealed(file: bytes) -> bytearray:
    """The bytes of a safetensors file whose header has `KEY: BLANK`, with their CRC-32 in that place."""
    begin, end = _place(file)
    found = bytearray(file)
    found[begin:end] = b"%08x" % zlib.crc32(file)
    return found


def check_seal(path: Path) -> None:
    """Read a file that was sealed; an error if it has no checksum, or another one than its bytes."""
    with open(path, "rb") as file:
        size = file.read(8)
        header = size + file.read(int.from_bytes(size, "little"))
        begin, end = _place(header)
        if begin == end:
            raise EdBatchError(f"{path}: damaged (its checksum is missing)")
        found = zlib.crc32(header[:begin] + BLANK.encode() + header[end:])
        while block := file.read(_BLOCK):
            found = zlib.crc32(block, found)
    if header[begin:end] != b"%08x" % found:
        raise EdBatchError(f"{path}: damaged (it does not have the checksum that it was saved with)")


def _place(file: bytes) -> tuple[int, int]:
    """Where the checksum stands; nowhere if there is not exactly one."""
    header = 8 + int.from_bytes(file[:8], "little")
    # Quotes inside names and metadata are escaped, so that the pattern finds nothing of the caller's.
    found = list(_ENTRY.finditer(file, 8, header))
    return found[0].span(1) if len(found) == 1 else (0, 0)
