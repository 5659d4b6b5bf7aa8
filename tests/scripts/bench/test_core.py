"""The core's benchmark, op by op, at its smallest."""

import edbatch as eb
from edbatch.experiments.measure import STAGES
from scripts.bench.core import OP_BY_OP, against_unbatched, fresh_processes, host_stages
from scripts.bench.mini_batches import samples


def test_host_stages_and_speeds(monkeypatch):
    monkeypatch.delenv("EDBATCH_DATA", raising=False)
    trees = samples("tree-lstm", 256)
    with eb.options(**OP_BY_OP):
        built, rows = host_stages(trees, rounds=1)
        row = against_unbatched(trees, hidden=4, rounds=1)
    assert built > 0
    assert [row["policy"] for row in rows] == ["fsm", "sufficient"]
    assert rows[0].keys() == {"policy", *(f"{stage} ns" for stage in STAGES)}
    assert row["times"] > 0


def test_a_second_process_compiles_nothing():
    imported, compiled = fresh_processes(rounds=1)
    assert imported["measured"] > 0
    assert compiled["measured"] == 0
