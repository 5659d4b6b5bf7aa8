"""`with` blocks of one kind that are open, of which the innermost is in force.

Blocks need not end in the order in which they were entered: of two generators or coroutines that each hold one, either
may end first, and one that nobody reads on is ended by whatever thread collects it. So a block takes itself out, and
leaves the others as they are; a `ContextVar` that is reset to what it was would bring back a block that is over.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextvars import ContextVar, Token
from threading import get_ident
from typing import Any, Generic, TypeVar

from edbatch.base.exclusive import Whole

T = TypeVar("T")


class Block(Generic[T]):
    """One `with` block.

    Attributes:
        value: what is in force in it; None once another thread or task than its own has ended it.
        below: the block around it.
        frame: number of the call that holds the `with` statement.
        token: tells the thread or task that entered it from all others.
        thread: that entered it.
    """

    __slots__ = ("below", "frame", "thread", "token", "value")

    def __init__(self, value: T | None, below: Block[T] | None, frame: int) -> None:
        self.value = value
        self.below = below
        self.frame = frame
        self.token: Token[Any] | None = None
        self.thread = get_ident()


class Blocks(Generic[T]):
    """Those that are open: each thread and each task has its own. A task begins with those of who started it, and keeps
    them, whenever they end there.

    Attributes:
        top: the one entered last, or one that is always there and has the value None.

    Example:
        >>> blocks, entered = Blocks("example"), []
        >>> first, second = blocks.enter("first", entered), blocks.enter("second", entered)
        >>> blocks.leave(first, entered)
        >>> blocks.innermost()
        'second'
        >>> blocks.leave(second, entered)
        >>> blocks.innermost()
    """

    def __init__(self, name: str) -> None:
        bottom: Block[T] = Block(None, None, 0)
        self.top: ContextVar[Block[T]] = ContextVar(name, default=bottom)

    def innermost(self) -> T | None:
        """The value in force; None outside of all blocks."""
        return next((block.value for block in self if block.value is not None), None)

    def __iter__(self) -> Iterator[Block[T]]:
        """All that are open, innermost first; some may be over, ended elsewhere."""
        block: Block[T] | None = self.top.get()
        while block is not None:
            yield block
            block = block.below

    def enter(self, value: T, entered: list[Block[T]]) -> Block[T]:
        """Begin a block, wholly or not at all; called by the `__enter__` of a `with` statement.

        Args:
            entered: those that are open with this value, to which it is added.
        """
        below = self.top.get()
        while below.value is None and below.below is not None:
            below = below.below
        block = Block(value, below, id(sys._getframe(2)))
        try:
            block.token = self.top.set(block)
            entered.append(block)
            return block
        except BaseException:  # an interrupt: it would be open for whatever comes next
            self.leave(block, entered)
            raise

    def leave(self, block: Block[T], entered: list[Block[T]]) -> None:
        """End a block, in any order, thread and task; it is taken out of the list."""
        try:
            with Whole():
                self._leave(block, entered)
        finally:
            self._leave(block, entered)  # if an interrupt came before they waited

    def leave_one(self, entered: list[Block[T]]) -> bool:
        """End one of the blocks with one value, the one that is left by the `__exit__` that calls this.

        That of the same `with` statement. Where there is none, as for an `ExitStack`, the last of this thread or task.

        Returns:
            Whether there was one.
        """
        frame = id(sys._getframe(2))
        found: Block[T] | None = None
        try:
            found = self._one_of(entered, frame)
            if found is not None:
                self._leave(found, entered)
            return found is not None
        except BaseException:  # an interrupt
            found = found or self._one_of(entered, frame)
            if found is not None:
                self.leave(found, entered)
            raise

    def _one_of(self, entered: list[Block[T]], frame: int) -> Block[T] | None:
        """The block that this frame has entered, or the last of this thread or task."""
        all_entered = entered.copy()  # by other threads too, which go on entering and leaving
        if not all_entered:
            return None
        if len(all_entered) == 1:
            return all_entered[0]
        here = set(self)
        known = [block for block in all_entered if block in here] or all_entered
        return next((block for block in reversed(known) if block.frame == frame), known[-1])

    def _leave(self, block: Block[T], entered: list[Block[T]]) -> None:
        """End a block that is open. Where an interrupt has ended that, it is done once more."""
        token = block.token
        if token is None:
            if self.top.get() is block and block.below is not None:  # entered by half: its token was never kept
                self.top.set(block.below)
            return
        if block in entered:
            entered.remove(block)
        now = self.top.get()
        if now is block and (token.old_value is block.below or token.old_value is Token.MISSING):  # as nearly all are
            try:
                self.top.reset(token)
            except ValueError:  # entered elsewhere, where it is found to be over by its value
                block.value = None
            block.token = None  # which holds it, in a cycle
            return
        with Whole():
            self._take_out(block, token, now)

    def _take_out(self, block: Block[T], token: Token[Any], now: Block[T]) -> None:
        """End a block that others may have been entered in since, elsewhere or here; `now`: the innermost."""
        block.token = None
        try:
            self.top.reset(token)
        except RuntimeError:  # it was, before an interrupt
            return
        except ValueError:  # entered elsewhere
            block.value = None
            return
        if now is not block:
            self.top.set(now)
            above = next((one for one in self if one.below is block), None)
            if above is not None:
                above.below = block.below
        else:  # what was below then is over
            assert block.below is not None
            self.top.set(block.below)
