"""Shared by the tests of experiments."""

import json

import pytest


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
