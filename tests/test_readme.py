"""The README's code is executed, as one script."""

import re
from importlib.util import find_spec

from tests.pages import README, blocks_of, run


def test_the_code_runs_and_says_what_it_says(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # it saves a model
    blocks = blocks_of(README)
    assert len(blocks) >= 2
    names, printed = run(README)
    batches, nodes = re.search(r"in (\d+) batches instead of (\d+) operations", blocks[0].code).groups()
    assert re.search(rf"^batches +{batches}$", printed[0], flags=re.MULTILINE)
    assert re.search(rf"^nodes +{nodes}$", printed[0], flags=re.MULTILINE)
    if find_spec("torch"):  # else what follows it is left out
        assert len(names["values"]) == 3
