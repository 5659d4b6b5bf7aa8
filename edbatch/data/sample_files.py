"""Small sample files of every kind, which come with EdBatch."""

from __future__ import annotations

from pathlib import Path

from edbatch.errors import EdBatchError


def sample_path(name: str) -> Path:
    """One of the files: `trees.txt` (300 trees), and 50 each of `tagged.txt`, `dependencies.conllu`, `source.txt` with
    its translation `target.txt`, `lattices.txt` and `programs.jsonl`.

    Raises:
        EdBatchError: there is no file of this name; the message says which there are.
    """
    paths = {path.name: path for path in (Path(__file__).parent / "samples").iterdir()}
    if name not in paths:
        raise EdBatchError(f"no sample file is named {name!r}; expected one of {', '.join(sorted(paths))}")
    return paths[name]
