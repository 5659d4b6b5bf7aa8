"""The README's code is executed, as one script."""

import re
from pathlib import Path

import edbatch as eb

README = Path(__file__).parent.parent / "README.md"


def code():
    """The blocks of Python."""
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_code_runs_and_says_what_it_says(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # it saves a model
    blocks = code()
    assert len(blocks) >= 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    printed = capsys.readouterr().out
    batches, nodes = re.search(r"in (\d+) batches instead of (\d+) operations", blocks[0]).groups()
    assert re.search(rf"^batches +{batches}$", printed, flags=re.MULTILINE)
    assert re.search(rf"^nodes +{nodes}$", printed, flags=re.MULTILINE)
    assert len(names["values"]) == 3


def test_the_parser_takes_the_batches_that_are_said(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    blocks = code()
    at = next(at for at, block in enumerate(blocks) if "class Parser" in block)
    names: dict[str, object] = {}
    for block in blocks[: at + 1]:
        exec(compile(block, str(README), "exec"), names)
    printed = capsys.readouterr().out
    said = re.search(r"in (\d+) rounds and (\d+) batches; with limit=1 they take (\d+)", blocks[at])
    rounds, batches, alone = map(int, said.groups())
    assert re.search(rf"^batches +{batches}$", printed, flags=re.MULTILINE)
    assert re.search(rf"^rounds of programs +{rounds} ", printed, flags=re.MULTILINE)
    with eb.Graph(policy="sufficient") as graph:
        assert eb.run(map(names["parser"].parse, names["sentences"]), limit=1) == names["trees"]
    assert graph.report().batches == alone
