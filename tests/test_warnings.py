"""Warnings name the user's line, wherever in the package they come from."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import edbatch as eb

PACKAGE = Path(eb.__file__).parent


def test_a_cell_that_is_traced_too_often():
    @eb.cell
    def step(x, *, rate):
        return x * rate

    with eb.Graph(policy="depth"):
        x = eb.ones(2)
        with pytest.warns(eb.EdBatchWarning, match="step has been traced") as caught:
            [step(x, rate=rate / 7) for rate in range(100)]
    assert {warning.filename for warning in caught} == {__file__}


def test_an_update_that_is_skipped():
    model = eb.ParameterCollection()
    W = model.add_parameters(2, init=1.0)
    trainer = eb.SGD(model, lr=0.1, on_bad_gradient="skip")
    with eb.Graph(policy="depth"):
        loss = eb.sum(W * np.inf)
    loss.backward()
    with pytest.warns(eb.EdBatchWarning, match="such updates are skipped") as caught:
        trainer.update()
    assert [warning.filename for warning in caught] == [__file__]


def test_there_is_one_way_to_warn():
    ways = [path for path in PACKAGE.rglob("*.py") if "warnings.warn" in path.read_text()]
    assert ways == [PACKAGE / "errors.py"]


def test_each_line_is_warned_about_once_by_default():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            eb.errors.warn("what is lost")
        eb.errors.warn("what is lost")
    lines = [warning.lineno for warning in caught]
    assert len(lines) == len(set(lines)) == 2
