"""Host times of a GPU that does nothing."""

import json
import os
import subprocess
import sys

import pytest

from scripts import ROOT

pytest.importorskip("torch", reason="the extra bench")


@pytest.mark.cpu
def test_stages_of_a_mini_batch():
    """In a process of its own: its GPU is that one."""
    command = [sys.executable, "-m", "scripts.gpu.host", "--json", "--rounds=1", "--hidden=4", "--batch", "2"]
    environment = {name: value for name, value in os.environ.items() if name != "EDBATCH_DATA"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    (rows,) = (rows for title, rows in json.loads(done.stdout).items() if title != "machine")
    assert [row["model"] for row in rows] == ["TreeLSTM", "BiLSTM tagger", "LatticeLSTM"]
    assert all(row["batches"] > 1 and 0 < row["enqueueing"] < row["forward"] for row in rows)
