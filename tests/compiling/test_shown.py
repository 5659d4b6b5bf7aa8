import sys
import threading

import pytest

from edbatch.compiling import compiled as compiling
from edbatch.compiling.cache import cache_folder
from edbatch.compiling.compiled import compiled


@pytest.fixture(autouse=True)
def long(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(compiling, "LONG", 0.5)
    monkeypatch.setattr(compiling, "_said", threading.Event())


def lines_of_this_file(capsys):
    """Return the lines about this file's functions: a thread of an earlier test may say something of its own."""
    return [line for line in capsys.readouterr().err.splitlines() if __name__.rpartition(".")[2] in line]


def short():
    @compiled
    def a(x):
        return x + 1

    return a


@compiled
def one(x):
    return x + 1


@compiled
def two(x):
    return 2 * one(x)


@compiled
def three(x):
    return 3 * two(x)


def test_a_long_compilation_is_said_once(monkeypatch, capsys):
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "")
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    short()(1)
    assert lines_of_this_file(capsys) == [], "a short one"
    three(1)
    three(1.5)
    (said,) = lines_of_this_file(capsys)
    assert said.startswith("edbatch: compiling ")
    assert "three for this machine, once (about 1 s; all that a program needs, up to a minute; longer" in said
    assert str(cache_folder()) in said


def test_among_tests_and_without_stderr_nothing_is_said(monkeypatch, capsys):
    three(1 + 1j)
    assert capsys.readouterr().err == ""
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    monkeypatch.setattr(sys, "stderr", None)
    assert three(True) == 12
