"""The command line of experiments, and what they print and draw."""

import pytest

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


def test_help(main, capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    printed = capsys.readouterr().out
    assert "What it is.\n" in printed
    assert "default: (8, 16)" in printed
    assert "And more" not in printed


def test_a_name_that_no_experiment_has():
    with pytest.raises(SystemExit, match="none: expected one of batches, cavs, "):
        run(["none"])
