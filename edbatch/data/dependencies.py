"""Sentences with a head and a relation for every word: CoNLL-U files, and made-up ones."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random

from edbatch.base.files import write_atomically
from edbatch.data.lines import clipped
from edbatch.data.stream import Line, Stream, lines, parsed
from edbatch.errors import EdBatchError

_COLUMNS = 10  # of CoNLL-U: number, word, lemma, two tags, features, head, relation, more relations, anything
_HEAD, _RELATION = 6, 7


@dataclass(frozen=True, slots=True)
class DependencySentence:
    """Words, the number of each one's head, and what it is to it.

    Attributes:
        words: the words.
        heads: of each word: words count from 1, and 0 is the root, which is the head of one word at least.
        relations: of each word to its head.

    Example:
        >>> DependencySentence(["Mary", "sings"], [2, 0], ["nsubj", "root"])
        DependencySentence(words=['Mary', 'sings'], heads=[2, 0], relations=['nsubj', 'root'])
    """

    words: list[str]
    heads: list[int]
    relations: list[str]

    def __len__(self) -> int:
        return len(self.words)

    @property
    def is_projective(self) -> bool:
        """Whether no arcs cross, that from the root, before the first word, included.

        Example:
            >>> DependencySentence(["a", "b", "c", "d"], [0, 4, 1, 1], ["r"] * 4).is_projective
            False
        """
        arcs = [sorted((word, head)) for word, head in enumerate(self.heads, start=1)]
        return not any(a < c < b < d for a, b in arcs for c, d in arcs)


def stream_conllu(path: str | os.PathLike[str], skip_bad: bool = False) -> Stream[DependencySentence]:
    """The sentences of a CoNLL-U file, one at a time; file and errors as of `read_conllu`.

    Args:
        skip_bad: skip sentences with a malformed line, or whose heads are no tree, and count them (`.skipped`).
    """
    nothing = f"{path}: no sentences in it; expected lines of ten columns, as CoNLL-U has them"
    return Stream(parsed(_blocks(path), _sentence), "sentences", nothing, skip_bad)


def read_conllu(path: str | os.PathLike[str], skip_bad: bool = False) -> list[DependencySentence]:
    """Read a CoNLL-U file: a line of ten columns for each word, an empty line after each sentence.

    Comments, ranges of words (`3-4`) and words that are not there (`5.1`) are skipped, and with `skip_bad` malformed
    sentences.

    Raises:
        EdBatchError: the file cannot be read or holds no sentence, a line has other columns, or heads are no tree; the
            message names file and line.
    """
    return stream_conllu(path, skip_bad).take()


def _blocks(path: str | os.PathLike[str]) -> Iterator[list[Line]]:
    """The lines of each sentence, without comments."""
    block: list[Line] = []
    for line in lines(path):
        if line.is_blank and block:
            yield block
            block = []
        elif not line.is_blank and not line.raw.startswith(b"#"):
            block.append(line)
    if block:
        yield block


def _sentence(block: list[Line]) -> DependencySentence:
    sentence, places = DependencySentence([], [], []), []
    for at in block:
        place, line = at.place, at.text
        columns = line.split("\t")
        if len(columns) != _COLUMNS:
            raise EdBatchError(f"{place}: expected {_COLUMNS} columns between tabs, found {clipped(line)!r}")
        number, word, head = columns[0], columns[1], columns[_HEAD]
        if not number.isdecimal():
            continue
        if int(number) != len(sentence) + 1 or not head.isdecimal() or not word:
            raise EdBatchError(
                f"{place}: expected word {len(sentence) + 1} with the number of its head, found {clipped(line)!r}"
            )
        sentence.words.append(word)
        sentence.heads.append(int(head))
        sentence.relations.append(columns[_RELATION])
        places.append(place)
    _check_tree(sentence.heads, places or [block[0].place])
    return sentence


def _check_tree(heads: list[int], places: list[str]) -> None:
    """Every word's heads lead to the root."""
    good = {0}
    for word, place in enumerate(places, start=1):
        path: list[int] = []
        at = word if heads else 0
        while at not in good:
            if at > len(heads) or at in path:
                raise EdBatchError(f"{place}: expected a tree, but the heads of word {word} do not lead to the root")
            path.append(at)
            at = heads[at - 1]
        good.update(path)
    if not heads:
        raise EdBatchError(f"{places[0]}: expected a word with a number")


def write_conllu(path: str | os.PathLike[str], sentences: Iterable[DependencySentence]) -> None:
    """Write sentences so that `read_conllu` gives them back.

    Raises:
        EdBatchError: the file cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "trees.conllu"
        >>> write_conllu(path, random_dependencies(3, seed=0))
        >>> read_conllu(path) == random_dependencies(3, seed=0)
        True
    """
    write_atomically(path, "".join(f"{text}\n" for sentence in sentences for text in _lines(sentence)))


def _lines(sentence: DependencySentence) -> Iterator[str]:
    columns = zip(sentence.words, sentence.heads, sentence.relations, strict=True)
    for number, (word, head, relation) in enumerate(columns, start=1):
        yield "\t".join([str(number), word, *["_"] * 4, str(head), relation, "_", "_"])
    yield ""


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
    """`n` made-up sentences of 2 to about 40 words whose trees can be learned; all are projective.

    What a preposition belongs to follows from the preposition, and clauses are nested in clauses. Half of them have 7
    to 16 words, 12 on average, and one in ten more than 21.
    Equal seeds give equal sentences, in every version of Python; fewer sentences are the first of more.

    Example:
        >>> sentence = random_dependencies(1, seed=291)[0]
        >>> print(" ".join(sentence.words))
        no teacher waits after a song of the story
        >>> print(sentence.heads)
        [2, 3, 0, 6, 6, 3, 9, 9, 6]
    """
    random = Random(seed)
    return [_Grammar(random).sentence() for _ in range(n)]


class _Grammar:
    """Phrases as trees: (words before, head, words after), each with a relation."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.words: list[str] = []
        self.heads: list[int] = []
        self.relations: list[str] = []

    def sentence(self) -> DependencySentence:
        verb = self.clause(0)
        self.heads[verb - 1], self.relations[verb - 1] = 0, "root"
        return DependencySentence(self.words, self.heads, self.relations)

    def _one_of(self, words: list[str]) -> str:
        # random() alone is promised to be the same in every version of Python.
        return words[int(len(words) * self._random.random())]

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _add(self, word: str) -> int:
        """The number of a new word; its head is set later."""
        self.words.append(word)
        self.heads.append(0)
        self.relations.append("")
        return len(self.words)

    def _attach(self, words: Iterable[int], head: int, relation: str) -> None:
        for word in words:
            self.heads[word - 1], self.relations[word - 1] = head, relation

    def clause(self, depth: int) -> int:
        """The number of its verb."""
        subject = self.noun_phrase(depth)
        adverbs = [self._add(self._one_of(ADVERBS))] if self._chance(0.2) else []
        kind = self._random.random()
        if kind < 0.25 and depth < 3:
            verb = self._add(self._one_of(SAYING))
            mark = self._add("that")
            inner = self.clause(depth + 1)
            self._attach([mark], inner, "mark")
            self._attach([inner], verb, "ccomp")
        elif kind < 0.5:
            verb = self._add(self._one_of(INTRANSITIVE))
        else:
            verb = self._add(self._one_of(VERBS))
            self._attach([self.noun_phrase(depth)], verb, "obj")
        self._attach([subject], verb, "nsubj")
        self._attach(adverbs, verb, "advmod")
        if self._chance(0.3):
            self._attach([self.prepositional_phrase(OF_VERBS, depth)], verb, "obl")
        return verb

    def noun_phrase(self, depth: int) -> int:
        """The number of its noun."""
        determiner = self._add(self._one_of(DETERMINERS))
        adjectives = [self._add(self._one_of(ADJECTIVES)) for _ in range(2) if self._chance(0.3)]
        noun = self._add(self._one_of(NOUNS))
        self._attach([determiner], noun, "det")
        self._attach(adjectives, noun, "amod")
        if depth < 3 and self._chance(0.3):
            self._attach([self.prepositional_phrase(OF_NOUNS, depth + 1)], noun, "nmod")
        return noun

    def prepositional_phrase(self, prepositions: list[str], depth: int) -> int:
        """The number of its noun, which is its head, as in Universal Dependencies."""
        preposition = self._add(self._one_of(prepositions))
        noun = self.noun_phrase(depth)
        self._attach([preposition], noun, "case")
        return noun
