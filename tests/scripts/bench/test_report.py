"""The command line of benchmarks, and what they print."""

import json

import pytest

from scripts.bench.report import command, figure, needed_folder


@pytest.fixture
def main():
    def tables(options):
        return {"Sizes": [{"size": size, "rounds": options.rounds} for size in options.size], options.kind: []}

    doc = "What it is.\n\nAnd more."
    return command(doc, tables, rounds=3, size=(8, 16), kind={"choices": ["A", "B"], "default": "A"})


def test_tables(main, capsys):
    main([])
    printed = capsys.readouterr().out
    assert "### Sizes\n\n|   size |   rounds |\n" in printed
    assert "|     16 |        3 |" in printed
    assert "### A" in printed
    assert "thread(s)" in printed


def test_json(main, capsys):
    main(["--json", "--size", "4", "--rounds=2", "--kind=B"])
    found = json.loads(capsys.readouterr().out)
    assert found["Sizes"] == [{"size": 4, "rounds": 2}]
    assert found["B"] == []
    assert found["machine"].keys() >= {"processor", "cores", "python", "numpy", "blas"}


def test_help(main, capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    printed = capsys.readouterr().out
    assert "What it is.\n" in printed
    assert "default: (8, 16)" in printed
    assert "And more" not in printed


def test_a_figure():
    assert figure("speed", 3.0, 2, "times") == {"figure": "speed", "measured": 3.0, "asked": 2, "unit": "times"}


def test_data_that_is_missing_is_said(monkeypatch):
    monkeypatch.setenv("EDBATCH_DATA", "/nowhere")
    with pytest.raises(SystemExit, match="EDBATCH_DATA names no folder with data; nothing was measured"):
        needed_folder()
