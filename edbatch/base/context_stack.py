"""`with` blocks that an interrupt does not leave open, and of those of one kind the innermost, which is in force.

Blocks need not end in the order in which they were entered: of two generators or coroutines that each hold one, either
may end first, and one that nobody reads on is ended by whatever thread collects it. So a block takes itself out, and
leaves the others as they are; a `ContextVar` that is reset to what it was would bring back a block that is over.

Handlers of signals run between the bytecodes of Python, the first one of each function included: an interrupt there
ends an `__exit__` in Python before it did anything. So what leaves is called by C, where the extension was built, and
once more if an interrupt ended it; without C, an interrupt may leave a block open. Python 3.13 may take one that comes
as a loop goes round for outside of the `with` block that the loop is in (python/cpython#130279): where a lock or more
is held, loops with conditions are in functions of their own.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import wraps
from threading import get_ident
from typing import Any, Generic, ParamSpec, TypeVar

from edbatch.base.extension import extension

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


_LEAVING, _REMEMBERING = 5, 6  # kinds of callers, see `graph.recorder`
_AROUND = 1 if extension is not None else 2  # frames from a hook to the `with` statement


def _surely(hook: Callable[..., Any], remembers: bool) -> Any:
    """What calls a hook once more where an interrupt ended it; it `remembers` in a list that it is given first."""
    if extension is not None:
        return wraps(hook)(extension.Caller(_REMEMBERING if remembers else _LEAVING, 1, False, hook, ("self",), ()))

    @wraps(hook)
    def leave(*args: Any) -> Any:
        return hook([], *args) if remembers else hook(*args)

    return leave


def leaving(hook: Callable[..., R]) -> Callable[..., R]:
    """Make an `__exit__` of a hook: it is called once more where an interrupt ended it, so twice has to be as once."""
    made: Callable[..., R] = _surely(hook, False)
    return made


class OpenContext(Generic[T]):
    """One `with` block.

    Args:
        top: the variable of the innermost one.
        value: what is in force in it; None once it is over.
        entered: those that are open with this value, where it is added; None if nobody asks.
        frame: of the `with` statement, by its `id`.

    Attributes:
        below: the block around it.
        thread: of the `with` statement.
    """

    __slots__ = ("below", "entered", "frame", "thread", "top", "value")

    def __init__(self, top: Any, value: T | None, entered: list[OpenContext[T]] | None = None, frame: int = 0) -> None:
        self.top: ContextVar[OpenContext[T]] = top
        self.value, self.entered, self.frame, self.thread = value, entered, frame, get_ident()
        self.below: OpenContext[T] | None = None

    def __enter__(self) -> T | None:
        try:
            below = self.top.get()
            while below.value is None and below.below is not None:
                below = below.below
            self.below = below
            self.top.set(self)
            if self.entered is not None:
                self.entered.append(self)
            return self.value
        except BaseException:
            self._end()
            raise

    @leaving
    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        """Have it be over, in all threads and tasks, and take it out of this one's; twice is as once."""
        self.value = None
        if self.entered is not None and self in self.entered:
            self.entered.remove(self)
        now = self.top.get()
        while now.value is None and now.below is not None:
            now = now.below
            self.top.set(now)
        while (below := now.below) is not None:
            if below.value is None and below.below is not None:
                now.below = below.below
            else:
                now = below


def _from(block: OpenContext[T] | None) -> Iterator[OpenContext[T]]:
    """A block and those around it, innermost first."""
    while block is not None:
        yield block
        block = block.below


class ContextStack(Generic[T]):
    """The open blocks of a kind, of each thread and task; a task begins with those of who started it, and keeps them.

    Attributes:
        top: the one entered last, or one that is always there and has the value None.

    Example:
        >>> blocks = ContextStack("example")
        >>> with blocks.block("first"), blocks.block("second"):
        ...     blocks.innermost()
        'second'
        >>> blocks.innermost()
    """

    def __init__(self, name: str) -> None:
        bottom: OpenContext[T] = OpenContext(None, None)
        self.top: ContextVar[OpenContext[T]] = ContextVar(name, default=bottom)

    def innermost(self) -> T | None:
        """The value in force; None outside of all blocks."""
        found = self.top.get().value
        return found if found is not None else next((one.value for one in self if one.value is not None), None)

    def __iter__(self) -> Iterator[OpenContext[T]]:
        """All that are open, innermost first; some may be over, ended elsewhere."""
        return _from(self.top.get())

    def block(self, value: T) -> OpenContext[T]:
        """A block that one `with` statement may enter, once."""
        return OpenContext(self.top, value)

    def entering(self, hook: Callable[[S, OpenContext[T]], R]) -> Callable[[S], R]:
        """Make an `__enter__` of a class whose objects are the values of blocks, in a list of each, `_entered`.

        Args:
            hook: called with the object and its open block, which is left if it fails; returns what `with` gives.
        """

        @wraps(hook)
        def enter(owner: Any) -> R:
            block: OpenContext[T] = OpenContext(self.top, owner, owner._entered, id(sys._getframe(1)))
            try:
                block.__enter__()
                return hook(owner, block)
            except BaseException:
                block._end()
                raise

        return enter

    def leaving(self, hook: Callable[..., R]) -> Callable[..., R]:
        """Make its `__exit__`: it leaves the block of the `with` statement, else the last of this thread or task.

        Args:
            hook: see `leaving`; called with the object, the block that was left (None: there was none), and the error.
        """

        @wraps(hook)
        def leave(found: list[OpenContext[T] | None], owner: Any, *error: Any) -> R:
            if not found:
                found.append(self._here(owner._entered, id(sys._getframe(_AROUND))))
            if found[0] is not None:
                found[0]._end()
            return hook(owner, found[0], *error)

        made: Callable[..., R] = _surely(leave, True)
        return made

    def _here(self, entered: list[OpenContext[T]], frame: int) -> OpenContext[T] | None:
        """That of this `with` statement, else the last of this thread or task, else the last of all."""
        if len(entered) == 1:
            return entered[0]
        here = set(self)
        return max(reversed(entered.copy()), key=lambda one: (one in here, one.frame == frame), default=None)


class on_exit:
    """A block at whose end a function is called (see `leaving`), where an interrupt may leave a `finally` undone."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function

    def __enter__(self) -> None:
        """Nothing to do."""

    @leaving
    def __exit__(self, *_: object) -> None:
        self._function()


class _Manager(contextlib._GeneratorContextManager):
    __exit__ = leaving(contextlib._GeneratorContextManager.__exit__)


def contextmanager(function: Callable[P, Iterator[R]]) -> Callable[P, contextlib.AbstractContextManager[R]]:
    """Return `contextlib.contextmanager`'s, whose blocks end for certain."""

    @wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> contextlib.AbstractContextManager[R]:
        return _Manager(function, args, keywords)  # type: ignore[arg-type]

    return call
