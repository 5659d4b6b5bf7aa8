"""Policies in readable, versioned JSON files."""

from __future__ import annotations

import os
from typing import Annotated, Any

import msgspec

from edbatch.base.files import read_text, write_atomically
from edbatch.errors import EdBatchError

VERSION = 1

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Training(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a policy was learned and what it reached: the record of one call of `learn`."""

    graphs: Count
    episodes: Count
    seconds: Annotated[float, msgspec.Meta(ge=0)]
    seed: Count
    batches: list[Count]  # per graph, by the learned policy
    bounds: list[Count]  # per graph, the lower bound
    heuristic: str  # the best run-time heuristic...
    heuristic_batches: list[Count]  # ...and its batches per graph


class Header(msgspec.Struct):
    """What every version of the format starts with."""

    edbatch_policy: int  # the version
    kind: str


class State(msgspec.Struct, forbid_unknown_fields=True):
    """One row of the table, types by name in the encoding's order."""

    frontier: list[str]
    choice: str
    q: list[float]
    mark: Annotated[int, msgspec.Meta(ge=0, lt=2**31)] = 0  # what the encoding adds to the types
    next: dict[str, Count] = {}  # number of the following state, or "end" -> how often, in training


class FSMFile(msgspec.Struct, forbid_unknown_fields=True, tag_field="kind", tag="fsm"):
    """A learned policy."""

    encoding: str
    types: list[str]
    states: list[State]
    training: Training | None = None
    edbatch_policy: int = VERSION


class HeuristicFile(msgspec.Struct, forbid_unknown_fields=True, tag_field="kind", tag="heuristic"):
    """A rule by its name."""

    name: str
    training: Training | None = None
    edbatch_policy: int = VERSION


def write_policy(path: str | os.PathLike[str], content: HeuristicFile | FSMFile) -> None:
    """Write a policy file, replacing one that is there in one step."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")


def read_policy(path: str | os.PathLike[str]) -> HeuristicFile | FSMFile:
    """Read a policy file.

    Raises:
        EdBatchError: the file is missing, not JSON, of a newer version, or has wrong fields; the message names them.
    """
    text = read_text(path)
    header = _decode(path, text, Header)
    if header.edbatch_policy > VERSION:
        raise EdBatchError(f"{path}: version {header.edbatch_policy}, this EdBatch reads up to {VERSION}")
    content: HeuristicFile | FSMFile = _decode(path, text, HeuristicFile | FSMFile)
    return content


def _decode(path: str | os.PathLike[str], text: str, form: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=form)
    except (msgspec.DecodeError, RecursionError) as error:
        raise EdBatchError(f"{path}: not a policy file: {error}") from error
