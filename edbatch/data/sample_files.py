"""Small made-up files of every kind, which come with EdBatch."""

from __future__ import annotations

from pathlib import Path

from edbatch.errors import EdBatchError

_FOLDER = Path(__file__).parent / "samples"


def sample_path(name: str) -> Path:
    """One of the files: `trees.txt` (300 trees), and 50 each of `tagged.txt`, `dependencies.conllu`, `source.txt` with
    its translation `target.txt`, `lattices.txt` and `programs.jsonl`; also `sentences.txt`, raw text for lattices with
    the words of `lexicon.txt`.

    Raises:
        EdBatchError: there is no file of this name; the message says which there are.

    Example:
        >>> from edbatch.data.tagged import read_tagged
        >>> len(read_tagged(sample_path("tagged.txt")))
        50
    """
    path = _FOLDER / name
    if not path.is_file():
        names = ", ".join(sorted(one.name for one in _FOLDER.iterdir() if one.is_file()))
        raise EdBatchError(f"no sample file is named {name!r}; expected one of {names}")
    return path
