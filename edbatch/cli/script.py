"""Functions of users: mini-batches that one of a script builds, as graphs to learn from; a model that is served."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import edbatch as eb
from edbatch.base.files import read_text
from edbatch.errors import EdBatchError, shown
from edbatch.policy.typed_graph import TypedGraph

MODULE = "__edbatch_script__"  # not "__main__": `if __name__ == "__main__"` blocks stay asleep


def graphs_from_script(path: str, name: str) -> Iterator[TypedGraph]:
    """The graphs of the mini-batches that a generator function of a script builds, one before each `yield`.

    Before every step a new graph is made current, so the script opens none. Nothing has to run.
    """
    module = ModuleType(MODULE)
    module.__file__ = path
    text = read_text(path)
    number, expected = 0, "expected one after each mini-batch"
    with _importing_from(str(Path(path).resolve().parent)):
        sys.modules[MODULE] = module  # dataclasses look their module up
        with _blaming(path):
            exec(compile(text, path, "exec"), module.__dict__)
        function = _function(path, module, name)
        if not inspect.isgeneratorfunction(function):
            raise EdBatchError(f"{path}: {name} is no generator function; it must yield after each mini-batch")
        with _blaming(path):
            generator = function()
        while True:
            with eb.Graph() as graph, _blaming(path):
                ended = next(generator, generator) is generator
            typed = graph.typed_graph()
            if ended:
                break
            if not len(typed):
                raise EdBatchError(
                    f"{path}:{generator.gi_frame.f_lineno}: mini-batch {number} is empty; "
                    "build its expressions before this yield, in the graph that is current, without opening another"
                )
            number += 1
            yield typed
    if not number:
        raise EdBatchError(f"{path}: {name}() ended without a yield; {expected}")
    if len(typed):
        raise EdBatchError(f"{path}: {name}() records after its last yield ({len(typed):,} nodes); {expected}")


def served(source: str) -> tuple[eb.ParameterCollection, Callable[[Any], Any]]:
    """The model and the program that `module:function` returns."""
    module, _, name = source.partition(":")
    if not name or not all(part.isidentifier() for part in module.split(".")):
        raise EdBatchError(f"{source}: expected MODULE:FUNCTION, the module as `import` names it")
    with _importing_from(os.getcwd()), _blaming(source):  # as `python -m` does
        found = importlib.import_module(module)
    function = _function(source, found, name)
    with _blaming(source):
        made = function()
    match made:
        case (eb.ParameterCollection(), program) if callable(program):
            return made[0], program
    raise EdBatchError(f"{source}: expected it to return a model and a program, a function; got {shown(made)}")


def _function(source: str, module: ModuleType, name: str) -> Callable[[], Any]:
    found = getattr(module, name, None)
    if not callable(found):
        its = (value for value in vars(module).values() if inspect.isroutine(value))
        there = [value.__name__ for value in its if value.__module__ == module.__name__]
        raise EdBatchError(f"{source}: no function {name!r}; there are {', '.join(there) or 'none'}")
    return found


@contextmanager
def _importing_from(folder: str) -> Iterator[None]:
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        sys.modules.pop(MODULE, None)


@contextmanager
def _blaming(source: str) -> Iterator[None]:
    """Keep stdout for results, and name the line of the user's file in whatever goes wrong in it."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except SyntaxError as error:
        raise EdBatchError(f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = (__file__, importlib.__file__)
        theirs = [x for x in frames if x.filename not in ours and not x.filename.startswith("<frozen")]
        lines = [x.lineno for x in theirs if x.filename == theirs[0].filename]
        place = f"{theirs[0].filename}:{lines[-1]}" if lines else source
        what = "" if isinstance(error, EdBatchError) else f"{type(error).__name__}: "
        raise EdBatchError(f"{place}: {what}{error}") from error
