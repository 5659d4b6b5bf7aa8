"""Vocabulary: 0 is the unknown word, the others are numbered by first occurrence."""

from hypothesis import given
from hypothesis import strategies as st

from edbatch.data.vocabulary import Vocabulary


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
