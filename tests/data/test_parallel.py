"""Parallel text: files, made-up pairs; every error names file and line."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edbatch import EdBatchError
from edbatch.data.parallel import SentencePair, random_parallel, read_parallel, write_parallel
from edbatch.data.vocabulary import read_vocabulary

WORDS = st.text(st.characters(exclude_characters=" \t\n\r\f\v", exclude_categories=["Cs"]), min_size=1)
SENTENCES = st.lists(WORDS, min_size=1, max_size=5)


@given(st.lists(st.builds(SentencePair, SENTENCES, SENTENCES), min_size=1, max_size=4))
def test_files_round_trip(tmp_path_factory, pairs):
    folder = tmp_path_factory.mktemp("parallel")
    write_parallel(folder / "a", folder / "b", pairs)
    assert read_parallel(folder / "a", folder / "b") == pairs


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ("x\ny\nz\n", "u\nv\n", "b:3: expected a sentence for line 3 of {}/a, found the end"),
        ("x", "u\nv\n", "a:2: expected a sentence for line 2 of {}/b, found the end"),
        ("x\n \n", "u\nv\n", "a:2: expected a sentence for line 2 of {}/b, found a blank line"),
        ("x\ny\n", "\nv\n", "b:1: expected a sentence for line 1 of {}/a, found a blank line"),
        ("\n\n", "\n\n", "a: no sentences in it; expected one per line"),
        ("", "", "a: no sentences in it; expected one per line"),
    ],
)
def test_errors_name_file_and_line(tmp_path, a, b, message):
    (tmp_path / "a").write_text(a)
    (tmp_path / "b").write_text(b)
    with pytest.raises(EdBatchError, match=re.escape(message.format(tmp_path))):
        read_parallel(tmp_path / "a", tmp_path / "b")


def test_blank_pairs_are_skipped_and_a_last_line_needs_no_end(tmp_path):
    (tmp_path / "a").write_text("x y\r\n\nz")
    (tmp_path / "b").write_text("u\n \nv w\n")
    assert read_parallel(tmp_path / "a", tmp_path / "b") == [(["x", "y"], ["u"]), (["z"], ["v", "w"])]
    with pytest.raises(EdBatchError, match=r"none: cannot be read"):
        read_parallel(tmp_path / "a", tmp_path / "none")


def test_real_pairs(data_folder):
    folder = data_folder / "iwslt15"
    pairs = read_parallel(folder / "tst2012.en", folder / "tst2012.vi")
    assert len(pairs) == 1553
    assert sum(len(pair.target) for pair in pairs) == 34297
    for side, name in enumerate(("vocab.en", "vocab.vi")):
        vocabulary = read_vocabulary(folder / name)
        words = [word for pair in pairs for word in pair[side]]
        assert sum(vocabulary[word] > 0 for word in words) > 0.95 * len(words)


def test_random_pairs():
    pairs = random_parallel(500, seed=1)
    assert random_parallel(20, seed=1) == pairs[:20]
    assert random_parallel(20, seed=2) != pairs[:20]
    for source, target in pairs:
        assert " ".join(source)[::-1] == " ".join(target)
    assert {len(source) for source, _ in pairs} == set(range(1, 13))
    assert len({word for source, _ in pairs for word in source}) == 60
