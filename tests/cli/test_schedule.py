"""`edbatch schedule`: batches and times of several policies on recorded graphs."""

import pytest

from edbatch.policy import learn, read_graph


def test_default_policies(edbatch_json, chain):
    rows = edbatch_json("schedule", chain)
    assert [(row["policy"], row["batches"]) for row in rows] == [("depth", 4), ("agenda", 3), ("critical-path", 3)]
    assert {(row["graph"], row["nodes"], row["edges"], row["types"], row["lower_bound"]) for row in rows} == {
        (str(chain), 4, 3, 2, 3)
    }
    assert all(row["seconds"] > 0 for row in rows)


def test_policies_by_name_and_file(edbatch, chain, tmp_path):
    policy = tmp_path / "policy.json"
    learn([read_graph(chain)]).save(policy)
    status, out, err = edbatch("schedule", chain, "--policy", "none", "depth", "--policy", policy)
    assert (status, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[1] == ["graph", "nodes", "edges", "types", "lower", "bound", "policy", "batches", "ms"]
    assert lines[3][:-1] == [str(chain), "4", "3", "2", "3", "none", "4"]
    assert [line[5:7] for line in lines[4:6]] == [["depth", "4"], [str(policy), "3"]]


@pytest.mark.filterwarnings("default")
def test_decisions_in_unseen_states_are_counted(edbatch, edbatch_json, chain, tmp_path):
    policy, other = tmp_path / "policy.json", tmp_path / "other.txt"
    learn([read_graph(chain)]).save(policy)
    other.write_text("4\n0 0\n1 0\n0 1 0\n1 1 1\n# type 0 I\n# type 1 P\n")
    status, out, err = edbatch("schedule", other, chain, "--policy", policy)
    assert status == 0
    assert "unseen" in out
    assert "made by the rule critical-path" in out
    assert err.startswith("edbatch: warning: ")
    assert "types P" in err
    assert err.count("\n") == 1
