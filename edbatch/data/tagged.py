"""Sentences with a tag for every word, in the form `word|TAG word|TAG ...`, and made-up ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from edbatch.data.lines import clipped, write_samples
from edbatch.data.stream import Stream, stream_samples
from edbatch.errors import EdBatchError

_TOKEN = re.compile(r"\S+", re.ASCII)  # a no-break space is part of a word


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """Words and their tags.

    Example:
        >>> sentence = parse_tagged("Minoru|I-PER plays|O")
        >>> sentence
        TaggedSentence(words=['Minoru', 'plays'], tags=['I-PER', 'O'])
        >>> str(sentence), len(sentence)
        ('Minoru|I-PER plays|O', 2)
    """

    words: list[str]
    tags: list[str]

    def __len__(self) -> int:
        return len(self.words)

    def __str__(self) -> str:
        return " ".join(f"{word}|{tag}" for word, tag in zip(self.words, self.tags, strict=True))


def parse_tagged(text: str, place: str = "sentence") -> TaggedSentence:
    """Read one sentence. A word may contain `|`, a tag may not.

    Args:
        text: the whole sentence.
        place: where the text comes from, for error messages.

    Raises:
        EdBatchError: a word has no tag, or there are no words; the message names place and column.

    Example:
        >>> parse_tagged("Minoru|I-PER plays", "news.txt:7")
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: news.txt:7: column 14: expected word|TAG, found 'plays'
    """
    sentence = TaggedSentence([], [])
    for match in _TOKEN.finditer(text):
        word, _, tag = match[0].rpartition("|")
        if not word or not tag:
            raise EdBatchError(f"{place}: column {match.start() + 1}: expected word|TAG, found {clipped(match[0])!r}")
        sentence.words.append(word)
        sentence.tags.append(tag)
    if not sentence.words:
        raise EdBatchError(f"{place}: column {len(text.rstrip()) + 1}: expected word|TAG, found the end")
    return sentence


def stream_tagged(path: str | os.PathLike[str], skip_bad: bool = False) -> Stream[TaggedSentence]:
    """The sentences of a file, one at a time; file and errors as of `read_tagged`.

    Args:
        skip_bad: skip lines with a word that has no tag, and count them (`.skipped`).
    """
    return stream_samples(path, parse_tagged, "sentences", "Minoru|I-PER plays|O", skip_bad)


def read_tagged(path: str | os.PathLike[str], skip_bad: bool = False) -> list[TaggedSentence]:
    """Read a file with one sentence per line; blank lines are skipped, and with `skip_bad` malformed ones.

    Raises:
        EdBatchError: the file cannot be read or holds no sentence, or a word has no tag; the message names file, line
            and column.
    """
    return stream_tagged(path, skip_bad).take()


def write_tagged(path: str | os.PathLike[str], sentences: Iterable[TaggedSentence]) -> None:
    """Write sentences, one per line, so that `read_tagged` gives them back.

    Raises:
        EdBatchError: the file cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "tagged.txt"
        >>> write_tagged(path, random_tagged(3, seed=0))
        >>> read_tagged(path) == random_tagged(3, seed=0)
        True
    """
    write_samples(path, sentences)


# Made-up news. A name is a person, a place or an organization by the word before it or, at the start of a clause, by
# the word after it; some names say it by their ending.
BEFORE = {
    "I-PER": ["Mr", "Mrs", "Dr", "met", "thanked", "Anna", "Oskar", "Lena", "Viktor"],
    "I-LOC": ["in", "near", "visited", "left"],
    "I-ORG": ["joined", "for", "sued", "founded"],
}
AFTER = {"I-PER": ["said", "smiled"], "I-LOC": ["airport", "streets"], "I-ORG": ["shares", "lawyers"]}
FIRST_NAMES = ["Anna", "Oskar", "Lena", "Viktor"]
ENDINGS = {"I-PER": ["son", "ez"], "I-LOC": ["burg", "ville"], "I-ORG": ["soft", "corp"]}
SYLLABLES = ["Mar", "Tel", "Bro", "Lin", "Ost", "Ver", "Kal", "Dun", "Fer", "Nor", "Sil", "Hag"]
ANY_NAME = ["Jordan", "Paris", "Chelsea", "Lincoln", "Orlando", "Sydney", "Victoria", "Houston", "Florence", "Santos"]
OTHER = ["today", "again", "quietly", "on", "Monday", "after", "a", "long", "week", "they", "reported", "rain"]


def random_tagged(n: int, seed: int, clauses: int = 4) -> list[TaggedSentence]:
    """`n` made-up sentences of 3 to about 40 words whose tags can be learned.

    Each has 1 to `clauses` clauses of about six words. Half of them have 9 to 22 words, 16 on average; with `clauses=6`
    12 to 31, 23 on average, as in WikiNER (1,300 sentences: half have 14 to 29, 23.5 on average, one in ten over 41).

    The tag of a word follows from the word and its two neighbours. One name in two is a new one of two or three
    syllables, told by its ending, so that a tagger that sees characters has something to see.
    Equal seeds give equal sentences, in every version of Python; fewer sentences are the first of more.

    Example:
        >>> for sentence in random_tagged(2, seed=4):
        ...     print(sentence)
        Paris|I-PER said|O founded|O Brosoft|I-ORG .|O
        Norez|I-PER said|O week|O reported|O .|O
    """
    random = Random(seed)
    return [_sentence(random, clauses) for _ in range(n)]


def _sentence(random: Random, clauses: int) -> TaggedSentence:
    def one_of(words: list[str]) -> str:
        # random() alone is promised to be the same in every version of Python.
        return words[int(len(words) * random.random())]

    def name(tag: str) -> str:
        if random.random() < 0.5:
            return one_of(ANY_NAME)
        stem = one_of(SYLLABLES) + (one_of(SYLLABLES).lower() if random.random() < 0.5 else "")
        return stem + one_of(ENDINGS[tag])

    def add(word: str, tag: str = "O") -> None:
        words.append(word)
        tags.append(tag)

    words: list[str] = []
    tags: list[str] = []
    for clause in range(1 + int(clauses * random.random())):
        if clause:
            add(one_of([",", "and", "while"]))
        tag = one_of(list(AFTER))
        add(name(tag), tag)
        add(one_of(AFTER[tag]))
        for _ in range(int(3 * random.random())):
            tag = one_of(list(BEFORE))
            before = one_of(BEFORE[tag])
            add(before, "I-PER" if before in FIRST_NAMES else "O")
            add(name(tag), tag)
        for _ in range(int(4 * random.random())):
            add(one_of(OTHER))
    add(".")
    return TaggedSentence(words, tags)
