"""When parameters were last written to: what a graph recorded or ran before that is not mixed with what comes later.

Time is the number of writes so far. Writes by another library, to memory that was exported, are told by `touch`.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import get_ident
from typing import TYPE_CHECKING, Any
from weakref import ref

from edbatch.base.context_stack import ContextStack
from edbatch.base.locking import lock
from edbatch.errors import EdBatchError
from edbatch.graph.spec import ParameterSpec


class Source:
    """A call of `backward`: each parameter that gets a gradient remembers the last one."""

    __slots__ = ("is_applied", "seconds")

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds
        self.is_applied = False


#: The call of `backward` that runs.
running: ContextStack[Source] = ContextStack("edbatch_running_backward")


if TYPE_CHECKING:
    from edbatch.graph.model.parameters import Parameter

_time = 0
_graphs: dict[int, tuple[int, ref[Any]]] = {}  # by `id`, with the threads that made them


def follow(graph: Any) -> None:
    """Tell a graph of all writes by this thread from now on: by its `note_write(time)`."""
    _graphs[id(graph)] = get_ident(), ref(graph)


def unfollow(graph: Any) -> None:
    """Tell it of no more."""
    _graphs.pop(id(graph), None)


def note_write(parameters: Iterable[Parameter]) -> None:
    """Say that parameters have been written to."""
    global _time
    with lock:
        _time += 1
        for parameter in parameters:
            for member in parameter.members():
                member.written = _time
        here = get_ident()
        for thread, held in list(_graphs.values()):
            if thread == here and (graph := held()) is not None:
                graph.note_write(_time)


def now() -> int:
    """Return the time."""
    return _time


def expect_unwritten(specs: Iterable[ParameterSpec], since: int) -> None:
    """Raise an error that names those parameters which have been written to after the time `since`."""
    if since == _time:
        return
    parameters = [parameter for spec in specs if (parameter := spec.parameter()) is not None]
    changed = {member.name: 0 for x in parameters for member in x.members() if member.written > since}
    if changed:
        raise EdBatchError(
            f"backward: {', '.join(changed)} changed after the graph had run (an update, set_value, load or "
            "touch), and the backward pass needs the values from that run; call backward() and gradient() before "
            "parameters change, or build the graph again"
        )
