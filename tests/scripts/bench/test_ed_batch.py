"""The original ED-Batch's benchmark; a script that writes what it writes is there in its place."""

import pytest

from scripts.bench import ed_batch

BENCHMARK = """#!/bin/sh
mkdir -p "$6$3-$4/CPU"
cat > "$6$3-$4/CPU/$1.csv" << 'END'
alg,metric,value
rl_sorted-opt,total,60
rl_sorted-opt,forward,1
dynet_agenda-opt5,total,40
END
"""


def test_beside_ed_batch(tmp_path, monkeypatch, tables_of):
    folder = tmp_path / "benchmark"
    folder.mkdir()
    (folder / "test_graph").write_text(BENCHMARK)
    (folder / "test_graph").chmod(0o755)
    monkeypatch.setenv("ED_BATCH", str(tmp_path))
    (rows,) = tables_of(ed_batch.main, "--hidden=4", "--batch=2", "--model=tagger", "--rounds=2").values()
    (row,) = rows
    assert row["ED-Batch, ms"] == 40 / ed_batch.MINI_BATCHES
    assert row["again, times as fast"] == pytest.approx(row["ED-Batch, ms"] / row["again"])


def test_it_says_what_is_missing(monkeypatch, tables_of):
    monkeypatch.delenv("ED_BATCH", raising=False)
    with pytest.raises(SystemExit, match="ED_BATCH names no checkout of ED-Batch; nothing was measured"):
        tables_of(ed_batch.main)
