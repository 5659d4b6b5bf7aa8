"""`edbatch run MODEL`: predictions per sample, and policies side by side."""

import json

import pytest

from edbatch.cli import run as command
from edbatch.compiling import compiled
from edbatch.data.dependencies import random_dependencies, write_conllu
from edbatch.data.lattices import random_lattices, write_lattices
from edbatch.data.parallel import random_parallel, write_parallel
from edbatch.data.programs import random_programs, write_programs
from edbatch.data.sentences import random_sentences, write_sentences
from edbatch.data.tagged import random_tagged, write_tagged
from edbatch.data.trees import random_trees, write_trees
from edbatch.models.workloads import WORKLOADS

SOME = {"tree-lstm", "tagger", "td-tree-lstm", "parser", "mixture-of-experts"}  # a label or many; graphs or programs
SMALL = ("--hidden", 4, "--batch-size", 4)


@pytest.fixture
def trees(tmp_path):
    path = tmp_path / "trees.txt"
    write_trees(path, random_trees(10, seed=5))
    return path


@pytest.mark.cpu
def test_without_arguments_it_makes_samples_up(edbatch):
    status, out, err = edbatch("run", "tree-lstm", "--limit", 3, "--hidden", 4)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "tree-lstm, hidden size 4, random parameters (seed 0)"
    nodes = sum(map(len, random_trees(3, seed=0)))
    assert lines[1] == f"made up: 3 trees, {nodes} nodes, 5 labels"
    assert lines[2].startswith("1 mini-batch of 3 trees, each run 20 times (the median counts) by every policy")
    assert lines[3].startswith("policy fsm-sort (learned) from 1 graph in ")
    assert lines[6].split() == ["none", "depth", "agenda", "critical-path", "fsm-sort", "(learned)"]
    assert max(map(len, lines[4:])) <= 100


def test_json(edbatch_json, trees, tmp_path):
    out = tmp_path / "predictions.txt"
    result = edbatch_json("run", "tree-lstm", "--data", trees, *SMALL, "--out", out)
    assert (result["samples"], result["mini_batches"], result["rounds"]) == (10, 3, 7)
    assert result["learning"]["graphs"] == 3
    policies = {row["policy"]: row for row in result["policies"]}
    assert list(policies) == ["none", "depth", "agenda", "critical-path", result["policy"]]
    assert policies["none"]["largest_difference"] == 0
    assert policies["none"]["batches"] > policies["depth"]["batches"] >= policies[result["policy"]]["batches"]
    for row in policies.values():
        assert row["largest_difference"] < 1e-6
        assert row["batches"] >= row["lower_bound"]
        assert row["samples_per_second"] == pytest.approx(10 / sum(row["seconds"].values()))
        assert {"construction", "scheduling", "planning", "execution", "reading"} <= set(row["seconds"])


def test_nothing_that_is_timed_is_interpreted(edbatch, trees, monkeypatch):
    """As it would be with an empty cache, as long as compiling does not pay."""
    patience = []
    monkeypatch.setattr(
        command, "_measured", lambda *args, run=command._measured: (patience.append(compiled.PATIENCE), run(*args))[1]
    )
    assert edbatch("run", "tree-lstm", "--data", trees, *SMALL)[0] == 0
    assert set(patience) == {-1.0}
    assert compiled.PATIENCE > 0


def test_on_a_gpu(edbatch, edbatch_json, trees, cuda):
    results = [
        edbatch_json("run", "tree-lstm", "--data", trees, *SMALL, "--device", name) for name in ("cpu", cuda.name)
    ]
    assert [result["device"] for result in results] == ["cpu", "cuda:0"]
    cpu, gpu = ([row["batches"] for row in result["policies"]] for result in results)
    assert cpu == gpu
    assert all(row["largest_difference"] < 1e-6 for row in results[1]["policies"])
    status, _, err = edbatch("run", "tree-lstm", "--device", "gpu")
    assert status == 2
    assert err == 'edbatch: error: device \'gpu\': expected "cpu", "cuda" or "cuda:1"\n'


def test_predictions_do_not_depend_on_policy_or_batch_size(edbatch_json, trees, tmp_path):
    outs = [tmp_path / name for name in ("a.txt", "b.txt", "c.txt")]
    edbatch_json("run", "tree-lstm", "--data", trees, *SMALL, "--out", outs[0])
    edbatch_json("run", "tree-lstm", "--data", trees, *SMALL, "--out", outs[1], "--policy", "none")
    edbatch_json("run", "tree-lstm", "--data", trees, "--hidden", 4, "--out", outs[2], "--policy", "depth")
    read = [[line.split() for line in out.read_text().splitlines()] for out in outs]
    assert len(read[0]) == 10
    for label, probability in read[0]:
        assert label in "01234"
        assert 0.2 <= float(probability) <= 1
    for other in read[1:]:
        assert [label for label, _ in other] == [label for label, _ in read[0]]
        assert [float(p) for _, p in other] == pytest.approx([float(p) for _, p in read[0]], abs=2e-6)


@pytest.mark.parametrize(
    "model", [pytest.param(name, marks=[pytest.mark.slow] * (name not in SOME)) for name in WORKLOADS]
)
def test_every_model_runs_and_predicts(edbatch, edbatch_json, tmp_path, model):
    out = tmp_path / "predictions.txt"
    result = edbatch_json("run", model, "--limit", 5, *SMALL, "--out", out)
    assert (result["samples"], result["mini_batches"]) == (5, 2)
    for row in result["policies"]:
        assert row["largest_difference"] < 1e-6
    predicted = [line.split() for line in out.read_text().splitlines()]
    assert len(predicted) == 5
    places = sum(map(len, predicted)) // 2
    assert places == (5 if WORKLOADS[model].root else result["places"])
    assert all(0 < float(probability) <= 1 for line in predicted for probability in line[1::2])
    assert model in edbatch("run", "--help")[1]


def test_files_of_every_kind(edbatch_json, fails, tmp_path):
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"
    write_tagged(a, random_tagged(6, seed=0))
    result = edbatch_json("run", "tagger", "--data", a, *SMALL)
    assert (result["samples"], result["places"]) == (6, sum(map(len, random_tagged(6, seed=0))))
    write_lattices(a, random_lattices(6, seed=0))
    result = edbatch_json("run", "lattice-gru", "--data", a, *SMALL)
    assert (result["samples"], result["places"]) == (6, sum(map(len, random_lattices(6, seed=0))) - 6)
    write_parallel(a, b, random_parallel(6, seed=0))
    result = edbatch_json("run", "encoder-decoder", "--data", a, b, *SMALL)
    assert result["samples"] == 6
    expected = "expected files: 2 (source sentences, target sentences), got 1"
    assert fails("run", "encoder-decoder", "--data", a) == expected
    assert fails("run", "tagger", "--data", a).startswith(f"{a}:1: column 1: expected word|TAG, found ")
    write_conllu(a, random_dependencies(6, seed=0))
    result = edbatch_json("run", "parser", "--data", a, *SMALL)
    assert (result["samples"], result["places"]) == (6, 2 * sum(map(len, random_dependencies(6, seed=0))))
    write_sentences(a, random_sentences(60, seed=0))
    result = edbatch_json("run", "tree-fc", "--data", a, *SMALL)
    assert (result["samples"], result["places"]) == (2, 2)
    write_programs(a, random_programs(6, seed=0))
    assert edbatch_json("run", "module-network", "--data", a, *SMALL)["places"] == 6
    expected = "expected files: 0 (points are made up), got 1"
    assert fails("run", "mixture-of-experts", "--data", a) == expected


@pytest.mark.filterwarnings("default")
def test_malformed_samples_are_skipped_and_counted(edbatch, edbatch_json, fails, tmp_path):
    path = tmp_path / "trees.txt"
    path.write_text("(3 (2 so) (4 good))\n(3 (2 so\n(1 bad)\n")
    command = ("run", "tree-lstm", "--data", path, *SMALL)
    assert fails(*command).startswith(f"{path}:2: column 7")
    status, out, err = edbatch(*command, "--skip-bad", "--json")
    assert (status, json.loads(out)["samples"]) == (0, 2)
    assert err.startswith(f"edbatch: warning: skipped 1 malformed of 3 trees; the first: {path}:2: column 7")
    assert edbatch_json(*command, "--limit", 1)["samples"] == 1  # what follows is not read
