"""`edbatch train MODEL`: it learns, a killed run goes on with the same curve, bad input is one line."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

import edbatch as eb
from edbatch.cli import train
from edbatch.data.programs import random_programs, write_programs
from edbatch.data.trees import random_trees, write_trees
from edbatch.models.workloads import WORKLOADS, get_workload
from scripts import ROOT

TINY = ("--limit", 20, "--hidden", 4, "--batch-size", 4, "--epochs", 3, "--lr", 0.02)  # 5 mini-batches an epoch

# Runs the command, which is killed instead of updating the model for the eighth time.
KILLED = """
import os, sys
import edbatch as eb
from edbatch.cli import main

original, calls = eb.Adam.update, 0

def update(trainer):
    global calls
    calls += 1
    if calls == 8:
        os.kill(os.getpid(), 9)
    original(trainer)

eb.Adam.update = update
main(sys.argv[1:])
"""


def epochs_in(folder):
    return json.loads((folder / "curve.json").read_text())["epochs"]


@pytest.fixture
def trees(tmp_path):
    path = tmp_path / "trees.txt"
    write_trees(path, random_trees(12, seed=5))
    return path


@pytest.mark.cpu
def test_a_table_of_epochs(edbatch):
    status, out, err = edbatch("train", "tree-lstm", *TINY)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "tree-lstm, hidden size 4, adam at 0.02, seed 0"
    assert lines[1] == "made up: 18 trees to learn from, 2 to measure on, 5 labels"
    assert lines[3].split() == ["epoch", "loss", "held-out", "loss", "held-out", "accuracy"]
    assert [line.split()[0] for line in lines[4:]] == ["1", "2", "3"]
    assert {len(line) for line in lines[3:]} == {len(lines[3])}  # aligned
    losses = [float(line.split()[1]) for line in lines[4:]]
    assert losses == sorted(losses, reverse=True)
    assert float(lines[-1].split()[2]) < float(lines[4].split()[2])


@pytest.mark.parametrize("name", ["tagger", "mixture-of-experts"])  # and a program over values
def test_a_run_in_a_folder(name, edbatch, tmp_path):
    assert edbatch("train", name, *TINY, "--save", tmp_path / "run", "--optimizer", "rmsprop")[0] == 0
    epochs = epochs_in(tmp_path / "run")
    assert [row["epoch"] for row in epochs] == [1, 2, 3]
    assert epochs[-1]["loss"] < epochs[0]["loss"]
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()


@pytest.mark.cpu  # another process
def test_a_killed_run_goes_on_with_the_same_curve(edbatch, tmp_path):
    given = [str(x) for x in ("train", "tree-lstm", *TINY, "--save-every", 2, "--save")]
    assert edbatch(*given, tmp_path / "whole")[0] == 0
    folder = tmp_path / "killed"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *given, str(folder)], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    status, out, _ = edbatch(*given, folder, "--resume")
    assert status == 0
    assert "goes on after 6 mini-batches" in out  # 7 were done, 6 saved
    assert [line.split()[0] for line in out.splitlines()[-4:-1]] == ["1", "2", "3"]
    assert out.endswith(f"\nwrote {folder}: the trained model, for edbatch run tree-lstm --load {folder}\n")
    assert (folder / "curve.json").read_bytes() == (tmp_path / "whole" / "curve.json").read_bytes()


def test_ctrl_c_says_how_to_go_on(edbatch, monkeypatch, tmp_path):
    def until_the_third(self, epochs, **options):
        for at, figures in enumerate(epochs_of(self, epochs, **options)):
            if at == 2:
                raise KeyboardInterrupt
            yield figures

    epochs_of = eb.Run.epochs
    with monkeypatch.context() as patched:
        patched.setattr(eb.Run, "epochs", until_the_third)
        status, out, err = edbatch("train", "tree-lstm", *TINY, "--save", tmp_path / "run", "--resume")
    assert status == 130
    assert err == f"edbatch: {tmp_path / 'run'} holds a checkpoint; the same command with --resume goes on\n"
    assert f"there is no run in {tmp_path / 'run'} to go on with: one begins" in out
    status, out, err = edbatch("train", "tree-lstm", *TINY, "--save", tmp_path / "run", "--resume")
    assert (status, err) == (0, "")
    assert "goes on after 15 mini-batches" in out


@pytest.mark.filterwarnings("default")
def test_files(edbatch, trees, tmp_path):
    other = tmp_path / "other.txt"
    write_trees(other, random_trees(5, seed=6))
    status, out, _ = edbatch("train", "tree-rnn", "--data", trees, "--held-out", other, "--hidden", 4, "--epochs", 1)
    assert status == 0
    assert f"{trees}: 12 trees to learn from, 5 to measure on, " in out
    with trees.open("a") as file:
        file.write("(3 (2\n")
    status, out, err = edbatch("train", "tree-rnn", "--data", trees, "--skip-bad", "--hidden", 4, "--epochs", 1)
    assert status == 0
    assert "10 trees to learn from, 2 to measure on" in out
    assert "skipped 1 malformed of 13 trees" in err


def test_samples_without_labels_are_left_out(edbatch, tmp_path):
    path = tmp_path / "programs.jsonl"
    programs = random_programs(8, seed=0)
    for program in programs[1:6]:
        object.__setattr__(program, "answer", "yes")
    object.__setattr__(programs[0], "answer", "no")
    write_programs(path, programs)
    status, out, _ = edbatch("train", "module-network", "--data", path, "--hidden", 2, "--epochs", 1)
    assert status == 0
    assert "5 questions to learn from, 1 to measure on" in out
    assert "left out 2 questions without labels" in out


def test_what_is_measured():
    """Against probabilities that were computed one sample at a time."""
    workload = get_workload("tree-rnn")
    samples, numbered = workload.labelled(workload.generate(5, 0))
    network = workload.network(eb.ParameterCollection(seed=0), *numbered.sizes, 4)
    found = train.measured(workload, network, samples, batch_size=2)
    losses, right = [], []
    for inputs, labels in samples:
        with eb.Graph(policy="none"):
            values = eb.forward(workload.probabilities(network, inputs))
        losses += [-np.log(value[label]) for value, label in zip(values, labels, strict=True)]
        right.append(values[-1].argmax() == labels[-1])
    assert found["held-out loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    assert found["held-out accuracy"] == pytest.approx(np.mean(right))


def test_a_folder_that_holds_a_run(edbatch, fails, tmp_path):
    given = ("train", "tree-rnn", *TINY[:-4], "--epochs", 1, "--save", tmp_path)
    assert edbatch(*given)[0] == 0
    assert fails(*given) == f"{tmp_path}: holds a run; continue it with --resume, or choose another folder"
    status, out, err = edbatch(*given, "--seed", 1, "--resume")
    assert (status, out) == (2, "")
    assert "this run began with seed 0, now 1" in err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tree-lstm", "parser"])  # and a program over values
def test_workers_give_the_curve_of_one_process(name, edbatch, tmp_path):
    pytest.importorskip("ray")
    given, curves = ("train", name, *TINY, "--save"), []
    for workers in (0, 2):
        status, out, _ = edbatch(*given, tmp_path / str(workers), "--workers", workers)
        assert status == 0
        assert ("2 workers, 15 steps" in out) == (workers == 2)
        curves.append(json.loads((tmp_path / str(workers) / "curve.json").read_text())["loss"])
    np.testing.assert_allclose(curves[1], curves[0], rtol=1e-4)
    status, out, _ = edbatch(*given, tmp_path / "2", "--resume", "--epochs", 4)  # goes on without workers
    assert status == 0
    assert "goes on after 15 mini-batches" in out


TRAINED = ("train", "tree-rnn", "--hidden", 4, "--epochs", 3, "--batch-size", 4, "--lr", 0.02)


@pytest.fixture
def files(tmp_path):
    """Trees to learn from, and others, with words of their own."""
    paths = tmp_path / "train.txt", tmp_path / "dev.txt", tmp_path / "new.txt"
    for path, n, seed in zip(paths, (12, 6, 7), (5, 6, 7), strict=True):
        write_trees(path, random_trees(n, seed))
    paths[2].write_text(paths[2].read_text().replace(" (", " (").replace("w", "another-w"))
    return paths


def test_a_trained_model_predicts_what_training_measured(edbatch_json, edbatch, files, tmp_path):
    train, dev, new = files
    assert edbatch(*TRAINED, "--data", train, "--held-out", dev, "--save", tmp_path / "run")[0] == 0
    out = tmp_path / "predicted.txt"
    given = ("run", "tree-rnn", "--load", tmp_path / "run", "--out", out)
    assert edbatch_json(*given, "--data", dev)["hidden"] == 4
    labels = [line[1] for line in dev.read_text().splitlines()]
    right = [line.split()[0] == label for line, label in zip(out.read_text().splitlines(), labels, strict=True)]
    assert np.mean(right) == pytest.approx(epochs_in(tmp_path / "run")[-1]["held-out accuracy"])
    status, text, _ = edbatch(*given, "--data", new)  # whose words it does not know
    assert status == 0
    assert text.startswith(f"tree-rnn, hidden size 4, as {tmp_path / 'run'} has it")
    assert len(out.read_text().splitlines()) == 7
    assert edbatch(*TRAINED, "--data", train, "--held-out", dev, "--save", tmp_path / "run", "--resume")[0] == 0


@pytest.mark.parametrize("name", WORKLOADS)
def test_samples_are_numbered_as_those_before(name):
    """By what JSON has kept; others have the same sizes and labels."""
    workload = get_workload(name)
    found = workload.generate(8, 0)
    known = json.loads(json.dumps(workload.know(found)))
    again, first = workload.number(found, known), workload.number(found)
    assert (again.sizes, again.labels) == (first.sizes, first.labels)
    np.testing.assert_equal(again.samples, first.samples)
    part = workload.number(found[2:4], known)
    assert part.sizes == first.sizes
    if name not in ("pointer-decoder", "module-network"):  # labels are points; pictures go by place
        assert part.labels == first.labels
        np.testing.assert_equal(part.samples, first.samples[2:4])
