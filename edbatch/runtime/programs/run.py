"""`run`: programs over values, all together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sized
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import islice
from types import CoroutineType
from typing import Any

from edbatch.base.context_stack import on_exit
from edbatch.base.lazy import LazyModule
from edbatch.base.numbers import checked_integer
from edbatch.errors import EdBatchError, checked_flag, shown
from edbatch.graph.opened import graphs
from edbatch.policy.policy import Policy
from edbatch.runtime.graph import Graph
from edbatch.runtime.programs.requests import close, is_program
from edbatch.runtime.programs.rounds import Rounds

tqdm = LazyModule("tqdm")


def run(
    programs: Iterable[Any],
    limit: int | None = None,
    return_exceptions: bool = False,
    progress: bool = False,
    *,
    policy: str | os.PathLike[str] | Policy | None = None,
    dtype: str | None = None,
) -> list[Any]:
    """Run programs, one for each sample, in which what comes next depends on values; what they return, in order.

    A program is a coroutine (what `async def` gives) in which `await x` is the value of an expression x, or a generator
    in which `yield x` is. All run until all wait; then what they wait for is computed, batched across all of them; and
    so on. Programs call others by `await` (`yield from` in generators); `await values([...])` waits for several
    expressions, `await all(f(x), g(y))` runs parts of one sample side by side.

    The graph of all rounds is one: losses are built on the way, and `backward` is called once, at the end. It is the
    graph that is open; then all values are kept. Where none is open, it is one of its own, for inference: values that
    neither programs that run nor results can reach are given back on the way, so that any number of samples, or of
    steps, takes bounded memory. What is drawn at random (dropout) in a program depends on its number among
    the programs, not on what else runs. Each program has a context of its own: `with edbatch.options(...)` in one does
    not change others. What is not of a program but of the graph, as `training` is, belongs around `run`.

    The same code runs one sample at a time, with the same values, where nobody drives it: `await` then computes what is
    asked for, in any event loop.

    Args:
        programs: coroutines or generators, in any iterable, which is read as programs begin.
        limit: so many run at a time, the next begins when one ends; None: all.
        return_exceptions: put what a program raises in its place, and have the others go on. Otherwise the others are
            closed, and it is raised with a note of the program's number.
        progress: show a bar.
        policy, dtype: of the graph of its own, see `Graph`: "float64" for a model of that dtype. Without a policy,
            here or of the graph that is open, rounds are scheduled by `critical-path`, which needs no learning.

    Raises:
        EdBatchError: there is something else than a program among them, one that has begun before, or one that waits
            for something else; a policy or dtype is given where a graph is open.

    Example:
        >>> import edbatch as eb
        >>> async def halve(x):
        ...     steps = 0
        ...     while await x > 1:
        ...         x, steps = x * 0.5, steps + 1
        ...     return steps
        >>> with eb.Graph():
        ...     eb.run([halve(eb.scalar(n)) for n in (1, 8, 5)])
        [0, 3, 3]
    """
    if limit is not None:
        limit = checked_integer("run", "limit", limit)
    kept = checked_flag("run: return_exceptions", return_exceptions)
    shows = checked_flag("run: progress", progress)
    if isinstance(programs, CoroutineType) or not isinstance(programs, Iterable) or getattr(programs, "ndim", 1) == 0:
        raise EdBatchError(f"run: expected a list of programs, got {shown(programs)}")
    total: int | None = None
    closing: AbstractContextManager[None] = nullcontext()
    if isinstance(programs, Sized):
        total, closing = len(programs), on_exit(partial(close, programs))  # those that have not begun, if another fails
    # None where nobody sees it: in its finalizer, a Ctrl-C would be lost.
    with closing, tqdm.tqdm(total=total, unit="program") if shows else nullcontext() as bar:
        graph = graphs.innermost()
        if graph is None:
            with Graph(policy, "float32" if dtype is None else dtype) as own:
                return _run(own, True, enumerate(programs), limit, kept, bar)
        if policy is not None or dtype is not None:
            raise EdBatchError("run: policy and dtype are those of the open graph; give them to eb.Graph")
        if not isinstance(graph, Graph):
            raise EdBatchError("run: inside a cell, which is traced and has no values; expected it outside")
        return _run(graph, False, enumerate(programs), limit, kept, bar)


def _run(graph: Graph, alone: bool, given: enumerate[Any], limit: int | None, kept: bool, bar: Any) -> list[Any]:
    results: list[Any] = []

    def begin() -> None:
        """Begin as many programs as may be in flight."""
        for number, program in islice(given, None if limit is None else limit - len(rounds)):
            if not is_program(program):
                raise EdBatchError(
                    f"run: program {number}: expected a coroutine or a generator, what a call of an `async def` "
                    f"function returns, got {shown(program)}"
                )
            results.append(None)
            rounds.begin(number, program)

    def ended(number: int, result: Any, error: Exception | None) -> None:
        if error is not None and not kept:
            error.add_note(f"in program {number} of `run`")
            try:
                raise error
            finally:  # it holds this frame, which would hold it, and both the graph
                del error
        results[number] = result if error is None else error
        if bar is not None:
            bar.update()
        if limit is not None:
            begin()

    with Rounds(graph, ended, forgets=alone) as rounds:
        begin()
        rounds.finish(results, given)
    return results
