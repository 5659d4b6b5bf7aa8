"""The command line of experiments, and what they print and draw."""

import json
import subprocess
import sys

import pytest

from scripts import ROOT
from scripts.bench.__main__ import experiments
from scripts.bench.__main__ import main as run
from scripts.bench.report import Chart, command


@pytest.fixture
def main():
    def tables(options):
        rows = [{"size": size, "ours": size, "theirs": 2 * size, "kind": options.kind} for size in options.size]
        return {"Sizes": rows, "Names": [row | {"size": "abc"} for row in rows], "Nothing": []}

    doc = "What it is.\n\nAnd more."
    kind = {"choices": ["A", "B"], "default": "A"}
    return command(doc, tables, chart=Chart("size", ("ours", "theirs"), "kind"), size=(8, 16), kind=kind)


def test_tables(main, capsys):
    assert main([])["Sizes"][0]["theirs"] == 16
    printed = capsys.readouterr().out
    assert "### Sizes\n\n|   size |   ours |   theirs | kind   |\n" in printed
    assert "|     16 |     16 |       32 | A      |" in printed
    assert "thread(s)" in printed


def test_json(main, capsys):
    main(["--json", "--size", "4", "--kind=B"])
    found = json.loads(capsys.readouterr().out)
    assert found["Sizes"] == [{"size": 4, "ours": 4, "theirs": 8, "kind": "B"}]
    assert found["machine"].keys() >= {"processor", "cores", "python", "numpy", "blas"}


def test_a_picture(main, tmp_path):
    pytest.importorskip("matplotlib", reason="the extra plot")
    main(["--png", str(tmp_path / "x.png")])
    assert (tmp_path / "x.png").stat().st_size > 10_000


def test_help(main, capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    printed = capsys.readouterr().out
    assert "What it is.\n" in printed
    assert "default: (8, 16)" in printed
    assert "And more" not in printed


@pytest.mark.cpu  # another process
def test_the_list():
    command = [sys.executable, "-m", "scripts.bench"]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert [line.split()[0] for line in printed.splitlines()] == list(experiments())
    assert {"peers", "pins", "schedules"} <= experiments().keys()


def test_a_name_that_no_experiment_has():
    with pytest.raises(SystemExit, match="none: expected one of batches, cavs, "):
        run(["none"])
