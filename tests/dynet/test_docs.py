"""The example of docs/from-dynet.md runs."""

import re
from pathlib import Path


def test_the_example():
    text = (Path(__file__).parent.parent.parent / "docs" / "from-dynet.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "from-dynet.md", "exec"), {"__name__": "from_dynet"})
