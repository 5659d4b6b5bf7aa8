"""Lattices from raw text and a lexicon: against all parts of the text looked up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edbatch import EdBatchError
from edbatch.data.lattices import Arc, Lattice, read_lattices, write_lattices
from edbatch.data.lexicon import Lexicon, read_lexicon
from edbatch.data.sample_files import sample_path
from edbatch.data.vocabulary import Vocabulary

TEXT = st.text("ab京", min_size=1, max_size=12)


@given(TEXT, st.lists(TEXT, max_size=8))
def test_every_word_is_found(text, words):
    lexicon, characters = Lexicon(words), Vocabulary("ab")
    numbered = [word for word in dict.fromkeys(words) if len(word) > 1]
    lattice = lexicon.lattice(text, characters)
    assert len(lexicon) == 1 + len(numbered)
    assert len(lattice) == 1 + len(text)
    for end in range(1, len(text) + 1):
        found = {Arc(start, 1 + numbered.index(text[start:end])) for start in range(end) if text[start:end] in numbered}
        first, *others = lattice.arcs[end]
        assert first == Arc(end - 1, characters[text[end - 1]])
        assert (set(others), len(others)) == (found, len(found))


def test_sample_files_and_back(tmp_path):
    lexicon = read_lexicon(sample_path("lexicon.txt"))
    sentences = sample_path("sentences.txt").read_text(encoding="utf-8").split()
    characters = Vocabulary("".join(sentences))
    lattices = [lexicon.lattice(sentence, characters) for sentence in sentences]
    write_lattices(tmp_path / "lattices.txt", lattices)
    assert read_lattices(tmp_path / "lattices.txt") == lattices
    words = [sentences[1][start:end] for start, end, _ in lexicon.words(sentences[1])]
    assert words == ["南京", "南京市", "市长", "长江", "长江大桥", "大桥"]


def test_blanks_tags_and_lengths():
    lexicon = Lexicon(["ab", "abc", "x"], longest=2)
    assert len(lexicon) == 2
    lattice = lexicon.lattice(" a b\n", Vocabulary("ab"), tags=[5, 6])
    assert lattice == Lattice([0, 5, 6], [(), (Arc(0, 1),), (Arc(1, 2), Arc(0, 1))])


def test_errors(tmp_path):
    with pytest.raises(EdBatchError, match=r"expected 2 tags, one per character, got 3"):
        Lexicon(["ab"]).lattice("ab", Vocabulary("ab"), tags=[0, 0, 0])
    with pytest.raises(EdBatchError, match=r"at least one character, got none"):
        Lexicon(["ab"]).lattice(" ", Vocabulary("ab"))
    with pytest.raises(EdBatchError, match=r"longest=0"):
        Lexicon(["ab"], longest=0)
    path = tmp_path / "words.txt"
    path.write_text("a 1\n\nb 2\n")
    with pytest.raises(EdBatchError, match=r"words.txt: no words in it"):
        read_lexicon(path)
