"""Pictures of learned machines."""

import json
import re
from itertools import islice, permutations

import pytest

from edbatch.errors import EdBatchError
from edbatch.policy import TypedGraph, get_policy, learn
from edbatch.policy.fsm import diagram_of


def test_states_choices_and_transitions():
    made = diagram_of(learn([TypedGraph.from_lists(["I", "O", "I", "O"], [[], [0], [0], [2]])], progress=False))
    assert made.title == "fsm-sort: 1 state over 2 types"
    assert [box.text for box in made.boxes] == ["begin", "I O\nrun I", "end"] or made.boxes[1].text == "O I\nrun I"
    assert [(arrow.tail, arrow.head, arrow.text) for arrow in made.arrows] == [(0, 1, "1"), (1, 2, "1")]


def test_a_chain_of_hundreds_of_states_is_no_wider_than_forty_inches(tmp_path):
    pytest.importorskip("igraph")
    types = [f"type-{number}" for number in range(12)]
    states = [
        {"frontier": ready, "choice": ready[0], "q": [0.0] * 7, "next": {str(at) if at < 300 else "end": 2}}
        for at, ready in enumerate(islice(permutations(types, 7), 300), 1)
    ]
    content = {"edbatch_policy": 1, "kind": "fsm", "encoding": "sort", "types": types, "states": states}
    (tmp_path / "machine.json").write_text(json.dumps(content))
    get_policy(tmp_path / "machine.json").draw(tmp_path / "machine.svg")
    drawn = (tmp_path / "machine.svg").read_text()
    assert "Left out are 290 of 300 states" in drawn
    assert float(re.search(r'width="([0-9.]+)pt"', drawn)[1]) <= 40 * 72


def test_a_rule_that_learning_returned_has_no_states(tmp_path):
    policy = learn([TypedGraph.from_lists(["a", "b", "b", "a"], [[], [0], [], [2]])], progress=False)
    with pytest.raises(EdBatchError, match=r"the rule 'critical-path' has no states to draw, .*graph.draw\(path\)"):
        policy.draw(tmp_path / "machine.svg")
