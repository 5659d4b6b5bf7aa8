import sys
import threading

import pytest

from edbatch.compiling import cache as code_cache
from edbatch.compiling import shown as compiling_shown
from edbatch.compiling.cache import cache_folder
from edbatch.compiling.compiled import compiled


@pytest.fixture(autouse=True)
def long(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(compiling_shown, "LONG", 0.5)
    monkeypatch.setattr(compiling_shown, "_said", threading.Event())


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


def test_off_a_terminal_a_long_compilation_is_said_once(monkeypatch, capsys):
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "")
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    short()(1)
    assert capsys.readouterr().err == "", "a short one"
    three(1)
    three(1.5)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("edbatch: compiling ")
    assert "three for this machine, once (about 1 s; all that a program needs, up to a minute; longer" in said
    assert str(cache_folder()) in said


def test_among_tests_and_without_stderr_nothing_is_said(monkeypatch, capsys):
    three(1 + 1j)
    assert capsys.readouterr().err == ""
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    monkeypatch.setattr(sys, "stderr", None)
    assert three(True) == 12


def test_what_stands_for_stderr_need_not_tell_whether_it_is_a_terminal(monkeypatch):
    class Copied:
        write, flush = sys.__stderr__.write, sys.__stderr__.flush

    monkeypatch.setattr(sys, "stderr", Copied())
    assert three(1.5 + 1j) == 6 * (2.5 + 1j)


def test_what_is_not_kept_is_not_said_to_be(monkeypatch, capsys):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    warned = threading.Event()
    warned.set()
    monkeypatch.setattr(code_cache, "_warned", warned)
    monkeypatch.setattr(compiling_shown, "LONG", 0)
    compiling_shown._say_once(three)
    said = capsys.readouterr().err
    assert "not kept" in said
    assert str(cache_folder()) not in said


def test_a_folder_that_cannot_be_made_is_known_before_anything_is_kept(monkeypatch, capsys):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    monkeypatch.setattr(code_cache, "_warned", threading.Event())
    monkeypatch.setattr(compiling_shown, "LONG", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    compiling_shown._say_once(three)
    said = capsys.readouterr().err
    assert "not kept" in said
    assert "/dev/null" not in said
