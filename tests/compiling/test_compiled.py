import hashlib
import linecache
import os
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from functools import cache
from itertools import product
from types import ModuleType

import numpy as np
import pytest
from numba import typeof
from numba.core.typing import templates

from edbatch.compiling import cache as code_cache
from edbatch.compiling import compiled as this
from edbatch.compiling.cache import cache_folder
from edbatch.compiling.compiled import compiled
from edbatch.compiling.fingerprint import fingerprint, type_text
from edbatch.errors import EdBatchWarning


@cache
def module_of(source, name=None):
    """The module that a source makes."""
    digest = hashlib.sha256(source.encode()).hexdigest()
    module = ModuleType(name or f"module_of_{digest}")
    module.__file__ = f"<{module.__name__}_{digest}>"
    linecache.cache[module.__file__] = (len(source), None, source.splitlines(keepends=True), module.__file__)
    sys.modules[module.__name__] = module
    exec(compile(source, module.__file__, "exec"), vars(module))
    return module


CALLEE = """
from edbatch.compiling.compiled import compiled
SHIFT = {shift}
@compiled
def callee(x):
    return x + SHIFT
"""
CALLER = """
from {callee} import callee
from edbatch.compiling.compiled import compiled
@compiled
def caller(x):
    return 10 * callee(x)
"""


def caller_of(shift):
    """A function that is always the same, calling one of another module that is not."""
    callee = module_of(CALLEE.format(shift=shift))
    source = CALLER.format(callee=callee.__name__)
    return module_of(source + f"# {shift}", "caller").caller


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for said in ("_warned", "_healed"):
        monkeypatch.setattr(code_cache, said, threading.Event())
    return cache_folder()


def again(function):
    """The same function, as another process finds it."""
    return compiled(function.py_func)


def plus_five():
    @compiled
    def function(x):
        return x + 5

    return function


def test_what_was_compiled_is_found_again(folder):
    function = plus_five()
    assert function(1) == 6
    assert len(list(folder.glob("*.bin"))) == 1
    other = again(function)
    assert other(np.int32(1)) == 6, "integers of all widths are one version"
    assert (other.stats.cache_hits, other.stats.cache_misses) == ({(this.types.int64,): 1}, {})
    assert len(list(folder.glob("*.bin"))) == 1


def test_a_changed_callee_in_another_file_changes_its_callers():
    assert caller_of(1)(1) == 20
    assert caller_of(2)(1) == 30
    assert fingerprint(caller_of(1)) != fingerprint(caller_of(2))


FUNCTION = "from edbatch.compiling.compiled import compiled\n@compiled\ndef f(x):\n    return x + 1\n"
CLASS = "from typing import NamedTuple\nclass Pair(NamedTuple):\n    a: int\n    b: int\n"


def test_what_moved_to_another_module_is_another_function(folder):
    """Another version of EdBatch may have left files that name modules which are gone."""
    for name in ("old_home", "new_home"):
        assert module_of(FUNCTION, name).f(1) == 2
        del sys.modules[name]
    assert len(list(folder.glob("*.bin"))) == 2


def test_an_argument_of_a_class_that_moved_makes_another_version(folder):
    @compiled
    def total(pair):
        return pair.a + pair.b

    for name in ("old_class", "new_class"):
        assert again(total)(module_of(CLASS, name).Pair(1, 2)) == 3
        del sys.modules[name]
    assert len(list(folder.glob("*.bin"))) == 2


@pytest.mark.parametrize(("one", "other"), [("0.0", "-0.0"), ("1", "True"), ("1", "1.0"), ("(1, 2)", "(1, 2.0)")])
def test_constants_are_compared_exactly(one, other):
    sources = (f"A = {value}\ndef f():\n    return A\n" for value in (one, other))
    assert len({fingerprint(module_of(source, "constants").f) for source in sources}) == 2


def test_types_of_records_are_names_types_and_places_of_fields():
    """Code for records of one form is not run on those of another; a constant dtype counts, too."""
    forms = [
        np.dtype([("row", np.int32), ("n", np.int32)]),
        np.dtype([("n", np.int32), ("row", np.int32)]),
        np.dtype([("row", np.int64), ("n", np.int32)]),
        np.dtype({"names": ["row", "n"], "formats": [np.int32] * 2, "offsets": [0, 4], "itemsize": 12}),
    ]
    assert len({type_text(typeof(np.zeros(2, form))) for form in forms}) == len(forms)
    assert len({fingerprint(form) for form in forms}) == len(forms)


def combined(f, g, h):
    @compiled
    def run(x):
        return f(x) + 100 * g(x) + 10_000 * h(x)

    return run


def test_which_of_several_functions_is_called_where(folder):
    def one(x):
        return x + 1

    def ten(x):
        return x + 10

    one, ten = compiled(one), compiled(ten)
    for f, g, h in product((one, ten), repeat=3):
        assert combined(f, g, h)(0) == f(0) + 100 * g(0) + 10_000 * h(0)


def test_what_cannot_be_known_is_refused():
    module = module_of("class Any:\n    pass\nA = Any()\ndef f():\n    return A\n")
    with pytest.raises(TypeError, match="must not depend on"):
        fingerprint(module.f)


def flipped(file, position):
    data = bytearray(file.read_bytes())
    data[position] ^= 4
    file.write_bytes(data)


def of_another(file):
    @compiled
    def other(x):
        return x + 6

    known = set(file.parent.iterdir())
    other(1)
    (source,) = set(file.parent.iterdir()) - known
    shutil.copy(source, file)


DAMAGES = {
    "empty": lambda file: file.write_bytes(b""),
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-100]),
    "garbled": lambda file: file.write_bytes(bytes(reversed(file.read_bytes()))),
    "a bit of its head": lambda file: flipped(file, 15),
    "a bit of its code": lambda file: flipped(file, 2000),
    "of another function": of_another,
    "a folder": lambda file: (file.unlink(), file.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_said_once_and_worked_around(folder, monkeypatch, damage):
    function = plus_five()
    function(1)
    (file,) = folder.iterdir()
    DAMAGES[damage](file)
    heals = damage != "a folder"
    with pytest.warns(EdBatchWarning, match="once, and the file replaced" if heals else "in every process") as said:
        found = [again(function)(1) for _ in range(2)]
    assert found == [6, 6]
    assert len(said) == 1
    assert code_cache.works() is heals
    if heals:
        for event in ("_warned", "_healed"):
            monkeypatch.setattr(code_cache, event, threading.Event())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert again(function)(1) == 6


def test_a_folder_that_cannot_be_written_is_said_and_worked_around(folder):
    folder.parent.mkdir()
    folder.write_text("a file where the folder should be")
    with pytest.warns(EdBatchWarning, match="compiled again"):
        assert plus_five()(1) == 6


def test_a_full_disk_is_said_and_worked_around(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(EdBatchWarning, match="No space left"):
        assert plus_five()(1) == 6
    assert list(folder.iterdir()) == []


TWO_AT_ONCE = """
import sys, time
from edbatch.compiling.compiled import compiled

@compiled
def function(x):
    return x * 3 + 1

sys.stdin.read(1)
print(function(4))
"""


def test_two_processes_that_start_at_once():
    both = [
        subprocess.Popen([sys.executable, "-c", TWO_AT_ONCE], stdin=-1, stdout=-1, stderr=-1, text=True)
        for _ in range(2)
    ]
    for process in both:
        process.stdin.write("x")
        process.stdin.flush()
    assert [process.communicate() for process in both] == [("13\n", "")] * 2


def test_an_interrupt_waits_for_the_compiler(monkeypatch):
    """Numba fills its tables by generators of the process: one that an exception leaves is over, for good."""
    original, sent = templates.BaseRegistryLoader.new_registrations, []

    def interrupted(self, name):
        if not sent:
            sent.append(name)
            signal.raise_signal(signal.SIGINT)
        yield from original(self, name)

    monkeypatch.setattr(templates.BaseRegistryLoader, "new_registrations", interrupted)
    function = plus_five()
    with pytest.raises(KeyboardInterrupt):
        function(1)
    assert sent
    assert len(function.overloads) == 1
    assert function(1) == 6


@pytest.mark.parametrize("moment", ["_pays", "_cost", "_interpreted", "py_func"])
@pytest.mark.parametrize("patience", [0.0, 1e3])
def test_another_thread_may_find_that_compiling_pays_at_any_moment(monkeypatch, moment, patience):
    """The function becomes one of another class while this thread judges or interprets it."""

    class Judged(this.Small):
        def __getattribute__(self, name):
            found = super().__getattribute__(name)
            if name == moment:
                self.__class__ = this.Compiled
            return found

    monkeypatch.setattr(this, "PATIENCE", patience)
    function = compiled(small=True)(plus_five().py_func)
    function.__class__ = Judged
    assert function(1) == 6
    assert type(function) is this.Compiled
    assert function(1) == 6
