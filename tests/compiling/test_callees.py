"""Compiled functions that call others, which other processes have compiled."""

import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import sys
import numpy as np
from edbatch.compiling.compiled import compiled

@compiled
def large(values, limit):
    total = 0
    for i in range(len(values)):
        if values[i] > limit:
            raise ValueError(f"{values[i]} at {i} exceeds {limit}")
        total += values[i] % 7 if values[i] % 2 else values[i] // 3
    for i in range(len(values)):
        values[i] = values[values[i] % len(values)] + (total if i % 2 else -total)
    return total

@compiled
def middle(values):
    return large(values, 50) + 1

@compiled
def first(values):
    return middle(values) + large(values, 10_000)

@compiled
def second(values):
    return 2 * middle(values)

for name in sys.argv[1:]:
    print(globals()[name](np.arange(9)))
    try:
        print(globals()[name](np.arange(99)))
    except ValueError as error:
        print(error)
print({f.__name__: sum(f.stats.cache_misses.values()) for f in (large, middle, first, second)})
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def run(*names):
    done = subprocess.run([sys.executable, "-c", PROGRAM, *names], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_callees_are_found_again_by_new_callers_and_errors_keep_their_numbers():
    total, error, compilations = run("first")
    assert error == "51 at 51 exceeds 50"
    assert compilations == "{'large': 1, 'middle': 1, 'first': 1, 'second': 0}"
    other, error, compilations = run("second")
    assert error == "51 at 51 exceeds 50"
    assert compilations == "{'large': 0, 'middle': 0, 'first': 0, 'second': 1}"
    names = {"__name__": "interpreted"}
    exec(PROGRAM.partition("for name")[0].replace("@compiled", ""), names)
    assert (int(total), int(other)) == (names["first"](np.arange(9)), names["second"](np.arange(9)))
    assert run("first", "second")[-1] == "{'large': 0, 'middle': 0, 'first': 0, 'second': 0}"


CLOSURES = """
import sys
from edbatch.compiling.compiled import compiled

def made(base):
    @compiled
    def digits(x):
        total = 0
        while x > 0:
            if x % base == 7:
                total += x // base * 3
            elif x % base == 5:
                total -= x * x // base
            elif x % base == 3:
                total = total * 2 + x
            x //= base
        return total

    @compiled
    def twice(x):
        return digits(x) + digits(x + 1)

    return digits, twice

bases = [*map(int, sys.argv[1:])]
one, other = made(bases[0]), made(bases[-1])

@compiled
def both(x):
    return one[0](x) - other[0](x)

print([f[1](123_456_789) for f in (one, other)], both(123_456_789))
"""


def test_closures_that_other_processes_compiled_are_told_apart():
    """Numba numbers functions from 1 on in each process, and LLVM takes what has one name for one function."""

    def values(*bases):
        given = [sys.executable, "-c", CLOSURES, *map(str, bases)]
        return subprocess.run(given, capture_output=True, text=True, check=True).stdout

    def wanted(base):
        names = {"__name__": "interpreted", "sys": sys}
        exec(CLOSURES.partition("bases =")[0].replace("@compiled", ""), names)
        digits, twice = names["made"](base)
        return twice(123_456_789), digits(123_456_789)

    (ten, of_ten), (nine, of_nine) = wanted(10), wanted(9)
    assert ten != nine
    assert of_ten != of_nine
    assert values(10) == f"[{ten}, {ten}] 0\n"
    assert values(9) == f"[{nine}, {nine}] 0\n"
    assert values(10, 9) == f"[{ten}, {nine}] {of_ten - of_nine}\n"
