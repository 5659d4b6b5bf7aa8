"""Policies in readable, versioned JSON files."""

from __future__ import annotations

import os
from typing import Any

import msgspec
import numpy as np

from edbatch.errors import EdBatchError
from edbatch.files import read_text, write_atomically
from edbatch.policy.heuristics import Heuristic
from edbatch.policy.policy import Policy
from edbatch.policy.training import Training

VERSION = 1


class Header(msgspec.Struct):
    """What every version of the format starts with."""

    edbatch_policy: int  # the version
    kind: str


class State(msgspec.Struct, forbid_unknown_fields=True):
    """One row of the table, types by name in the encoding's order."""

    frontier: list[str]
    choice: str
    q: list[float]
    mark: int = 0  # what the encoding adds to the types
    next: dict[str, int] = {}  # number of the following state, or "end" -> how often, in training


class FSMFile(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A learned policy."""

    edbatch_policy: int
    kind: str
    encoding: str
    types: list[str]
    states: list[State]
    training: Training | None = None


class HeuristicFile(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A rule by its name."""

    edbatch_policy: int
    kind: str
    name: str
    training: Training | None = None


def save_policy(path: str | os.PathLike[str], policy: Policy) -> None:
    """Write `policy` to `path`, replacing the file in one step.

    Raises:
        EdBatchError: the policy is not one of EdBatch's, or the file cannot be written.
    """
    content: HeuristicFile | FSMFile
    if isinstance(policy, Heuristic):
        content = HeuristicFile(VERSION, "heuristic", policy.name, policy.training)
    else:
        content = _fsm_to_file(policy)
    write_atomically(path, msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy file.

    Raises:
        EdBatchError: the file is missing, not JSON, of a newer version, or its fields are not as they
            should be; the message names the file and the field.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "policy.json"
        >>> Heuristic("agenda").save(path)
        >>> load_policy(path)
        Heuristic('agenda')
    """
    text = read_text(path)
    header = _decode(path, text, Header)
    if header.edbatch_policy > VERSION:
        raise EdBatchError(f"{path}: version {header.edbatch_policy}, this EdBatch reads up to {VERSION}")
    if header.kind == "heuristic":
        rule = _decode(path, text, HeuristicFile)
        try:
            return Heuristic(rule.name, rule.training)
        except EdBatchError as error:
            raise EdBatchError(f"{path}: {error}") from error
    if header.kind == "fsm":
        return _fsm_from_file(path, _decode(path, text, FSMFile))
    raise EdBatchError(f"{path}: kind {header.kind!r}; it must be 'fsm' or 'heuristic'")


def _decode(path: str | os.PathLike[str], text: str, form: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=form)
    except msgspec.ValidationError as error:
        raise EdBatchError(f"{path}: not a policy file: {error}") from error
    except msgspec.DecodeError as error:
        raise EdBatchError(f"{path}: not a whole JSON file: {error}") from error
    except RecursionError:
        raise EdBatchError(f"{path}: not a policy file: nested too deeply") from None


def _fsm_to_file(policy: Policy) -> FSMFile:
    from edbatch.policy.fsm import END, FSM

    if not isinstance(policy, FSM):
        raise EdBatchError(f"{type(policy).__name__} {policy.name!r} is not a policy that files can hold")
    states = []
    for state in range(int(policy.states.size[0])):
        names = policy.state_types(state)
        choice, mark = int(policy.states.choice[state]), int(policy.states.mark[state])
        states.append(State(names, names[choice], policy.state_q(state), mark))
    for (before, after), count in sorted(policy.transitions.items()):
        states[before].next["end" if after == END else str(after)] = count
    return FSMFile(VERSION, "fsm", policy.encoding, list(policy.types), states, policy.training)


def _fsm_from_file(path: str | os.PathLike[str], content: FSMFile) -> Policy:
    from edbatch.policy.fsm import END, FSM
    from edbatch.policy.state_table import insert, new_table

    letter = {name: index for index, name in enumerate(content.types)}
    table = new_table(len(content.states), sum(len(row.frontier) for row in content.states))
    transitions = {}
    for state, row in enumerate(content.states):
        place = f"{path}: state {state}"
        if unknown := [name for name in row.frontier if name not in letter]:
            raise EdBatchError(f"{place}: type {unknown[0]!r} is not among the policy's types")
        if row.choice not in row.frontier:
            raise EdBatchError(f"{place}: choice {row.choice!r} is not on its frontier")
        if len(row.q) != len(row.frontier):
            raise EdBatchError(f"{place}: {len(row.frontier)} types, but {len(row.q)} values of q")
        letters = np.array([letter[name] for name in row.frontier], np.int32)
        if insert(table, letters, len(letters), row.mark) != state:
            raise EdBatchError(f"{place}: the same state stands in the file twice")
        table.choice[state] = row.frontier.index(row.choice)
        table.q[table.start[state] : table.start[state + 1]] = row.q
        for after, count in row.next.items():
            if after != "end" and not (after.isdecimal() and int(after) < len(content.states)):
                raise EdBatchError(f"{place}: next state {after!r} is not there")
            transitions[state, END if after == "end" else int(after)] = count
    try:
        return FSM(content.encoding, tuple(content.types), table, content.training, transitions)
    except EdBatchError as error:
        raise EdBatchError(f"{path}: {error}") from error
