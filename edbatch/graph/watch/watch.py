"""Watching a cell's function while it is traced: what it reads besides its arguments.

Python does not say which attribute, global or closure variable is read. It does say which functions run, and a
function's code says by which names it reads: every name is looked for in all that the function can see - its
globals and closure, its arguments and what it is returned, and what these lead to by names of its code, or as parts of
containers. What is found is more than what was read, if other objects have attributes of the same names; a trace that
is made again in vain is found to be equal, and compiled once.
"""

from __future__ import annotations

import gc
import re
import sys
import threading
from collections.abc import Callable, Mapping
from types import CodeType, FrameType, MappingProxyType, ModuleType
from typing import Any

from edbatch.errors import EdBatchError
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.watch.guard import Guard, Read
from edbatch.graph.watch.modules import is_pure, is_standard
from edbatch.graph.watch.parameters import READS_VALUES, parameter_reads
from edbatch.graph.watch.search import Ran, Search
from edbatch.graph.watch.state import state_read

_READS_FILES = (open, input)
_MAY_READ_FILES = ("importlib", "linecache", "tokenize", "inspect", "logging", "traceback", "edbatch")

# What reads attributes whose names may be computed.
_BY_NAME = (getattr, hasattr, vars, dir)


class Watch:
    """What runs while a cell is traced, which is done twice.

    Args:
        of: the cell or the function, for errors.
        once: what is done once, for errors.
    """

    def __init__(self, of: str, once: str = "a cell is traced once") -> None:
        self._of = of
        self._once = once
        self._ran: dict[CodeType, Ran] = {}
        self._runs = 0
        self._imports = 0  # that have begun and not ended
        # With what they are read of, so that no `id` comes twice.
        self._of_parameters: dict[Any, tuple[Any, Read]] = {}
        self._refused: str | None = None

    def run(self, function: Callable[[], Any]) -> Any:
        """Run a function and see what it runs.

        Raises:
            EdBatchError: it read something that cannot be watched.
        """
        before: Any = sys.getprofile()
        thread = threading.get_ident()

        def event(frame: FrameType, kind: str, about: Any) -> None:
            if threading.get_ident() == thread:
                self._see(frame, kind, about)
            if callable(before):
                before(frame, kind, about)

        # What the garbage collector calls (finalizers, callbacks of others) is nothing that the function reads.
        collects = gc.isenabled()
        self._imports = 0
        try:
            gc.disable()
            sys.setprofile(event)
            result = function()
        finally:
            sys.setprofile(before if before is None or callable(before) else None)
            if collects:
                gc.enable()
            if before is not None and not callable(before):
                before.enable()  # a profiler written in C, up to Python 3.11
            self._runs += 1
        if self._refused is not None:
            raise EdBatchError(self._refused)
        return result

    def guard(self, function: Any, owner: Any, given: Mapping[int, Any] = MappingProxyType({})) -> Guard:
        """What must stay as it is now.

        Args:
            function: of the cell.
            owner: whose dictionary a guard is given when it is asked; None: nobody's.
            given: objects that are compared by others, by their `id`.

        Raises:
            EdBatchError: it read something that cannot be watched; names it.
        """
        of_parameters = (read for _, read in self._of_parameters.values())
        return Guard([*Search(self._ran, owner, self._once, given).reads_of(function), *of_parameters], self._of)

    def _see(self, frame: FrameType, kind: str, about: Any) -> None:
        code, scope = frame.f_code, frame.f_globals
        module = scope.get("__name__", "")
        if module == "importlib._bootstrap" and code.co_name == "_find_and_load":
            self._imports += (kind == "call") - (kind == "return")
            return
        if self._imports:
            return  # by hooks, and by what is imported for the first time: the next run would not
        if kind == "call" and (module, code.co_qualname) in READS_VALUES:
            self._refused = self._refused or (
                f"it reads a value, by {code.co_qualname}; {self._once}, and would keep what is there now. "
                "Use the parameter or expression itself (eb.stop_gradient stops its gradient), or pass the value as an "
                "argument"
            )
        if kind == "c_call" and about in _READS_FILES and not module.startswith(_MAY_READ_FILES):
            self._refused = self._refused or (
                f"it calls {about.__name__}(); {self._once}, and would keep what was read then"
            )
        if kind in ("call", "c_call") and (refused := state_read(frame, kind, about)):
            self._refused = self._refused or f"it calls {refused}(); {self._once}, and would keep what it gave"
        if is_pure(module):
            if kind == "call" and module.startswith("edbatch") and (found := parameter_reads(frame)) is not None:
                self._note_parameters(frame, *found)
            return
        back = frame.f_back
        if is_standard(module) and (back is None or back.f_code not in self._ran):
            return  # called by what is pure
        ran = self._ran.get(code)
        if ran is None:
            ran = self._ran[code] = Ran(code, scope)
        seen = ran.objects[min(self._runs, 1)]
        if kind == "c_call":
            if about in _BY_NAME:
                ran.is_dynamic = True
            ran.reads_scope |= about is globals
            owner = getattr(about, "__self__", None)
            if isinstance(owner, str) and about.__name__ in ("format", "format_map"):
                ran.names.update(re.findall(r"[.\[](\w+)", owner))
            if owner is not None and not isinstance(owner, ModuleType):
                seen[id(owner)] = "something", owner
        elif kind in ("call", "return"):
            for name, value in frame.f_locals.items():
                seen[id(value)] = name, value
            ran.gave_nothing |= kind == "return" and about is None
            if kind == "return" and back is not None and back.f_code in self._ran:
                caller = self._ran[back.f_code].objects[min(self._runs, 1)]
                caller.setdefault(id(about), (f"{code.co_name}()", about))

    def _note_parameters(self, frame: FrameType, holder: Any, read: Read, found: list[Parameter]) -> None:
        """Watch the place, and what the user's function that asked is given."""
        self._of_parameters[id(holder), read.path] = holder, read
        asks: FrameType | None = frame
        while asks is not None and asks.f_code not in self._ran:
            asks = asks.f_back
        if asks is not None:
            seen = self._ran[asks.f_code].objects[min(self._runs, 1)]
            for one in found:
                seen.setdefault(id(one), (f"parameter {one.name!r}", one))
