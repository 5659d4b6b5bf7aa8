"""Two versions beside each other."""

from pathlib import Path

import pytest

import edbatch

pytest.importorskip("torch")  # of the models that it times, there are peers beside
from scripts.bench.versions import main

ROOT = str(Path(edbatch.__file__).parent.parent)


def test_a_version_beside_itself(tables_of):
    found = tables_of(main, "--before", ROOT, "--after", ROOT, "--hidden", "4", "--batch", "2", "--model", "TreeLSTM")
    rows = found["Before and after"]
    assert {row[""] for row in rows} == {"forward", "train"}
    assert all(row["before, ms"] > 0 and row["after / before"] > 0 for row in rows)


def test_a_folder_without_a_checkout(tables_of, tmp_path):
    with pytest.raises(SystemExit, match="no checkout"):
        tables_of(main, "--before", str(tmp_path), "--after", str(tmp_path))
