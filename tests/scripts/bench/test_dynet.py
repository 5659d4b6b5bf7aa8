"""Programs in DyNet's style; real DyNet is not there."""

import random

import pytest

from scripts.bench.dynet import main
from scripts.bench.dynet_programs import PROGRAMS, Training


def test_recording_is_measured(tables_of, monkeypatch):
    monkeypatch.delenv("DYNET_PYTHON", raising=False)
    tables = tables_of(main)
    assert [row[""] for row in tables["Recording a call"]] == ["*", "+", "tanh"]
    assert len(tables["Recording"]) == 3


@pytest.mark.parametrize("rng", [None, random.Random(0)])
def test_programs_run(rng):
    import edbatch.dynet as dy

    for make in PROGRAMS.values():
        training = Training(dy, lambda dy, model, make=make: make(dy, model, 8), rng)
        training.samples = training.samples[:1]
        assert training.round() > (0, 0)
    dy.close_cg()
