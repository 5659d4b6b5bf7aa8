"""Sentences with a head and a relation for every word: CoNLL-U files, and random ones.

A file has ten columns for each word and an empty line after each sentence. Comments, ranges of words (`3-4`) and words
that are not there (`5.1`) are skipped. Heads that are no tree make a sentence malformed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from edbatch.data.draws import Draws
from edbatch.data.files import Line, Path, blocks, file_format, lines
from edbatch.errors import EdBatchError, shown

__all__ = ["DependencySentence", "random_dependencies", "read_conllu", "write_conllu"]

_COLUMNS = 10  # of CoNLL-U: number, word, lemma, two tags, features, head, relation, more relations, anything


@dataclass(frozen=True, slots=True)
class DependencySentence:
    """Words, the number of each one's head (words count from 1, 0 is the root), and its relation to it."""

    words: list[str]
    heads: list[int]
    relations: list[str]

    def __len__(self) -> int:
        return len(self.words)

    def __str__(self) -> str:
        rows = enumerate(zip(self.words, self.heads, self.relations, strict=True), start=1)
        unknown = "\t_" * 4  # columns
        return "".join(f"{at}\t{word}{unknown}\t{head}\t{how}\t_\t_\n" for at, (word, head, how) in rows)

    @property
    def is_projective(self) -> bool:
        """Whether no arcs cross, that from the root, before the first word, included."""
        arcs = [sorted((word, head)) for word, head in enumerate(self.heads, start=1)]
        return not any(a < c < b < d for a, b in arcs for c, d in arcs)


def _sentence(block: list[Line]) -> DependencySentence:
    sentence, places = DependencySentence([], [], []), []
    for at in block:
        columns = at.text.split("\t")
        if len(columns) != _COLUMNS:
            raise EdBatchError(f"{at.place}: expected {_COLUMNS} columns between tabs, found {shown(at.text)}")
        number, word, _, _, _, _, head, relation, *_ = columns
        if not number.isdecimal():
            continue
        if int(number) != len(sentence) + 1 or not head.isdecimal() or not word:
            raise EdBatchError(
                f"{at.place}: expected word {len(sentence) + 1} with the number of its head, found {shown(at.text)}"
            )
        sentence.words.append(word)
        sentence.heads.append(int(head))
        sentence.relations.append(relation)
        places.append(at.place)
    if not places:
        raise EdBatchError(f"{block[0].place}: expected a word with a number")
    _check_tree(sentence.heads, places)
    return sentence


def _check_tree(heads: list[int], places: list[str]) -> None:
    """Every word's heads lead to the root."""
    below = defaultdict[int, list[int]](list)
    for word, head in enumerate(heads, start=1):
        below[head].append(word)
    reached = [0]
    for word in reached:  # and those that come below
        reached += below[word]
    if lost := sorted({*range(len(heads) + 1)}.difference(reached)):
        place = places[lost[0] - 1]
        raise EdBatchError(f"{place}: expected a tree, but the heads of word {lost[0]} do not lead to the root")


def _without_comments(path: Path) -> Iterator[list[Line]]:
    return blocks(line for line in lines(path) if not line.raw.startswith(b"#"))


read_conllu, write_conllu = file_format(
    _sentence, "sentences", "lines of ten columns, as CoNLL-U has them", _without_comments
)

# Phrases, by alternatives: parts with their relation to the head, which has none, and how often they are there.
_CLAUSE = "noun-phrase/nsubj/1 adverb/advmod/0.2 {} with-phrase/obl/0.3"
PHRASES = {
    "clause": [
        _CLAUSE.format(of) for of in ("saying that-clause/ccomp/1", "intransitive", *["verb noun-phrase/obj/1"] * 2)
    ],
    "that-clause": ["that/mark/1 clause"],
    "noun-phrase": ["determiner/det/1 adjective/amod/0.3 adjective/amod/0.3 noun of-phrase/nmod/0.3"],
    "with-phrase": ["with/case/1 noun-phrase"],  # whose noun is the head, as in Universal Dependencies
    "of-phrase": ["of/case/1 noun-phrase"],
}
WORDS = {
    "determiner": ["the", "a", "every", "no", "this"],
    "adjective": ["old", "small", "green", "quiet", "clever", "sad"],
    "noun": ["dog", "child", "baker", "garden", "letter", "window", "song", "river", "teacher", "story"],
    "verb": ["sees", "writes", "finds", "likes", "paints", "hears"],
    "intransitive": ["sleeps", "laughs", "waits", "sings"],
    "saying": ["says", "thinks", "knows"],
    "that": ["that"],
    "of": ["of", "from"],  # what follows belongs to the noun before
    "with": ["with", "near", "after"],  # ... to the verb
    "adverb": ["often", "today", "gladly"],
}


def random_dependencies(n: int, seed: int) -> list[DependencySentence]:
    """`n` sentences of 3 to about 60 words whose trees can be learned; all are projective.

    What a preposition belongs to follows from the preposition, and clauses are nested in clauses. Half of them have 7
    to 16 words, 12 on average.

    Example:
        >>> sentence = random_dependencies(1, seed=787)[0]
        >>> print(" ".join(sentence.words))
        a letter sleeps after every garden from this teacher
        >>> print(sentence.heads)
        [2, 3, 0, 6, 6, 3, 9, 9, 6]
    """
    draws = Draws(seed)
    sentences = [DependencySentence([], [], []) for _ in range(n)]
    for sentence in sentences:
        _grow(sentence, "clause", draws)
    return sentences


def _grow(sentence: DependencySentence, kind: str, draws: Draws) -> int:
    """Add a phrase, or a word, and return the number of its uppermost word."""
    if kind in WORDS:
        sentence.words.append(draws.one_of(WORDS[kind]))
        sentence.heads.append(0)
        sentence.relations.append("root")
        return len(sentence)
    top, below = 0, {}
    for part in draws.one_of(PHRASES[kind]).split():
        inner, *how = part.split("/")
        if not how:
            top = _grow(sentence, inner, draws)
        elif draws.chance(float(how[1])):
            below[_grow(sentence, inner, draws)] = how[0]
    for word, relation in below.items():
        sentence.heads[word - 1], sentence.relations[word - 1] = top, relation
    return top
