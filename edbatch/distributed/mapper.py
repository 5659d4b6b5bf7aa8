"""One worker of `map`: runs programs over values, one for each sample of a group, together."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from edbatch.base.later import Later
from edbatch.distributed.failures import RAISED, failed, to_send, unsendable
from edbatch.errors import EdBatchError, shown
from edbatch.graph.expression import Expression
from edbatch.graph.options import options
from edbatch.runtime.programs.requests import close, is_program
from edbatch.runtime.programs.run import run

cloudpickle = Later("ray.cloudpickle")


class Mapper:
    """Runs groups of samples.

    Args:
        job: the program, and options, pickled; see `worker.Worker`.
    """

    def __init__(self, job: bytes) -> None:
        self._job = job
        self._made: tuple[Callable[[Any], Any], dict[str, Any]] | None = None

    def run(self, first: int, samples: list[Any]) -> list[Any]:
        """What the programs of samples return, the first of which has this number.

        Raises:
            EdBatchError: the program cannot be made again here, it is none, raises, with its traceback as a note, or
                returns an expression, or what cannot be sent.
        """
        if self._made is None:
            try:
                self._made = pickle.loads(self._job)
            except Exception as error:
                place = "map: the program, made again in a worker (which needs the same modules)"
                raise to_send(failed(place, error), error) from None
        program, given = self._made
        try:
            with options(**given):
                found = run(_begun(program, first, samples), return_exceptions=True)
        except RAISED as error:
            if isinstance(error, EdBatchError):
                raise
            raise to_send(
                failed(f"map: the programs of samples {first} to {first + len(samples) - 1}", error), error
            ) from None
        for number, result in enumerate(found, start=first):
            if isinstance(result, Exception):
                raise to_send(failed(_of(number), result), result)
            if isinstance(result, Expression):
                raise EdBatchError(
                    f"{_of(number)}: expected values, which can be sent, got an expression; "
                    "`return await x` returns its value"
                )
        try:
            cloudpickle.dumps(found, protocol=5, buffer_callback=_ignored)  # arrays are not copied
        except Exception as error:
            named = ((f"what the program of sample {number} returned", x) for number, x in enumerate(found, first))
            raise unsendable("map", named, error) from None
        return found


def _begun(program: Callable[[Any], Any], first: int, samples: list[Any]) -> list[Any]:
    """A program for each sample."""
    found: list[Any] = []
    try:
        for number, sample in enumerate(samples, start=first):
            try:
                found.append(program(sample))
            except Exception as error:
                raise to_send(failed(_of(number), error), error) from None
            if not is_program(found[-1]):
                raise EdBatchError(
                    f"{_of(number)}: expected a coroutine or a generator, what a call of an `async def` function "
                    f"returns, got {shown(found.pop())}"
                )
    except EdBatchError:
        close(found)
        raise
    return found


def _of(number: int) -> str:
    return f"map: the program of sample {number}"


def _ignored(buffer: Any) -> None:
    """A buffer that is sent beside a pickle."""
