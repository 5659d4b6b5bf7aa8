"""Checkpoints: a model, what its trainer remembers, and the caller's own metadata, in one safetensors file.

The file's tensors are the parameters under their names, readable by anything that reads safetensors; the trainer's
begin with `trainer/`. Counts and the caller's metadata are JSON in the file's header, with a checksum of the file.
One file, replaced in one step, is never a model of one moment beside a trainer of another.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from edbatch.base.files import checked_path, write_atomically
from edbatch.base.lazy import LazyModule
from edbatch.base.locking import lock, signals_deferred
from edbatch.errors import EdBatchError, shown
from edbatch.graph import draws

safetensors = LazyModule("safetensors")
safetensors_numpy = LazyModule("safetensors.numpy")

if TYPE_CHECKING:
    from edbatch.graph.model.collection import ParameterCollection

VERSION = 2  # entries that may be missing, as those of a run without a trainer, need no other one
TRAINER = "trainer/"
MARK = "edbatch_"  # what all entries of our headers begin with; a file without any is another library's

# safetensors notices a file that is too short, but not a bit that changed: a checksum over every byte is itself an
# entry of the header; it is computed with zeros in its place.
KEY = "edbatch_checksum"
BLANK = "0" * 8
_ENTRY = re.compile(rb'"%s":"([0-9a-f]{8})"' % KEY.encode())

DTYPES = ("F32", "F64")  # those that parameters have; tensors of others are not read


class Resumable(Protocol):
    """What a checkpoint needs of a trainer; `edbatch.training.Trainer` has it."""

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """What it remembers: arrays, and what JSON can hold."""

    def differences(self, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any]) -> dict[str, str]:
        """What of a saved state does not fit, and why."""

    def load_state(self, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any]) -> None:
        """Take over what fits of a saved state."""


class Savable(Protocol):
    """What a checkpoint needs of a policy."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file."""


@dataclass(frozen=True)
class Checkpoint:
    """What `model.load` found.

    Args:
        metadata: the caller's, as given to `model.save`.
        policy: the policy file beside the checkpoint, if there is one; `Graph(policy=checkpoint.policy)`.
        left: with `strict=False`, what was not loaded or not there, and why, by name.
    """

    metadata: dict[str, Any]
    policy: Path | None
    left: dict[str, str]


def save_checkpoint(
    path: str | os.PathLike[str],
    model: ParameterCollection,
    trainer: Resumable | None = None,
    policy: Savable | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """See `ParameterCollection.save`."""
    for what, given, method in (("trainer", trainer, "state"), ("policy", policy, "save")):
        if isinstance(given, type) or (given is not None and not hasattr(given, method)):
            raise EdBatchError(f"{path}: {what}: expected a {what}, got {shown(given)}")
    if not isinstance(metadata, Mapping | None):
        raise EdBatchError(f"{path}: metadata: expected a dictionary, got {type(metadata).__name__}")
    with lock:  # of one moment, also if another thread trains
        tensors = {name: parameter.value() for name, parameter in model.items()}
        frozen = {"names": [name for name, parameter in model.items() if parameter.frozen]}
        entries = {"metadata": dict(metadata or {}), "draws": draws.state(), "frozen": frozen}
        if trainer is not None:
            arrays, entries["trainer"] = trainer.state()
            tensors |= {TRAINER + name: array for name, array in arrays.items()}
    header = {MARK + key: _to_json(path, key, entry) for key, entry in entries.items()}
    header |= {MARK + "checkpoint": str(VERSION), KEY: BLANK}
    if policy is not None:
        policy.save(policy_path(path))
    write_atomically(path, sealed(safetensors_numpy.save(tensors, header)))


def load_checkpoint(
    path: str | os.PathLike[str], model: ParameterCollection, trainer: Resumable | None = None, strict: bool = True
) -> Checkpoint:
    """See `ParameterCollection.load`."""
    tensors, others, header = _read(path)
    metadata, frozen, here = _from_json(path, header, "metadata"), _frozen(path, header), dict(model.items())
    found, want = (
        {name: f"{array.dtype}{list(array.shape)}" for name, array in held.items()} for held in (tensors, here)
    )
    found |= others
    left = {name: f"{want[name]} in the model, not in the file" for name in want if name not in found}
    for name, what in found.items():
        if name not in want and not name.startswith(TRAINER):
            left[name] = f"{what} in the file, not in the model"
        elif name in want and what != want[name]:
            left[name] = f"{what} in the file, {want[name]} in the model"
    if trainer is not None:
        numbers = _from_json(path, header, "trainer")
        arrays = {name.removeprefix(TRAINER): array for name, array in tensors.items() if name.startswith(TRAINER)}
        if numbers:
            left |= {TRAINER + name: why for name, why in trainer.differences(arrays, numbers).items()}
        else:
            left["trainer"] = "not in the file"
        drawn = _from_json(path, header, "draws")
        if drawn and not draws.is_state(drawn):
            raise EdBatchError(f"{path}: damaged header entry 'draws' ({drawn!r})")
    if left and strict:
        reasons = "; ".join(f"{name}: {why}" for name, why in left.items())
        raise EdBatchError(f"{path}: does not fit, nothing was loaded: {reasons}")
    with lock, signals_deferred():
        for name, parameter in here.items():
            if name not in left:
                parameter.set_value(tensors[name])
                if frozen is not None:
                    # Whoever freezes a part and then loads what was trained before wants it frozen; a run that goes on
                    # begins as it did, and may have ended that since.
                    stays = name in frozen or (trainer is None and parameter.frozen)
                    if parameter.frozen != stays:  # to freeze forgets gradients, which loading does not
                        parameter.freeze(stays)
        if trainer is not None and numbers:
            trainer.load_state(arrays, numbers)
        if trainer is not None and drawn:
            draws.restore(drawn)
    beside = policy_path(path)
    return Checkpoint(metadata, beside if os.path.exists(beside) else None, left)


def saved_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The caller's metadata in a checkpoint, whatever model it is of; errors as of `ParameterCollection.load`."""
    return _from_json(path, _read(path)[2], "metadata")


def policy_path(path: str | os.PathLike[str]) -> Path:
    """Where the policy of a checkpoint is: `m.policy.json` beside `m.safetensors`."""
    place = checked_path(path)
    return place.parent / f"{place.stem}.policy.json"


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, str], dict[str, str]]:
    """Of a file that is whole: tensors of floats, dtype and shape of the others, and our entries of the header."""
    place = checked_path(path)
    if os.path.isdir(place):  # of which safetensors says that there is no such device
        raise EdBatchError(f"{path}: cannot be read (it is a folder); expected a file")
    tensors, others = {}, {}
    try:
        with safetensors.safe_open(place, framework="numpy") as file:
            header = {key: entry for key, entry in (file.metadata() or {}).items() if key.startswith(MARK)}
            if header:
                _check_seal(place)
            for name in file.keys():  # noqa: SIM118 (it is no dict)
                entry = file.get_slice(name)
                if entry.get_dtype() in DTYPES:
                    tensors[name] = file.get_tensor(name)
                else:
                    others[name] = f"{entry.get_dtype()}{entry.get_shape()}"
    except OSError as error:
        raise EdBatchError(f"{path}: cannot be read ({error.strerror or error})") from error
    except safetensors.SafetensorError as error:
        raise EdBatchError(f"{path}: not a whole safetensors file ({error})") from error
    version = header.get(MARK + "checkpoint", "")
    if header and version != str(VERSION):
        raise EdBatchError(f"{path}: version {version or 'missing'}, this EdBatch reads version {VERSION}")
    return tensors, others, header


def _frozen(path: str | os.PathLike[str], header: Mapping[str, str]) -> set[str] | None:
    """The parameters that were frozen; None if the file does not say."""
    if MARK + "frozen" not in header:
        return None
    names = _from_json(path, header, "frozen").get("names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise EdBatchError(f"{path}: damaged header entry 'frozen' ({shown(names)})")
    return set(names)


def _to_json(path: str | os.PathLike[str], key: str, value: dict[str, Any]) -> str:
    try:
        written = json.dumps(value)
        _check_keys(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise EdBatchError(f"{path}: {key}: expected what JSON can hold ({error})") from error
    return written


def _check_keys(value: Any) -> None:
    """A TypeError for a key that JSON would turn into text, so that it would not be found when it is read again."""
    if isinstance(value, dict):
        for name, entry in value.items():
            if not isinstance(name, str):
                raise TypeError(f"keys are text, got {shown(name)}")
            _check_keys(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            _check_keys(entry)


def _from_json(path: str | os.PathLike[str], header: Mapping[str, str], key: str) -> dict[str, Any]:
    try:
        found = json.loads(header.get(MARK + key, "{}"))
    except (ValueError, RecursionError) as error:
        raise EdBatchError(f"{path}: damaged header entry {key!r} ({error})") from error
    if not isinstance(found, dict):
        raise EdBatchError(f"{path}: damaged header entry {key!r} (no object)")
    return found


def sealed(file: bytes) -> bytearray:
    """The bytes of a safetensors file whose header has `KEY: BLANK`, with their CRC-32 in that place."""
    begin, end = _place(file)
    found = bytearray(file)
    found[begin:end] = b"%08x" % zlib.crc32(file)
    return found


def _check_seal(path: Path) -> None:
    """Read a file that was sealed; an error if it has no checksum, or another one than its bytes."""
    with open(path, "rb") as file:
        size = file.read(8)
        header = size + file.read(int.from_bytes(size, "little"))
        begin, end = _place(header)
        if begin == end:
            raise EdBatchError(f"{path}: damaged (its checksum is missing)")
        found = zlib.crc32(header[:begin] + BLANK.encode() + header[end:])
        while block := file.read(1 << 20):
            found = zlib.crc32(block, found)
    if header[begin:end] != b"%08x" % found:
        raise EdBatchError(f"{path}: damaged (it does not have the checksum that it was saved with)")


def _place(file: bytes) -> tuple[int, int]:
    """Where the checksum stands; nowhere if there is not exactly one."""
    header = 8 + int.from_bytes(file[:8], "little")
    # Quotes inside names and metadata are escaped, so that the pattern finds nothing of the caller's.
    found = list(_ENTRY.finditer(file, 8, header))
    return found[0].span(1) if len(found) == 1 else (0, 0)
