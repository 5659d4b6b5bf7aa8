"""Contests: all sides say the same, and what differs or is missing is said."""

import sys

import numpy as np
import pytest

import edbatch as eb
from edbatch.experiments import peers
from edbatch.experiments.peers import contest

NINE = (
    "tree-lstm",
    "tree-gru",
    "mv-rnn",
    "tree-lstm-2type",
    "tagger",
    "tagger-characters",
    "lattice-lstm",
    "lattice-gru",
    "encoder-decoder",
)


def made(workload, **how):
    return contest(workload, 4, 3, **({"data": None, "training": True, "compiled": False} | how))


@pytest.mark.parametrize("training", [False, True], ids=["forward", "training"])
@pytest.mark.parametrize("workload", NINE)
def test_all_sides_say_the_same(workload, training):
    pytest.importorskip("torch", reason="the extra bench")
    found = made(workload, training=training)
    found.check()
    assert list(found.sides)[:4] == ["edbatch", "edbatch replayed", "edbatch unbatched", "pytorch per sample"]
    assert any(name.startswith("pytorch by hand") for name in found.sides)
    assert found.sides.keys() == found.answers.keys()
    assert found.sides.keys() & found.missing.keys() == set()
    for side in found.sides.values():
        side()
    found.check()  # and after updates


def test_a_difference_is_an_error_that_names_side_and_place():
    torch = pytest.importorskip("torch", reason="the extra bench")
    found = made("tree-gru")
    peer = found.answers["pytorch by hand, by level"].args[0]
    with torch.no_grad():
        peer.b_n += 0.1
    with pytest.raises(
        eb.EdBatchError, match=r"^tree-gru: pytorch by hand, by level, probabilities, at \(\d+, \d+\): "
    ):
        found.check()
    kept = found.answers["edbatch replayed"]
    found.answers["edbatch replayed"] = lambda: kept()._replace(gradients={"b": np.zeros(1)})
    with pytest.raises(eb.EdBatchError, match=r"^tree-gru: edbatch replayed: .*W_out"):
        found.check()


def test_sides_mix_samples_alike():
    found = made("lattice-lstm", training=False)
    order = []
    point = found.answers["edbatch"].args[2]
    runs = [point.mixed(order.append, range(6)) for _ in range(2)]
    for run in runs:
        run()
    assert order[:2] == order[2:]
    assert sorted(order[0] + order[1]) == list(range(6))
    runs[0]()
    assert order[4:] != order[:2]


def test_without_pytorch_its_sides_are_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(peers, "contest", contest)  # the module that is imported anew takes the name of the function
    for name in [name for name in sys.modules if name.startswith("edbatch.experiments.peers.")]:
        monkeypatch.delitem(sys.modules, name)
    from edbatch.experiments.peers.contest import contest as anew

    found = anew("tagger", 4, 2, data=None, training=False)
    assert list(found.sides) == ["edbatch", "edbatch replayed", "edbatch unbatched"]
    assert set(found.missing.values()) == {"PyTorch is not installed: pip install 'edbatch[bench]'"}
    found.check()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workload": "tree"}, "workload='tree'; expected one of tree-lstm, "),
        ({"hidden": 0}, "hidden"),
        ({"batch": 1.5}, "batch"),
    ],
)
def test_wrong_arguments(given, message):
    with pytest.raises(eb.EdBatchError, match=message):
        contest(**({"workload": "tagger", "hidden": 4, "batch": 2, "data": None, "training": False} | given))


@pytest.mark.slow  # compiles C++
@pytest.mark.filterwarnings("default")
def test_what_is_compiled_says_the_same():
    pytest.importorskip("torch", reason="the extra bench")
    found = made("tree-gru", compiled=True)
    names = {"pytorch per sample compiled", "pytorch by hand, by level compiled"}
    assert names <= found.sides.keys() | found.missing.keys()
    found.check()
