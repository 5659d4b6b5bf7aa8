"""Sentences with a head and a relation for every word: CoNLL-U files, and random ones.

A file has ten columns for each word and an empty line after each sentence. Comments, ranges of words (`3-4`) and words
that are not there (`5.1`) are skipped. Heads that are no tree make a sentence malformed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from edbatch.data.draws import Draws
from edbatch.data.stream import Line, Path, attempt, blocks, clipped, file_format, lines
from edbatch.errors import EdBatchError

__all__ = ["DependencySentence", "random_dependencies", "read_conllu", "stream_conllu", "write_conllu"]

_COLUMNS = 10  # of CoNLL-U: number, word, lemma, two tags, features, head, relation, more relations, anything


@dataclass(frozen=True, slots=True)
class DependencySentence:
    """Words, the number of each one's head (words count from 1, 0 is the root), and its relation to it."""

    words: list[str]
    heads: list[int]
    relations: list[str]

    def __len__(self) -> int:
        return len(self.words)

    @property
    def is_projective(self) -> bool:
        """Whether no arcs cross, that from the root, before the first word, included."""
        arcs = [sorted((word, head)) for word, head in enumerate(self.heads, start=1)]
        return not any(a < c < b < d for a, b in arcs for c, d in arcs)


def _sentences(path: Path) -> Iterator[DependencySentence | EdBatchError]:
    for block in blocks(lines(path)):
        if found := [line for line in block if not line.raw.startswith(b"#")]:
            yield attempt(_sentence, found)


def _sentence(block: list[Line]) -> DependencySentence:
    sentence, places = DependencySentence([], [], []), []
    for at in block:
        columns = at.text.split("\t")
        if len(columns) != _COLUMNS:
            raise EdBatchError(f"{at.place}: expected {_COLUMNS} columns between tabs, found {clipped(at.text)!r}")
        number, word, _, _, _, _, head, relation, *_ = columns
        if not number.isdecimal():
            continue
        if int(number) != len(sentence) + 1 or not head.isdecimal() or not word:
            raise EdBatchError(
                f"{at.place}: expected word {len(sentence) + 1} with the number of its head, found {clipped(at.text)!r}"
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
    good = {0}
    for word, place in enumerate(places, start=1):
        way: dict[int, None] = {}
        at = word
        while at not in good:
            if at > len(heads) or at in way:
                raise EdBatchError(f"{place}: expected a tree, but the heads of word {word} do not lead to the root")
            way[at] = None
            at = heads[at - 1]
        good.update(way)


def _text(sentence: DependencySentence) -> str:
    columns = zip(sentence.words, sentence.heads, sentence.relations, strict=True)
    unknown = "\t_" * 4  # columns
    rows = (f"{at}\t{word}{unknown}\t{head}\t{how}\t_\t_\n" for at, (word, head, how) in enumerate(columns, start=1))
    return "".join(rows)


stream_conllu, read_conllu, write_conllu = file_format(
    _sentences, "sentences", "lines of ten columns, as CoNLL-U has them", _text
)

DETERMINERS = ["the", "a", "every", "no", "this"]
ADJECTIVES = ["old", "small", "green", "quiet", "clever", "sad"]
NOUNS = ["dog", "child", "baker", "garden", "letter", "window", "song", "river", "teacher", "story"]
VERBS = ["sees", "writes", "finds", "likes", "paints", "hears"]  # that take an object
INTRANSITIVE = ["sleeps", "laughs", "waits", "sings"]
SAYING = ["says", "thinks", "knows"]  # that take a clause
OF_NOUNS = ["of", "from"]  # what follows belongs to the noun before
OF_VERBS = ["with", "near", "after"]  # ... to the verb
ADVERBS = ["often", "today", "gladly"]


def random_dependencies(n: int, seed: int) -> list[DependencySentence]:
    """`n` sentences of 2 to about 40 words whose trees can be learned; all are projective.

    What a preposition belongs to follows from the preposition, and clauses are nested in clauses. Half of them have 7
    to 16 words, 12 on average, and one in ten more than 21.

    Example:
        >>> sentence = random_dependencies(1, seed=291)[0]
        >>> print(" ".join(sentence.words))
        no teacher waits after a song of the story
        >>> print(sentence.heads)
        [2, 3, 0, 6, 6, 3, 9, 9, 6]
    """
    draws = Draws(seed)
    return [_Grammar(draws).sentence for _ in range(n)]


class _Grammar:
    """Grows a sentence from the left; each method adds a phrase and returns the number of its uppermost word."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self.sentence = DependencySentence([], [], [])
        self._attach(self._clause(0), 0, "root")

    def _add(self, words: list[str]) -> int:
        """One of some words; its head is set later."""
        self.sentence.words.append(self._draws.one_of(words) if len(words) > 1 else words[0])
        self.sentence.heads.append(0)
        self.sentence.relations.append("")
        return len(self.sentence)

    def _attach(self, word: int, head: int, relation: str) -> None:
        self.sentence.heads[word - 1], self.sentence.relations[word - 1] = head, relation

    def _clause(self, depth: int) -> int:
        """A subject, a verb, and an object, a clause or nothing."""
        subject = self._noun_phrase(depth)
        adverbs = [self._add(ADVERBS)] if self._draws.chance(0.2) else []
        kind = self._draws.fraction()
        if kind < 0.25 and depth < 3:
            verb, mark = self._add(SAYING), self._add(["that"])
            inner = self._clause(depth + 1)
            self._attach(mark, inner, "mark")
            self._attach(inner, verb, "ccomp")
        elif kind < 0.5:
            verb = self._add(INTRANSITIVE)
        else:
            verb = self._add(VERBS)
            self._attach(self._noun_phrase(depth), verb, "obj")
        self._attach(subject, verb, "nsubj")
        for adverb in adverbs:
            self._attach(adverb, verb, "advmod")
        if self._draws.chance(0.3):
            self._attach(self._prepositional_phrase(OF_VERBS, depth), verb, "obl")
        return verb

    def _noun_phrase(self, depth: int) -> int:
        determiner = self._add(DETERMINERS)
        adjectives = [self._add(ADJECTIVES) for _ in range(2) if self._draws.chance(0.3)]
        noun = self._add(NOUNS)
        self._attach(determiner, noun, "det")
        for adjective in adjectives:
            self._attach(adjective, noun, "amod")
        if depth < 3 and self._draws.chance(0.3):
            self._attach(self._prepositional_phrase(OF_NOUNS, depth + 1), noun, "nmod")
        return noun

    def _prepositional_phrase(self, prepositions: list[str], depth: int) -> int:
        preposition = self._add(prepositions)
        noun = self._noun_phrase(depth)  # the head, as in Universal Dependencies
        self._attach(preposition, noun, "case")
        return noun
