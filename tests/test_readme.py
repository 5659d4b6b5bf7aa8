"""The README's code is executed, as one script."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_code_runs_and_says_what_it_says(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # it saves a model
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) >= 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    printed = capsys.readouterr().out
    batches, nodes = re.search(r"in (\d+) batches instead of (\d+) operations", blocks[0]).groups()
    assert re.search(rf"^batches +{batches}$", printed, flags=re.MULTILINE)
    assert re.search(rf"^nodes +{nodes}$", printed, flags=re.MULTILINE)
    assert len(names["values"]) == 3
