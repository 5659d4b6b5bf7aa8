"""Training scripts: they learn, a killed run goes on as if nothing had happened, bad input is said."""

import json
import math
import shutil
import signal
import subprocess
import sys

import pytest

from edbatch import EdBatchError
from edbatch.data.dependencies import DependencySentence, random_dependencies, write_conllu
from scripts import ROOT
from scripts.train import attention, experts, growth, ner, parser, sentiment, tagger, translation

SCRIPTS = [sentiment, tagger, ner, translation, parser, attention, growth, experts]
REAL = [sentiment, tagger, ner, translation, attention]
NAMES = [script.SCRIPT.name for script in SCRIPTS]
TINY = ["--samples=24", "--epochs=2", "--batch=5", "--hidden=4", "--save-every=2"]  # 5 mini-batches an epoch

# Runs a script that is killed instead of updating the model for the eighth time.
KILLED = """
import os, runpy, sys
import edbatch as eb

original, calls = eb.Adam.update, 0

def update(trainer):
    global calls
    calls += 1
    if calls == 8:
        os.kill(os.getpid(), 9)
    original(trainer)

eb.Adam.update = update
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of an uninterrupted run of each script."""
    folder = tmp_path_factory.mktemp("whole")
    for script in SCRIPTS:
        script.SCRIPT.run([*TINY, f"--out={folder / script.SCRIPT.name}"])
    return folder


@pytest.mark.cpu  # another process
@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_killed_run_goes_on_with_the_same_curve(script, whole, tmp_path, capsys):
    out = f"--out={tmp_path}"
    command = [sys.executable, "-c", KILLED, script.__name__, *TINY, out]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == -signal.SIGKILL, done.stderr
    script.SCRIPT.run([*TINY, out])
    assert f"{tmp_path}: goes on after 6 mini-batches" in capsys.readouterr().out  # 7 were done, 6 saved
    name = "curve.json"
    assert (tmp_path / name).read_bytes() == (whole / script.SCRIPT.name / name).read_bytes()


def test_finished_run_goes_on_with_more_epochs(tmp_path, whole):
    shutil.copytree(whole / "lattice-lstm", tmp_path / "run")
    more = [*TINY, "--epochs=3", f"--out={tmp_path / 'run'}"]
    curve = ner.SCRIPT.run(more).curve
    before = json.loads((whole / "lattice-lstm" / "curve.json").read_text())
    assert curve.losses[:10] == before["loss"]
    assert curve.epochs[:2] == before["epochs"]
    assert len(curve.losses) == 15
    assert ner.SCRIPT.run(more).curve == curve


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_learns(script, tmp_path):
    curve = script.SCRIPT.run(["--samples=200", "--epochs=6", "--batch=10", "--hidden=16", "--lr=0.01",
                               f"--out={tmp_path}"]).curve  # fmt: skip
    first, *_, last = curve.epochs
    assert last["loss"] < 0.9 * first["loss"]
    assert len(curve.losses) == 6 * 18


def test_curve_is_drawn(whole):
    pytest.importorskip("matplotlib", reason="the extra plot")
    drawn = (whole / "tagger-characters" / "curve.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    assert len(drawn) < 60_000


def test_reads_files(tmp_path):
    train, dev = tmp_path / "train.txt", tmp_path / "dev.txt"
    train.write_text("Anna|I-PER sings|O .|O\nAnna|I-PER\n")
    dev.write_text("Bo|I-PER sings|O\n")
    arguments = ["--train", str(train), "--epochs=1", "--hidden=4", f"--out={tmp_path / 'run'}"]
    assert tagger.SCRIPT.run([*arguments, "--dev", str(dev)]).step == 1
    with pytest.raises(EdBatchError, match=r"began with .*data files \w+, now files \w+"):
        tagger.SCRIPT.run(arguments)  # dev is now a part of train


@pytest.mark.parametrize("script", REAL, ids=lambda script: script.SCRIPT.name)
def test_reads_the_real_data(script, data_folder, tmp_path, monkeypatch):
    """A few samples of it."""
    read = script.SCRIPT.data
    monkeypatch.setattr(
        type(script.SCRIPT), "data", lambda self, options: (*(x[:12] for x in read(options)[:2]), "few")
    )
    assert script.SCRIPT.run(["--real", "--epochs=1", "--batch=6", "--hidden=4", f"--out={tmp_path}"]).step == 2


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("I-PER I-PER O", {(0, 2, "PER")}),
        ("I-PER I-LOC", {(0, 1, "PER"), (1, 2, "LOC")}),
        ("O B-LOC B-LOC I-LOC", {(1, 2, "LOC"), (2, 4, "LOC")}),
        ("O", set()),
    ],
)
def test_entities(tags, expected):
    assert tagger.entities(tags.split()) == expected


def test_f1_counts_whole_names():
    expected = [["I-PER", "I-PER", "O", "I-LOC"]]
    assert tagger.f1([["I-PER", "O", "O", "I-LOC"]], expected) == 0.5
    assert tagger.f1(expected, expected) == 1.0
    assert tagger.f1([["O"]], [["O"]]) == 1.0


def test_reads_dependency_trees(tmp_path):
    train, dev = tmp_path / "train.conllu", tmp_path / "dev.conllu"
    write_conllu(train, random_dependencies(8, seed=1))
    crossing = DependencySentence(["a", "b", "c", "d"], [0, 4, 1, 1], ["r"] * 4)  # is measured on, not learned from
    write_conllu(dev, [*random_dependencies(3, seed=2), crossing])
    arguments = ["--epochs=1", "--batch=4", "--hidden=4", f"--out={tmp_path / 'run'}"]
    assert parser.SCRIPT.run(["--train", str(train), "--dev", str(dev), *arguments]).step == 2


def test_measures_of_a_parser():
    samples = [parser.Parsed(0, [1, 2], [2, 0], [0, 1]), parser.Parsed(1, [1, 2], [0, 1], [0, 1])]
    answers = [([2, 0], [0, 0]), ([0, 0], [0, 1])]
    assert parser.measure(answers, samples) == {"UAS": 0.75, "LAS": 0.5}


def test_bleu():
    sentence = list(range(10))
    assert attention.bleu([sentence, [1]], [sentence, [1]]) == 1.0
    assert attention.bleu([[1, 2, 3]], [[4, 5, 6]]) == 0.0
    # 4 of 5 words, 3 of 4 pairs, 2 of 3, 1 of 2; one word short of six
    found = attention.bleu([[1, 2, 3, 4, 9]], [[1, 2, 3, 4, 5, 6]])
    assert found == pytest.approx((4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25 * math.exp(1 - 6 / 5))


def test_made_up_trees_are_as_they_should_be():
    trees = growth.random_grown(40, seed=0)
    assert all(growth.follows(one.kind, one.tree) for one in trees)
    assert not any(growth.follows(one.kind + 1, one.tree) for one in trees)
    assert not growth.follows(0, growth.leaf(0, False, False, 0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs=0"], "epochs=0; expected an integer of at least 1"),
        (["--hidden=0"], "--hidden 0: expected 1 or more"),
        (["--lr=nan"], "lr"),
        (["--seed=-1"], "seed=-1; expected an integer of at least 0"),
        (["--samples=1"], "expected at least two samples"),
        (["--train", "missing.txt"], "missing.txt: cannot be read"),
        (["--dev", "dev.txt"], "--dev: expected --train as well"),
        (["--real"], "--real: expected EDBATCH_DATA to name a folder with the data"),
    ],
)
def test_bad_arguments(arguments, message, tmp_path, monkeypatch):
    monkeypatch.delenv("EDBATCH_DATA", raising=False)
    with pytest.raises(EdBatchError, match=message):
        sentiment.SCRIPT.run([f"--out={tmp_path / 'run'}", *arguments])


def test_other_settings_are_refused(whole, tmp_path):
    shutil.copytree(whole / "tree-lstm", tmp_path / "run")
    out = f"--out={tmp_path / 'run'}"
    with pytest.raises(EdBatchError, match=r"checkpoint.safetensors: this run began with hidden 4, now 8; expected"):
        sentiment.SCRIPT.run([*TINY, "--hidden=8", out])
    with pytest.raises(EdBatchError, match="this run began with workload tree-lstm, now lattice-lstm"):
        ner.SCRIPT.run([*TINY, out])


def test_errors_are_lines_on_the_command_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", sentiment.__name__, "--train", "missing.txt", f"--out={tmp_path}"],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "error: missing.txt: cannot be read (No such file or directory)\n"
