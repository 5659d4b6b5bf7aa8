"""Functions of users: mini-batches that one of a script builds, as graphs to learn from; a model that is served."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from types import GeneratorType
from typing import Any

import edbatch as eb
from edbatch.base.context_stack import contextmanager
from edbatch.errors import EdBatchError, shown
from edbatch.policy.typed_graph import TypedGraph

MODULE = "__edbatch_script__"  # not "__main__": `if __name__ == "__main__"` blocks stay asleep


def graphs_from_script(source: str) -> Iterator[TypedGraph]:
    """The graphs of the mini-batches that a generator function of a script builds, one before each `yield`.

    Before every step a new graph is made current, so the script opens none. Nothing has to run.
    """
    number, generator = 0, _called(source)
    if not isinstance(generator, GeneratorType):
        raise EdBatchError(f"{source}: expected a generator function; it must yield after each mini-batch")
    while True:
        with eb.Graph() as graph, _blaming(source):
            ended = next(generator, generator) is generator
        typed = graph.typed_graph()
        if ended:
            break
        if not len(typed):
            frame: Any = generator.gi_frame
            raise EdBatchError(
                f"{source.rpartition(':')[0]}:{frame.f_lineno}: mini-batch {number} is empty; "
                "build its expressions before this yield, in the graph that is current, without opening another"
            )
        number += 1
        yield typed
    if not number or len(typed):
        how = f"records after its last yield ({len(typed):,} nodes)" if number else "ended without a yield"
        raise EdBatchError(f"{source}: {how}; expected one after each mini-batch")


def served(source: str) -> tuple[eb.ParameterCollection, Callable[[Any], Any]]:
    """The model and the program that `module:function` returns."""
    match made := _called(source):
        case (eb.ParameterCollection(), program) if callable(program):
            return made[0], program
    raise EdBatchError(f"{source}: expected it to return a model and a program, a function; got {shown(made)}")


def _called(source: str) -> Any:
    """What a function returns: of a file (`script.py:function`), or of a module as `import` names it."""
    place, _, name = source.rpartition(":")
    if not place:
        raise EdBatchError(f"{source}: expected FILE.py:FUNCTION or MODULE:FUNCTION")
    is_file = place.endswith(".py")
    sys.path.insert(0, str(Path(place).resolve().parent) if is_file else os.getcwd())  # as `python` and `python -m` do
    with _blaming(source):
        if is_file and (spec := importlib.util.spec_from_file_location(MODULE, place)) and spec.loader:
            module = sys.modules[MODULE] = importlib.util.module_from_spec(spec)  # where dataclasses look it up
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(place)
        if not callable(function := getattr(module, name, None)):
            there = [
                key for key, x in vars(module).items() if callable(x) and getattr(x, "__module__", 0) == module.__name__
            ]
            raise EdBatchError(f"there is no function {name!r}; there are {', '.join(there) or 'none'}")
        return function()


@contextmanager
def _blaming(source: str) -> Iterator[None]:
    """Keep stdout for results, and name the line of the user's file in whatever goes wrong in it."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except SyntaxError as error:
        raise EdBatchError(f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        ours = (__file__, importlib.__file__)
        frames = [x for x in traceback.extract_tb(error.__traceback__) if x.filename not in ours]
        theirs = [x for x in frames if not x.filename.startswith("<frozen")]
        lines = [x.lineno for x in theirs if x.filename == theirs[0].filename]
        place = f"{theirs[0].filename}:{lines[-1]}" if lines else source
        what = "" if isinstance(error, EdBatchError) else f"{type(error).__name__}: "
        raise EdBatchError(f"{place}: {what}{error}") from error
