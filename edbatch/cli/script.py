"""Mini-batches built by a function of a user's script, as graphs to learn from."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import GeneratorType, ModuleType

import edbatch as eb
from edbatch.base.files import read_text
from edbatch.base.signature import signature_of
from edbatch.policy.typed_graph import TypedGraph

MODULE = "__edbatch_script__"  # not "__main__": `if __name__ == "__main__"` blocks stay asleep


def graphs_from_script(path: str, function: str) -> Iterator[TypedGraph]:
    """The graphs of the mini-batches that a generator function of a script builds, one before each `yield`.

    Before every step a new graph is made current, so the script opens none. Nothing has to run. What the
    script prints goes to stderr.

    Raises:
        EdBatchError: the script cannot be read or run, the function is missing, is no generator function or
            needs arguments, builds nothing before a `yield`, or something after the last; the message names the line of
            the script.
    """
    with _importable(path):
        generator = _generator(path, function)
        mini_batches = 0
        while True:
            with eb.Graph() as graph, _running(path):
                try:
                    next(generator)
                except StopIteration:
                    break
            typed = graph.typed_graph()
            if not len(typed):
                assert generator.gi_frame is not None  # it stands at a yield
                raise eb.EdBatchError(
                    f"{path}:{generator.gi_frame.f_lineno}: mini-batch {mini_batches} is empty; "
                    "build its expressions before this yield, in the graph that is current, without opening another"
                )
            mini_batches += 1
            yield typed
        if not mini_batches:
            raise eb.EdBatchError(f"{path}: {function}() ended without a yield; expected one after each mini-batch")
        left = len(graph.typed_graph())
        if left:
            raise eb.EdBatchError(
                f"{path}: {function}() records after its last yield ({left:,} nodes); "
                "expected one after each mini-batch"
            )


def _generator(path: str, name: str) -> GeneratorType:
    """The generator that `name` of the script returns, not yet started."""
    module = ModuleType(MODULE)
    module.__file__ = path
    sys.modules[MODULE] = module  # dataclasses look their module up
    text = read_text(path)
    with _running(path):
        exec(compile(text, path, "exec"), module.__dict__)
    function = module.__dict__.get(name)
    if not callable(function):
        there = [key for key, value in module.__dict__.items() if inspect.isgeneratorfunction(value)]
        raise eb.EdBatchError(f"{path}: no function {name!r}; its generator functions are {', '.join(there) or 'none'}")
    code = getattr(inspect.unwrap(function), "__code__", None)
    place = f"{path}:{code.co_firstlineno}" if code else path
    if not inspect.isgeneratorfunction(function):
        raise eb.EdBatchError(f"{place}: {name} is no generator function; it must yield after each mini-batch")
    try:
        signature_of(function).bind()
    except TypeError as error:
        raise eb.EdBatchError(f"{place}: {name}() is called without arguments: {error}") from error
    generator = function()
    assert isinstance(generator, GeneratorType)
    return generator


@contextmanager
def _importable(path: str) -> Iterator[None]:
    """The script can import modules beside it, and libraries find its own."""
    folder = str(Path(path).resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        sys.modules.pop(MODULE, None)


@contextmanager
def _running(path: str) -> Iterator[None]:
    """Keep stdout for results, and name the line of the script in whatever goes wrong in it."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except SyntaxError as error:
        raise eb.EdBatchError(f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(frames) if frame.filename == path), None)
        place = path if line is None else f"{path}:{line}"
        what = "" if isinstance(error, eb.EdBatchError) else f"{type(error).__name__}: "
        raise eb.EdBatchError(f"{place}: {what}{error}") from error
