"""The README's code is executed, as one script."""

import re
from importlib.util import find_spec

from tests.pages import README, blocks_of, run


def test_the_code_runs_and_says_what_it_says(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # it saves a model
    of_torch, *native = blocks_of(README)
    assert "import torch" in of_torch.code
    if find_spec("torch"):
        run(README, [of_torch])
    _, printed = run(README, native)
    batches, nodes = re.search(r"(\d+) batches instead of (\d+) operations", native[0].code).groups()
    first, *_, last = map(float, re.findall(r"^\d+\.\d+$", printed[0], flags=re.MULTILINE))
    assert last < first
    assert re.search(rf"^batches +{batches}$", printed[0], flags=re.MULTILINE)
    assert re.search(rf"^nodes +{nodes}$", printed[0], flags=re.MULTILINE)
    assert (tmp_path / "m.safetensors").is_file()
