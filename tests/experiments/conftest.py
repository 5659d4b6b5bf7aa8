"""Experiments on made-up data, in an empty folder."""

import pytest


@pytest.fixture(autouse=True)
def _alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EDBATCH_DATA", raising=False)
