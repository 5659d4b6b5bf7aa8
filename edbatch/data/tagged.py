"""Sentences with a tag for every word, in files one per line, `word|TAG word|TAG ...`, and random ones."""

from __future__ import annotations

from dataclasses import dataclass

from edbatch.data.draws import Draws
from edbatch.data.files import WORD, file_format
from edbatch.errors import EdBatchError, shown

__all__ = ["TaggedSentence", "parse_tagged", "random_tagged", "read_tagged", "write_tagged"]


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

    Where a word has no tag, or there are no words, an EdBatchError names `place` and the column.
    """
    sentence = TaggedSentence([], [])
    for match in WORD.finditer(text):
        word, _, tag = match[0].rpartition("|")
        if not word or not tag:
            raise EdBatchError(f"{place}: column {match.start() + 1}: expected word|TAG, found {shown(match[0])}")
        sentence.words.append(word)
        sentence.tags.append(tag)
    if not sentence.words:
        raise EdBatchError(f"{place}: column {len(text.rstrip()) + 1}: expected word|TAG, found the end")
    return sentence


read_tagged, write_tagged = file_format(parse_tagged, "sentences", "one per line, such as Minoru|I-PER plays|O")

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
    """`n` sentences of 3 to about 40 words whose tags can be learned, each of 1 to `clauses` clauses of about six
    words.

    Half of them have 9 to 22 words, 16 on average; with `clauses=6` 12 to 31, 23 on average, as in WikiNER.

    The tag of a word follows from the word and its two neighbours. One name in two is a new one of two or three
    syllables, told by its ending, so that a tagger that sees characters has something to see.
    """
    draws = Draws(seed)
    return [_sentence(draws, clauses) for _ in range(n)]


def _sentence(draws: Draws, clauses: int) -> TaggedSentence:
    def name(tag: str) -> str:
        if draws.chance(0.5):
            return draws.one_of(ANY_NAME)
        stem = draws.one_of(SYLLABLES) + (draws.one_of(SYLLABLES).lower() if draws.chance(0.5) else "")
        return stem + draws.one_of(ENDINGS[tag])

    def add(word: str, tag: str = "O") -> None:
        sentence.words.append(word)
        sentence.tags.append(tag)

    sentence = TaggedSentence([], [])
    for clause in range(1 + draws.below(clauses)):
        if clause:
            add(draws.one_of([",", "and", "while"]))
        tag = draws.one_of(list(AFTER))
        add(name(tag), tag)
        add(draws.one_of(AFTER[tag]))
        for _ in range(draws.below(3)):
            tag = draws.one_of(list(BEFORE))
            before = draws.one_of(BEFORE[tag])
            add(before, "I-PER" if before in FIRST_NAMES else "O")
            add(name(tag), tag)
        for _ in range(draws.below(4)):
            add(draws.one_of(OTHER))
    add(".")
    return sentence
