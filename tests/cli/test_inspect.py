"""`edbatch inspect`: learned policies and heuristics."""

import pytest

from edbatch.policy import Heuristic, TypedGraph, learn
from edbatch.policy.heuristics import RULES


@pytest.fixture
def policy(tmp_path):
    def save(encoding="sort", names=("I", "O")):
        a, b = names
        graph = TypedGraph.from_lists([a, b, a, b], [[], [0], [0], [2]])
        path = tmp_path / "policy.json"
        learn([graph], encoding=encoding).save(path)
        return path

    return save


def test_a_learned_policy_is_a_table(edbatch, policy):
    status, out, err = edbatch("inspect", policy())
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "fsm-sort: 1 state over 2 types"
    assert lines[1].startswith("trained on 1 graph: 0 episodes, seed 0, ")
    assert lines[2].startswith("reached 3 batches; lower bound 3, best heuristic 3 (")
    assert lines[5].split() == ["state", "ready", "types", "runs", "Q"]
    assert lines[7].split() == ["0", "I", "O", "I", "-0.88"]


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_is_explained(edbatch, tmp_path, rule):
    path = tmp_path / "rule.json"
    Heuristic(rule).save(path)
    status, out, err = edbatch("inspect", path)
    assert (status, err) == (0, "")
    assert out.startswith(f"{rule}: runs ")
    assert out.count("\n") == 1


def test_svg(edbatch, policy, tmp_path):
    pytest.importorskip("igraph")
    status, out, err = edbatch("inspect", policy(), "--svg", tmp_path / "machine.svg")
    assert (status, err) == (0, "")
    assert out.startswith("fsm-sort: 1 state over 2 types")
    assert out.endswith(f"\nwrote {tmp_path / 'machine.svg'}: a picture of this machine\n")
    assert "run I" in (tmp_path / "machine.svg").read_text()


@pytest.mark.parametrize("length", [1, 20])
def test_names_of_a_file_are_no_commands_to_a_terminal(edbatch, policy, length):
    name = "\x1b[2J\x9b31m\u202e\nfsm-sort: " + "x" * length
    _, out, _ = edbatch("inspect", policy(names=(name, "O")))
    expected = r"\x1b[2J\x9b31m\u202e\nfsm-sort: " + "x" * length
    assert expected in out
    assert all(line.isprintable() for line in out.splitlines())
    assert sum(line.startswith("fsm-sort: ") for line in out.splitlines()) == 1


def test_an_error_is_no_command_either(edbatch, tmp_path):
    path = tmp_path / "\x1b[2J.txt"
    path.write_text("0\n")
    status, _, said = edbatch("learn", path, "-o", tmp_path / "policy.json")
    assert status == 2
    assert r"\x1b[2J.txt: the graph has no nodes" in said
    assert said.rstrip("\n").isprintable()
