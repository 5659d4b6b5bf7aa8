"""When parameters were last written to: what a graph computed before that has no gradient any more that is anybody's.

Time is the number of writes so far. Writes by another library, to memory that was exported, are told by `touch`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from edbatch.base.exclusive import lock
from edbatch.errors import EdBatchError
from edbatch.graph.spec import ParameterSpec

if TYPE_CHECKING:
    from edbatch.graph.model.parameters import Parameter

_time = 0


def note_write(parameters: Iterable[Parameter]) -> None:
    """Say that parameters have been written to."""
    global _time
    with lock:
        _time += 1
        for parameter in parameters:
            for member in parameter.members():
                member.written = _time


def last_write(parameter: Parameter) -> int:
    """When a parameter was last written to; 0: never."""
    return max(member.written for member in parameter.members())


def now() -> int:
    """Return the time."""
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
            f"backward: {', '.join(changed)} changed after the graph had run (an update, set_value, load or "
            "touch), and going back needs the values of then; call backward() and gradient() before "
            "parameters change, or build the graph again"
        )
