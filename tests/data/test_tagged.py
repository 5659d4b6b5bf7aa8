"""Tagged sentences: parsing, files, made-up ones; every error names its place."""

import re
from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edbatch import EdBatchError
from edbatch.data.tagged import TaggedSentence, parse_tagged, random_tagged, read_tagged, write_tagged

WORDS = st.text(st.characters(exclude_characters=" \t\n\r\f\v", exclude_categories=["Cs"]), min_size=1)
TAGS = st.text(st.characters(exclude_characters="| \t\n\r\f\v", exclude_categories=["Cs"]), min_size=1)
SENTENCES = st.lists(st.tuples(WORDS, TAGS), min_size=1).map(
    lambda pairs: TaggedSentence([word for word, _ in pairs], [tag for _, tag in pairs])
)
RANDOM = random_tagged(2000, seed=1)


@given(SENTENCES)
def test_text_gives_the_same_sentence_back(sentence):
    assert parse_tagged(str(sentence)) == sentence


@given(st.lists(SENTENCES, min_size=1, max_size=4))
def test_files_round_trip(tmp_path_factory, sentences):
    path = tmp_path_factory.mktemp("tagged") / "tagged.txt"
    write_tagged(path, sentences)
    assert read_tagged(path) == sentences


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 1: expected word|TAG, found the end"),
        ("a|O b", "column 5: expected word|TAG, found 'b'"),
        ("  a|", "column 3: expected word|TAG, found 'a|'"),
        ("|O", "column 1: expected word|TAG, found '|O'"),
        ("x" * 50, f"column 1: expected word|TAG, found '{'x' * 40}...'"),
    ],
)
def test_errors_name_place_and_expectation(text, message):
    with pytest.raises(EdBatchError, match=re.escape(message)) as error:
        parse_tagged(text, "here")
    assert str(error.value).startswith("here: column ")


def test_files_skip_blank_lines_and_name_the_line_of_an_error(tmp_path):
    path = tmp_path / "tagged.txt"
    path.write_text("a|O b|I-X\r\n\n  \nc||O\n")
    assert [(sentence.words, sentence.tags) for sentence in read_tagged(path)] == [
        (["a", "b"], ["O", "I-X"]),
        (["c|"], ["O"]),
    ]
    path.write_text("a|O\n\nb|O Lon")  # cut off
    with pytest.raises(EdBatchError, match=r"tagged.txt:3: column 5: expected word\|TAG, found 'Lon'"):
        read_tagged(path)
    path.write_text("\n")
    with pytest.raises(EdBatchError, match=r"tagged.txt: no sentences in it; expected one per line"):
        read_tagged(path)
    with pytest.raises(EdBatchError, match=r"none.txt: cannot be read"):
        read_tagged(tmp_path / "none.txt")


def test_real_sentences(data_folder):
    sentences = read_tagged(data_folder / "wikiner" / "train.txt")
    assert len(sentences) == 1300
    assert sum(map(len, sentences)) == 30603
    assert {tag for sentence in sentences for tag in sentence.tags} == {"O", "I-PER", "I-LOC", "I-ORG", "I-MISC"}


def test_equal_seeds_give_equal_sentences():
    assert random_tagged(20, seed=1) == RANDOM[:20]
    assert random_tagged(20, seed=2) != RANDOM[:20]


def test_tags_follow_from_a_word_and_its_neighbours_but_not_from_the_word_alone():
    of_word, of_context = defaultdict(set), defaultdict(set)
    for sentence in RANDOM:
        words = ["<", *sentence.words, ">"]
        for before, word, after, tag in zip(words, words[1:], words[2:], sentence.tags, strict=False):
            of_word[word].add(tag)
            of_context[before, word, after].add(tag)
    assert all(len(tags) == 1 for tags in of_context.values())
    assert of_word["Paris"] == of_word["Santos"] == {"I-PER", "I-LOC", "I-ORG"}
    assert of_word["Anna"] == {"I-PER"}


def test_many_names_are_rare_and_tell_by_their_ending():
    counts = Counter(word for sentence in RANDOM for word in sentence.words)
    rare = [word for word, count in counts.items() if count < 50]
    assert len(rare) > 400
    tags = {w: t for sentence in RANDOM for w, t in zip(sentence.words, sentence.tags, strict=True)}
    assert {tags[word] for word in rare if word.endswith("ville")} == {"I-LOC"}
    assert {tags[word] for word in rare if word.endswith("corp")} == {"I-ORG"}
