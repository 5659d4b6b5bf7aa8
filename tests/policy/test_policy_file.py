import json

import pytest

from edbatch.errors import EdBatchError
from edbatch.policy import FSM, Heuristic, TypedGraph, get_policy, learn
from edbatch.policy.policy_file import VERSION


@pytest.fixture
def saved(random_graph, tmp_path):
    """(an FSM, its file, the file's content)."""
    graphs = [random_graph(seed, 60, 4) for seed in range(4)]
    for encoding in ("phase", "critical"):
        policy = learn(graphs, encoding=encoding, episodes=100, progress=False)
        if isinstance(policy, FSM):
            break
    path = tmp_path / "policy.json"
    policy.save(path)
    return policy, path, json.loads(path.read_text())


def test_an_fsm_survives_a_round_trip(saved, random_graph):
    policy, path, _ = saved
    loaded = get_policy(path)
    assert isinstance(loaded, FSM)
    assert loaded.table() == policy.table()
    assert loaded.training == policy.training
    assert loaded.transitions == policy.transitions
    for seed in range(10):
        graph = random_graph(seed, 60, 4)
        assert loaded.schedule(graph).order.tolist() == policy.schedule(graph).order.tolist()


def test_a_learned_heuristic_keeps_its_training(saved, tmp_path):
    training = saved[0].training
    Heuristic("agenda", training).save(tmp_path / "agenda.json")
    loaded = get_policy(tmp_path / "agenda.json")
    assert (loaded.name, loaded.training) == ("agenda", training)


def test_the_file_names_its_types(saved):
    _, _, content = saved
    assert content["edbatch_policy"] == VERSION
    assert set(content["states"][0]["frontier"]) <= set(content["types"])


TRAINING = {
    "graphs": 1, "episodes": 0, "seconds": 0.051, "seed": 0, "batches": [4], "bounds": [4], "heuristic": "sufficient",
    "heuristic_batches": [4],
}  # fmt: skip


@pytest.mark.parametrize(("encoding", "marks"), [("sort", (0, 0)), ("critical", (1, 2))])
def test_policies_that_were_saved_when_sufficient_was_the_rule_still_decide(tmp_path, encoding, marks):
    content = {
        "edbatch_policy": 1, "kind": "fsm", "encoding": encoding, "types": ["I", "O", "M"], "training": TRAINING,
        "states": [
            {"frontier": ["I", "O"], "choice": "I", "q": [-1.27, 0.0], "mark": marks[0], "next": {"1": 1}},
            {"frontier": ["O", "M"], "choice": "M", "q": [0.0, -0.88], "mark": marks[1], "next": {"end": 1}},
        ],
    }  # fmt: skip
    policy = get_policy(change(content, tmp_path / "policy.json"))
    graph = TypedGraph.from_lists(["I", "O", "I", "O", "M", "O"], [[], [0], [0], [2], [2, 0], [4]])
    assert [graph.names[kind] for kind in policy.schedule(graph).types] == ["I", "I", "M", "O"]
    assert policy.training.heuristic == "sufficient"
    assert policy.fallbacks == 0


def change(content, path):
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda c: c.update(edbatch_policy=3), "version 3, this EdBatch reads up to 1"),
        (lambda c: c.pop("edbatch_policy"), "missing required field `edbatch_policy`"),
        (lambda c: c.update(kind="net"), r"Invalid value 'net' - at `\$.kind`"),
        (lambda c: c.update(colour="red"), "unknown field `colour`"),
        (lambda c: c.pop("states"), "missing required field `states`"),
        (lambda c: c.update(encoding="deep"), "no state encoding is named 'deep'"),
        (lambda c: c["states"][0].update(choice=4), r"Expected `str`, got `int` - at `\$.states\[0\].choice`"),
        (lambda c: c["states"][0].update(choice="Z"), "state 0: choice 'Z' is not on its frontier"),
        (lambda c: c["states"][0].update(mark=2**70), r"`\$.states\[0\].mark`"),
        (lambda c: c["states"][0].update(mark=2**31), r"Expected `int` <= 2147483647 - at `\$.states\[0\].mark`"),
        (lambda c: c["states"][0].update(mark=-1), r"Expected `int` >= 0 - at `\$.states\[0\].mark`"),
        (lambda c: c["states"][0].update(q=[]), "state 0: .* types, but 0 values of q"),
        (lambda c: c["states"][1]["frontier"].append("Z"), "state 1: type 'Z' is not among"),
        (lambda c: c["states"][0].update(next={"9999": 1}), "state 0: next state '9999' is not there"),
        (lambda c: c["states"][1].update(next={"end": -1}), r"Expected `int` >= 0 - at `\$.states\[1\].next"),
        (lambda c: c["states"][1].update(next={"end": 1.5}), r"Expected `int`, got `float` - at `\$.states\[1\].next"),
        (lambda c: c["states"][1].update(next={"end": 2**63}), r"Expected `int` <= .* - at `\$.states\[1\].next"),
        (lambda c: c["states"][1].update(q=[float("nan")]), "not a policy file: JSON is malformed"),
        (lambda c: c["training"].update(episodes=-1), r"Expected `int` >= 0 - at `\$.training.episodes"),
        (lambda c: c["training"]["batches"].append(-1), r"Expected `int` >= 0 - at `\$.training.batches"),
        (lambda c: c["states"].append(c["states"][0]), "the same state is in the file twice"),
    ],
)
def test_each_fault_is_named_with_the_file(saved, edit, message):
    _, path, content = saved
    edit(content)
    with pytest.raises(EdBatchError, match=message) as error:
        get_policy(change(content, path))
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"edbatch_policy": 1, "kind": "fsm", "enc', "not a policy file"),
        ('{"edbatch_policy": 1, "kind": "fsm", "states": ' + "[" * 100_000, "not a policy file: maximum recursion"),
    ],
    ids=["half", "deep"],
)
def test_files_that_are_no_json(tmp_path, text, message):
    path = tmp_path / "policy.json"
    path.write_text(text)
    with pytest.raises(EdBatchError, match=message):
        get_policy(path)


def test_a_rule_that_is_gone_is_named(tmp_path):
    path = change({"edbatch_policy": 1, "kind": "heuristic", "name": "lost"}, tmp_path / "lost.json")
    with pytest.raises(EdBatchError, match="no policy is named 'lost'"):
        get_policy(path)


def test_a_folder_that_is_missing_is_reported(saved, tmp_path):
    with pytest.raises(EdBatchError, match="cannot be written"):
        saved[0].save(tmp_path / "nowhere" / "policy.json")
