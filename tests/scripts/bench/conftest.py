"""Shared by the tests of experiments."""

import gc
import json

import pytest


@pytest.fixture(autouse=True)
def what_others_left_stays_frozen(monkeypatch):
    """To look for garbage among all that a process of tests keeps takes seconds, see `tests/conftest.py`."""
    monkeypatch.setattr(gc, "unfreeze", lambda: None)


@pytest.fixture
def tables_of(capsys, monkeypatch):
    """What an experiment prints of made-up data: rows by title."""
    monkeypatch.delenv("EDBATCH_DATA", raising=False)

    def run(main, *arguments):
        main(["--json", "--rounds=1", *arguments])
        found = json.loads(capsys.readouterr().out)
        assert found.pop("machine")["blas"]
        return found

    return run
