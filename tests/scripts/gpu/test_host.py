"""Host times of a GPU that does nothing."""

import json
import os
import subprocess
import sys

import pytest

from scripts import ROOT

pytest.importorskip("torch", reason="the extra bench")


@pytest.mark.cpu
@pytest.mark.parametrize(("size", "rounds"), [(2, 1), (1, 12)])
def test_stages_of_a_mini_batch(size, rounds):
    """In a process of its own: its GPU is that one. Mini-batches of one sample come again."""
    command = [
        sys.executable,
        "-m",
        "scripts.gpu.host",
        "--json",
        f"--rounds={rounds}",
        "--hidden=4",
        "--batch",
        str(size),
    ]
    environment = {name: value for name, value in os.environ.items() if name != "EDBATCH_DATA"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    (rows,) = (rows for title, rows in json.loads(done.stdout).items() if title != "machine")
    assert [row["model"] for row in rows] == ["TreeLSTM", "BiLSTM tagger", "LatticeLSTM"]
    assert all(row["batches"] > 1 and 0 < row["enqueueing"] < row["forward"] for row in rows)
