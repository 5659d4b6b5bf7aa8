"""When parameters were last written to: what a graph computed before that has no gradient any more that is anybody's.

Time is the number of writes so far. Writes through memory that was shared with another library are seen by a checksum
of it, taken when a graph runs or goes back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary
from zlib import crc32

import numpy as np

from edbatch.base.exclusive import lock
from edbatch.errors import EdBatchError
from edbatch.graph.spec import ParameterSpec

if TYPE_CHECKING:
    from edbatch.graph.model.parameters import Parameter

_time = 0
# With other libraries, and their checksums; None before the first: to ask whether a dictionary of weak keys is empty
# takes two calls.
_shared: WeakKeyDictionary[Parameter, int] | None = None


def note_write(parameters: Iterable[Parameter]) -> None:
    """Say that parameters have been written to."""
    global _time
    with lock:
        _time += 1
        for parameter in parameters:
            for member in parameter.members():
                member.written = _time


def share(parameter: Parameter) -> None:
    """From now on others may write to a parameter."""
    global _shared
    with lock:
        if _shared is None:
            _shared = WeakKeyDictionary()
        _shared[parameter] = _checksum(parameter)


def is_shared(parameter: Parameter) -> bool:
    """Whether others may write to a parameter."""
    return _shared is not None and parameter in _shared


def last_write(parameter: Parameter) -> int:
    """When a parameter was last written to; 0: never."""
    return max(member.written for member in parameter.members())


def now() -> int:
    """The time; what others have written until now is noted."""
    if _shared is not None:
        with lock:
            found = {parameter: _checksum(parameter) for parameter in _shared}
            changed = [parameter for parameter, checksum in found.items() if checksum != _shared[parameter]]
            _shared.update(found)
            if changed:
                note_write(changed)
    return _time


def expect_unwritten(specs: Iterable[ParameterSpec], since: int) -> None:
    """Check that parameters are what they were.

    Raises:
        EdBatchError: some have been written to after the time `since`; names them.
    """
    if since == _time:
        return
    parameters = [parameter for spec in specs if (parameter := spec.parameter()) is not None]
    members = [member for parameter in parameters for member in parameter.members()]
    changed = dict.fromkeys(member.name for member in members if member.written > since)
    if changed:
        raise EdBatchError(
            f"backward: {', '.join(changed)} changed after the graph had run (an update, set_value, load, or a write "
            "to shared memory), and going back needs the values of then; call backward() and gradient() before "
            "parameters change, or build the graph again"
        )


def _checksum(parameter: Parameter) -> int:
    array = parameter.device.backend.to_host(parameter.array)
    return crc32(np.ascontiguousarray(array.T if array.flags.f_contiguous else array).reshape(-1).data)
