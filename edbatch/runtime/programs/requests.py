"""What a program of `edbatch.run` may wait for, beside one expression: several values, and parts of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Generator, Sequence
from inspect import getcoroutinestate
from types import CoroutineType, GeneratorType
from typing import Any, TypeAlias

from edbatch.errors import EdBatchError, shown
from edbatch.graph.expression import Expression, driven
from edbatch.runtime.graph import forward, listed_expressions

Program: TypeAlias = Coroutine[Any, Any, Any] | Generator[Any, Any, Any]


def is_program(part: Any) -> bool:
    """Whether it is what `async def` or a generator function returns when it is called."""
    return isinstance(part, CoroutineType | GeneratorType)


def has_begun(program: Any) -> bool:
    """Whether somebody has run it, to where it waits or to its end, or does."""
    if isinstance(program, GeneratorType):
        return program.gi_suspended or program.gi_running or program.gi_frame is None
    return bool(program.cr_suspended or program.cr_running or program.cr_frame is None)


class Values:
    """Several expressions that are awaited together; made by `values`."""

    __slots__ = ("expressions",)

    def __init__(self, expressions: list[Expression]) -> None:
        self.expressions = expressions

    def __await__(self) -> Generator[Values, Any, list[Any]]:
        found: list[Any] = (yield self) if driven.get() else forward(self.expressions)
        return found


class Parts:
    """Programs of one sample that run side by side; made by `all`."""

    __slots__ = ("programs",)

    def __init__(self, programs: list[Any]) -> None:
        self.programs = programs

    def __await__(self) -> Generator[Any, Any, list[Any]]:
        if driven.get():
            found: list[Any] = yield self
            return found
        found = []
        for program in self.programs:
            found.append((yield from _one_by_one(program)))
        return found


def _one_by_one(part: Any) -> Generator[Any, Any, Any]:
    """What a part returns where nobody drives programs: each runs to its end before the next begins."""
    if not isinstance(part, GeneratorType):
        return (yield from part.__await__())
    go_on, given = part.send, None
    while True:
        try:
            request = go_on(given)
        except StopIteration as end:
            return end.value
        try:
            if isinstance(request, Expression | Parts):
                given = yield from request.__await__()
            else:
                given = forward(asked(request))
            go_on = part.send
        except Exception as error:
            go_on, given = part.throw, error


def values(expressions: Sequence[Expression]) -> Awaitable[list[Any]]:
    """`await eb.values([a, b])`: the values of several expressions at once, in a program of `edbatch.run`.

    Outside of one, `await` computes them at once, as `edbatch.forward` does. A generator gets them by `yield [a, b]`.

    Of an array of expressions it is an array, as `forward` gives it.

    Raises:
        EdBatchError: one is no expression.

    Example:
        >>> import edbatch as eb
        >>> async def larger(a, b):
        ...     x, y = await eb.values([eb.scalar(a) * 2, eb.scalar(b) + 3])
        ...     return x if x > y else y
        >>> eb.run([larger(1, 2), larger(4, 1)])
        [np.float32(5.0), np.float32(8.0)]
    """
    return Values(_checked("values", expressions))


def all(*parts: Any) -> Awaitable[list[Any]]:
    """`await eb.all(f(x), g(y))`: run parts of one sample side by side, and wait for what all of them return.

    Two children of a tree, say, that are programs themselves: what both wait for is computed together. If one raises,
    the others are closed and the exception comes out of the `await`. Outside of `edbatch.run` they run one after the
    other.

    Args:
        parts: coroutines, generators, expressions (of which it is the value), or what `values` and `all` return.

    Raises:
        EdBatchError: a part is something else.

    Example:
        >>> import edbatch as eb
        >>> async def depth(tree):
        ...     if not isinstance(tree, tuple):
        ...         return int(await eb.scalar(0))
        ...     return 1 + max(await eb.all(*[depth(child) for child in tree]))
        >>> eb.run([depth(("a", ("b", "c"))), depth("a")])
        [2, 0]
    """
    for at, part in enumerate(parts):
        if not is_program(part) and not isinstance(part, Expression | Values | Parts):
            close(parts)
            raise EdBatchError(f"all: part {at}: expected a coroutine, a generator or an expression, got {shown(part)}")
    return Parts(list(parts))


def asked(request: Any) -> list[Expression]:
    """The expressions that a request is for, which is not one, nor parts.

    Raises:
        EdBatchError: nobody answers such a request.
    """
    if isinstance(request, Values):
        return request.expressions
    if isinstance(request, list | tuple):
        return _checked("yield", request)
    what = "a coroutine that is not awaited" if isinstance(request, CoroutineType) else shown(request)
    raise EdBatchError(
        f"expected an expression, `values([...])` or `all(...)`, which a program of `run` can await; got {what}"
    )


def _checked(place: str, expressions: Any) -> list[Expression]:
    """A list of expressions, or an error."""
    listed = listed_expressions(place, expressions)
    for at, expression in enumerate(listed):
        if not isinstance(expression, Expression):
            raise EdBatchError(f"{place}: value {at}: expected an expression, got {shown(expression)}")
    return listed


def close(programs: Any) -> None:
    """Close programs that will not run: Python warns of coroutines that nobody has awaited."""
    for program in programs:
        if isinstance(program, Parts):
            close(program.programs)
        elif isinstance(program, CoroutineType) and getcoroutinestate(program) == "CORO_CREATED":
            program.close()
