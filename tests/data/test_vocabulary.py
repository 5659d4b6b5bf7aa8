"""Vocabulary: 0 is the unknown word, the others are numbered by first occurrence."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edbatch import EdBatchError
from edbatch.data.vocabulary import Vocabulary, read_vocabulary


@given(st.lists(st.text()))
def test_ids_are_dense_and_ordered_by_first_occurrence(words):
    vocabulary = Vocabulary(iter(words))
    distinct = list(dict.fromkeys(words))
    assert [vocabulary[word] for word in distinct] == list(range(1, len(distinct) + 1))
    assert len(vocabulary) == len(distinct) + 1
    assert all(word in vocabulary for word in words)


def test_unknown_words_are_zero():
    vocabulary = Vocabulary(["a"])
    assert vocabulary["b"] == 0
    assert "b" not in vocabulary


@given(st.lists(st.sampled_from("abcdef")), st.integers(1, 4))
def test_rare_words_are_unknown(words, at_least):
    vocabulary = Vocabulary(words, at_least)
    frequent = {word for word, count in Counter(words).items() if count >= at_least}
    assert {word for word in words if word in vocabulary} == frequent
    assert sorted(vocabulary[word] for word in frequent) == list(range(1, len(vocabulary)))


def test_files_are_numbered_by_line(tmp_path):
    path = tmp_path / "vocabulary.txt"
    path.write_text("<unk>\n<s>\nhello")
    assert [read_vocabulary(path)[word] for word in ("<s>", "hello", "x")] == [1, 2, 0]


def test_real_vocabularies(data_folder):
    vocabulary = read_vocabulary(data_folder / "iwslt15" / "vocab.en")
    assert (vocabulary["<s>"], vocabulary["</s>"], vocabulary["Rachel"], len(vocabulary)) == (1, 2, 3, 17191)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "vocabulary.txt:1: expected <unk>, the unknown word, found ''"),
        ("a\nb\n", "vocabulary.txt:1: expected <unk>, the unknown word, found 'a'"),
        ("<unk>\n\nb\n", "vocabulary.txt:2: expected a word that was not there before, found ''"),
        ("<unk>\na\na\n", "vocabulary.txt:3: expected a word that was not there before, found 'a'"),
    ],
)
def test_bad_files(tmp_path, text, message):
    path = tmp_path / "vocabulary.txt"
    path.write_text(text)
    with pytest.raises(EdBatchError, match=re.escape(message)):
        read_vocabulary(path)
