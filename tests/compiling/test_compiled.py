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
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numba import typeof
from numba.core.typing import templates

from edbatch.base import stopwatch
from edbatch.compiling import cache as code_cache
from edbatch.compiling import compiled as this
from edbatch.compiling.cache import cache_folder
from edbatch.compiling.compiled import compiled
from edbatch.compiling.fingerprint import callees, fingerprint, type_text
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


@pytest.mark.parametrize("named", ["", "cache", "./cache", "../cache"])
def test_a_cache_folder_that_is_no_absolute_path_is_ignored(named, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", named)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache_folder() == tmp_path / ".cache" / "edbatch" / "compiled"


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


def test_names_and_positions_do_not_matter():
    sources = ("def f(x):\n    return x + 1\n", "\n\n\ndef f(x):\n    return x + 1\n")
    assert len({fingerprint(module_of(source, "lines").f) for source in sources}) == 1


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
    with pytest.warns(EdBatchWarning, match="compiled anew"):
        assert plus_five()(1) == 6


def test_a_damaged_file_that_cannot_be_replaced(folder, monkeypatch):
    """The second problem is said, too: what the first warning promises is not so."""

    def full(*_):
        raise OSError(28, "No space left on device")

    function = plus_five()
    function(1)
    (file,) = folder.iterdir()
    file.write_bytes(b"")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(EdBatchWarning) as said:
        assert again(function)(1) == 6
    assert [": damaged;" in str(one.message) for one in said] == [True, False]
    assert "No space left" in str(said[1].message)


def test_a_full_disk_is_said_and_worked_around(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(EdBatchWarning, match="No space left"):
        assert plus_five()(1) == 6
    assert list(folder.iterdir()) == []


def test_the_folder_may_be_deleted_at_any_time(folder):
    function = plus_five()
    assert function(1) == 6
    shutil.rmtree(folder)
    assert function(1.5) == 6.5
    assert again(function)(1) == 6


def test_all_of_the_package_is_compiled_by_one_decorator():
    found = subprocess.run(
        ["grep", "-rlE", r"njit|numba\.jit|@jit|@cfunc", os.path.dirname(this.__file__), "--include=*.py"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    assert [os.path.basename(path) for path in found] in (["compiled.py"], [])


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


def test_on_a_terminal_it_says_what_is_compiled_and_how_far_it_is(monkeypatch, capsys):
    caller = again(caller_of(7))
    assert len(callees(caller)) == 2
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    bars = []

    class Bar:
        def __init__(self, **given):
            bars.append(given)
            self.done = 0

        def __enter__(self):
            return self

        def __exit__(self, *_):
            bars.append(self.done)

        def update(self):
            self.done += 1

    monkeypatch.setattr("tqdm.tqdm", Bar)
    assert caller(1) == 80
    shown, done = bars
    assert (shown["total"], done) == (2, 1)
    assert "caller, once per machine" in shown["desc"]
    caller(1)
    again(caller_of(7))(1)
    assert len(bars) == 2, "nothing is said where nothing is compiled"


def test_what_it_waits_for_while_others_are_compiled_is_no_interpreting(monkeypatch):
    """On a busy machine compiling takes longer than the processor works for it."""
    clock = dict.fromkeys(("perf_counter", "thread_time"), 0.0)
    monkeypatch.setattr(stopwatch, "perf_counter", lambda: clock["perf_counter"])
    monkeypatch.setattr(stopwatch, "thread_time", lambda: clock["thread_time"])

    def passes(waiting, working):
        clock["perf_counter"] += waiting + working
        clock["thread_time"] += working

    @compiled(small=True)
    def function():
        passes(0.0, 0.125)
        with stopwatch.compiling:
            passes(8.0, 2.0)
        passes(1.0, 0.03125)

    function._interpreted = 0.0  # nothing is on the disk
    function()
    assert function._interpreted == pytest.approx(0.125 + 0.03125)


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


CALLING = """
from edbatch.compiling.compiled import compiled

@compiled(small=True)
def inner(x):
    return x + x[0]

@compiled(small=True)
def outer(x):
    return inner(x) + 1
"""


def test_where_compiling_pays_nothing_of_python_is_called_any_more(folder):
    module = module_of(CALLING)
    inner, outer = module.inner, module.outer
    few, many = np.zeros(2, np.int64), np.ones(this.SMALL + 1, np.int64)
    assert type(inner) is type(outer) is this.Small
    assert inner(many).sum() == 2 * len(many)
    assert type(inner) is this.Compiled
    assert list(outer(few)) == [1, 1]
    assert (type(inner), type(outer)) == (this.Small, this.Small), "what is interpreted calls no compiled code"
    assert list(outer(many)[:2]) == [3, 3]
    assert (type(inner), type(outer)) == (this.Small, this.Compiled)
    assert inner(many).sum() == 2 * len(many)
    assert "__call__" not in vars(this.Compiled)


def test_functions_of_any_number_of_arguments_are_found_on_disk_at_once(folder):
    module = module_of(
        "from edbatch.compiling.compiled import compiled\n@compiled(small=True)\ndef f(x, *ys):\n    return ys[0][0]\n"
    )
    few, many = np.zeros(2, np.int64), np.ones(this.SMALL + 1, np.int64)
    for arrays in ([many, many], [many, np.ones((1, 1))]):
        module.f(1, *arrays)
        found = compiled(module.f.py_func, small=True)
        found(1, few, *(array[:1] for array in arrays[1:]))
        assert type(found) is this.Compiled


def test_what_is_damaged_does_not_make_small_functions_be_compiled(folder):
    @compiled(small=True)
    def function(x):
        return x + 5

    with this.at_once():
        function(1)
    (file,) = folder.iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.warns(EdBatchWarning, match="damaged"):
        assert compiled(function.py_func, small=True)(1) == 6
    assert list(folder.iterdir()) == []


@pytest.fixture
def small(folder, monkeypatch):
    """Makes small functions; each call that is interpreted takes a tenth of a second, each compilation half of one."""
    ticks = iter(range(10**9))
    monkeypatch.setattr(this, "processor_time", lambda: next(ticks) / 10)

    def make(number):
        source = f"""
from edbatch.compiling.compiled import compiled
@compiled(small=True)
def small_{number}(x):
    return x + {number}
"""
        found = getattr(module_of(source), f"small_{number}")
        monkeypatch.setattr(this, "A_BYTE", 0.5 / len(found.py_func.__code__.co_code))
        return found

    return make


def interpreted_calls(function):
    """How often it is called until it is compiled."""
    for calls in range(100):
        function(1)
        if function.overloads:
            return calls
    raise AssertionError("it never is")


def test_a_small_function_is_interpreted_for_half_of_what_compiling_it_takes(small):
    assert interpreted_calls(small(123401)) == 3


@pytest.mark.parametrize(("seconds", "others"), [(0.3, 0), (0.5, 1), (0.7, 2)])
def test_small_functions_that_took_too_long_together_are_compiled_together(small, monkeypatch, seconds, others):
    """Each may take a quarter of a second; the first takes longer, and the others a tenth."""
    found = [small(123402 + 10 * others + number) for number in range(3)]
    monkeypatch.setattr(this, "functions", found)
    for function in found[1:]:
        function(1)
    ticks = iter(range(99))
    monkeypatch.setattr(this, "processor_time", lambda: next(ticks) * seconds)
    found[0](1)
    for function in found:
        function(1)
    assert [len(function.overloads) for function in found] == [1, *[1] * others, *[0] * (2 - others)]
