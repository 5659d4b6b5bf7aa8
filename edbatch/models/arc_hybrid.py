"""The arc-hybrid transitions of a dependency parser (Kuhlmann et al. 2011), and their dynamic oracle."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

ROOT = 0  # of a sentence whose words are 1, 2, ...; it is the last of the buffer


class Move(IntEnum):
    """A transition: `SHIFT` puts the first of the buffer on the stack; `LEFT` and `RIGHT` take the top of the stack
    away, with an arc from the first of the buffer, or from what is below."""

    SHIFT = 0
    LEFT = 1
    RIGHT = 2


class Configuration:
    """The state of a parser of a sentence of `length` words: a stack, a buffer, and the arcs there are.

    Example:
        >>> state = Configuration(2)
        >>> for move in (Move.SHIFT, Move.LEFT, Move.SHIFT, Move.LEFT):  # the second word is the head of the first
        ...     state.apply(move)
        >>> state.heads, state.is_over
        ([2, 0], True)
    """

    def __init__(self, length: int) -> None:
        self.stack: list[int] = []  # word numbers, the top last
        self.buffer = [ROOT, *range(length, 0, -1)]  # the first last; the root is behind all words
        self.heads = [-1] * length  # of each word, -1 where there is none yet

    @property
    def is_over(self) -> bool:
        """Whether the root alone is left."""
        return not self.stack and len(self.buffer) == 1

    def allowed(self) -> list[Move]:
        """The moves that can be made."""
        found = [Move.SHIFT] if len(self.buffer) > 1 else []
        if self.stack:
            found.append(Move.LEFT)
        if len(self.stack) > 1:
            found.append(Move.RIGHT)
        return found

    def apply(self, move: Move) -> None:
        """Make a move that is allowed."""
        if move is Move.SHIFT:
            self.stack.append(self.buffer.pop())
        else:
            word = self.stack.pop()
            self.heads[word - 1] = self.buffer[-1] if move is Move.LEFT else self.stack[-1]

    def cost(self, move: Move, heads: Sequence[int]) -> int:
        """How many of the right arcs that can still be made cannot be made after a move (Goldberg and Nivre 2013).

        Args:
            heads: the right head of each word. Where arcs cross, not all of them can be made, and the costs are more
                than what is lost.
        """
        first, waiting = self.buffer[-1], self.buffer[:-1]  # without the first
        if move is Move.SHIFT:
            lost = [word for word in self.stack if heads[word - 1] == first]
            return len(lost) + (heads[first - 1] in self.stack[:-1])
        top = self.stack[-1]
        children = sum(heads[word - 1] == top for word in self.buffer if word != ROOT)
        others = [*waiting, *self.stack[-2:-1]] if move is Move.LEFT else self.buffer
        return children + (heads[top - 1] in others)
