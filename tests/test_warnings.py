"""Warnings name the user's line, wherever in the package they come from."""

import os
import re
import subprocess
import sys
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


def test_a_policy_that_does_not_know_the_types():
    with eb.Graph() as known:
        eb.sum(eb.tanh(eb.ones(2)))
    policy = eb.learn([known.typed_graph()], progress=False)

    def work():
        x = eb.ones(3)
        return eb.sum([eb.exp(x) * eb.sin(x) + x, eb.sin(x), eb.exp(eb.sin(x))])

    with eb.Graph(policy=policy):
        y = work()
    with pytest.warns(eb.EdBatchWarning, match="was not trained with the types") as caught:
        y.value()
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.slow
def test_files_of_compiled_code_that_cannot_be_read(tmp_path):
    """Numba, whose frames lie between, is nobody's program either."""
    script = tmp_path / "mine.py"
    script.write_text(
        "import edbatch as eb\n\n"
        "with eb.Graph():\n"
        "    x = eb.ones(3)\n"
        "    print(\n"
        "        eb.sum(eb.tanh(x)).value()\n"
        "    )\n"
    )
    (tmp_path / "cache").write_text("a file where the folder should be")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True)
    assert re.search(rf"^{re.escape(str(script))}:\d+: EdBatchWarning: compiled code is not kept", done.stderr, re.M)


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
