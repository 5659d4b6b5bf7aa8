"""Plain text: sentences and pieces, in files and made up."""

import re
from itertools import chain

import pytest

from edbatch import EdBatchError
from edbatch.data.sentences import (
    random_pieces,
    random_sentences,
    read_sentences,
    stream_pieces,
    stream_sentences,
    write_sentences,
)


def test_files(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a  b\u00a0c\n\n \td\n", encoding="utf-8")
    assert read_sentences(path) == [["a", "b\u00a0c"], ["d"]]
    write_sentences(path, random_sentences(20, seed=1))
    assert read_sentences(path) == random_sentences(20, seed=1)


def test_what_cannot_be_read(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(b"a b\n\xff\nc d\n")
    with pytest.raises(EdBatchError, match=re.escape(f"{path}:2: not UTF-8 text")):
        read_sentences(path)
    with pytest.raises(EdBatchError, match=re.escape(f"{path}:2: not UTF-8 text")):
        stream_pieces(path, 2).take()
    for stream in (stream_sentences(path, skip_bad=True), stream_pieces(path, 2, skip_bad=True)):
        assert stream.take() == [["a", "b"], ["c", "d"]]
        assert stream.skipped == 1
    path.write_text("\n")
    with pytest.raises(EdBatchError, match="no sentences in it; expected one per line"):
        read_sentences(path)
    with pytest.raises(EdBatchError, match="expected 1,000 words at least"):
        stream_pieces(path, 1000).take()


def test_pieces_are_the_text_without_what_is_left(tmp_path):
    path, sentences = tmp_path / "text.txt", random_sentences(50, seed=3)
    write_sentences(path, sentences)
    words = [word for sentence in sentences for word in sentence]
    for length in (1, 2, 7, 64, len(words)):
        pieces = stream_pieces(path, length).take()
        assert set(map(len, pieces)) == {length}
        assert list(chain(*pieces)) == words[: len(words) // length * length]


def test_made_up_pieces():
    pieces = random_pieces(9, 64, seed=5)
    assert list(map(len, pieces)) == [64] * 9
    assert random_pieces(4, 64, seed=5) == pieces[:4]
    assert random_pieces(9, 64, seed=6) != pieces
    assert random_pieces(0, 64, seed=5) == []
