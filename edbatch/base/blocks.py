"""`with` blocks of one kind that are open, of which the innermost is in force; and how any block ends for certain.

Blocks need not end in the order in which they were entered: of two generators or coroutines that each hold one, either
may end first, and one that nobody reads on is ended by whatever thread collects it. So a block takes itself out, and
leaves the others as they are; a `ContextVar` that is reset to what it was would bring back a block that is over.

Handlers of signals run between the bytecodes of Python, the first one of each function included: an interrupt there
ends an `__exit__` in Python before it did anything. So what enters and leaves is in C, where the extension was built,
and `with` statements call nothing else; without it, an interrupt may leave a block open. Python 3.13 may take one that
comes as a loop goes round for outside of the `with` block that the loop is in (python/cpython#130279): where a lock or
more is held, loops with conditions are in functions of their own.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar, Token
from functools import wraps
from threading import get_ident
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from edbatch.base.extension import extension

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


if TYPE_CHECKING or extension is None:

    class Block(Generic[T]):
        """One `with` block.

        Args:
            top: the variable of the innermost one.
            value: what is in force in it; None once another thread or task than its own has ended it.
            entered: those that are open with this value, where it is added; None if nobody asks.

        Attributes:
            below: the block around it.
            frame: number of the call that holds the `with` statement.
            token: tells the thread or task that entered it from all others.
            thread: that entered it.
        """

        __slots__ = ("below", "entered", "frame", "thread", "token", "top", "value")

        def __init__(self, top: Any, value: T | None, entered: list[Block[T]] | None = None) -> None:
            self.top: ContextVar[Block[T]] = top
            self.value = value
            self.entered = entered
            self.below: Block[T] | None = None
            self.token: Token[Block[T]] | None = None

        def __enter__(self) -> T | None:
            below = self.top.get()
            while below.value is None and below.below is not None:
                below = below.below
            self.below, self.frame, self.thread = below, id(sys._getframe(2)), get_ident()
            self.token = self.top.set(self)
            if self.entered is not None:
                self.entered.append(self)
            return self.value

        def __exit__(self, *_: object) -> None:
            token, self.token = self.token, None  # which holds it, in a cycle
            if token is None:
                return
            if self.entered is not None:
                self.entered.remove(self)
            now = self.top.get()
            try:
                self.top.reset(token)
            except ValueError:  # entered elsewhere, where it is found to be over by its value
                self.value = None
                return
            if now is self:  # what was below then may be over
                assert self.below is not None
                self.top.set(self.below)
                return
            self.top.set(now)
            above = next((one for one in _from(now) if one.below is self), None)
            if above is not None:
                above.below = self.below

    def _method(hook: Callable[..., Any], top: ContextVar[Any] | None, enters: bool) -> Any:
        @wraps(hook)
        def enter(owner: Any) -> Any:
            block = Block(top, owner, owner._entered)
            block.__enter__()
            try:
                return hook(owner, block)
            except BaseException:
                block.__exit__()
                raise

        @wraps(hook)
        def leave(owner: Any, *error: Any) -> Any:
            if top is None:
                return hook(owner, *error)
            block = _here(owner._entered, top, id(sys._getframe(1)))
            if block is not None:
                block.__exit__()
            return hook(owner, block, *error)

        return enter if enters else leave

    def _here(entered: list[Block[Any]], top: ContextVar[Any], frame: int) -> Block[Any] | None:
        """That of this `with` statement, else the last of this thread or task, else the last of all."""
        here = set(_from(top.get()))
        return max(reversed(entered.copy()), key=lambda one: (one in here, one.frame == frame), default=None)

else:
    Block, _method = extension.Block, extension.Method


def _from(block: Block[T] | None) -> Iterator[Block[T]]:
    """A block and those around it, innermost first."""
    while block is not None:
        yield block
        block = block.below


class Blocks(Generic[T]):
    """Those that are open: each thread and each task has its own. A task begins with those of who started it, and keeps
    them, whenever they end there.

    Attributes:
        top: the one entered last, or one that is always there and has the value None.

    Example:
        >>> blocks = Blocks("example")
        >>> with blocks.block("first"), blocks.block("second"):
        ...     blocks.innermost()
        'second'
        >>> blocks.innermost()
    """

    def __init__(self, name: str) -> None:
        bottom: Block[T] = Block(None, None)
        self.top: ContextVar[Block[T]] = ContextVar(name, default=bottom)

    def innermost(self) -> T | None:
        """The value in force; None outside of all blocks."""
        found = self.top.get().value
        return found if found is not None else next((one.value for one in self if one.value is not None), None)

    def __iter__(self) -> Iterator[Block[T]]:
        """All that are open, innermost first; some may be over, ended elsewhere."""
        return _from(self.top.get())

    def block(self, value: T) -> Block[T]:
        """A block that one `with` statement may enter, once."""
        return Block(self.top, value)

    def entering(self, hook: Callable[[S, Block[T]], R]) -> Callable[[S], R]:
        """Have a class enter blocks whose values are its objects, each of which has a list of them as `_entered`.

        Args:
            hook: called with the object and its block, when that is open; what it returns, the `with` statement gives,
                and the block is left if it fails.
        """
        return _method(hook, self.top, True)

    def leaving(self, hook: Callable[..., R]) -> Callable[..., R]:
        """Have a class leave them: that of the `with` statement, else the last of this thread or task.

        Args:
            hook: see `leaving`; called with the object, the block that was left (None: there was none), and the three
                of an error.
        """
        return _method(hook, self.top, False)


def leaving(hook: Callable[..., R]) -> Callable[..., R]:
    """An `__exit__` that an interrupt does not keep from being done.

    Args:
        hook: does it. It is called once more where it ended by an exception, and what is done twice is as if done once.
    """
    return _method(hook, None, False)


class Ending:
    """A block at whose end a function is called, in the place of a `finally` that an interrupt may leave undone.

    Args:
        function: see `leaving`.

    Example:
        >>> with Ending(lambda: print("ended")):
        ...     print("begun")
        begun
        ended
    """

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
    """As that of Python, whose blocks an interrupt may leave unended."""

    @wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> contextlib.AbstractContextManager[R]:
        manager: Any = _Manager  # which the types of Python's library want to be given generators only
        return manager(function, args, keywords)

    return call
