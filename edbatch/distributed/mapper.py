"""One worker of `map`: runs programs over values, one for each sample of a group, together."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any

from edbatch.errors import EdBatchError
from edbatch.graph.expression import Expression
from edbatch.graph.options import options
from edbatch.runtime.programs.run import run


class Mapper:
    """Runs groups of samples.

    Args:
        job: the program, and options, pickled; see `worker.Worker`.
    """

    def __init__(self, job: bytes) -> None:
        found: tuple[Callable[[Any], Any], dict[str, Any]] = pickle.loads(job)
        self._program, self._options = found

    def run(self, first: int, samples: list[Any]) -> list[Any]:
        """What the programs of samples return, the first of which has this number.

        Raises:
            EdBatchError: a program raises, with its traceback as a note, or returns an expression.
        """
        with options(**self._options):
            found = run(map(self._program, samples), return_exceptions=True)
        for number, result in enumerate(found, start=first):
            if isinstance(result, Exception):
                text = str(result) if isinstance(result, EdBatchError) else f"{type(result).__name__}: {result}"
                error = EdBatchError(f"map: the program of sample {number}: {text}")
                error.add_note("".join(traceback.format_exception(result)))
                raise error
            if isinstance(result, Expression):
                raise EdBatchError(
                    f"map: the program of sample {number}: expected values, which can be sent, got an expression; "
                    "`return await x` returns its value"
                )
        return found
