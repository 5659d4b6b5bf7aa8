"""Random lattices of a made-up language."""

from __future__ import annotations

from edbatch.data.draws import Draws
from edbatch.data.lattices import Arc, Lattice

# A made-up language: words of two characters, and longer ones that begin or end with these, so that words lie in words.
CHARACTERS = 80
KINDS = 4  # of words, and so of tags: 0 is a word that is no name


def _made_up_words() -> dict[tuple[int, ...], int]:
    """Words by their characters, numbered from 1."""
    draws = Draws(0)

    def character() -> int:
        return 1 + draws.below(CHARACTERS)

    words: list[tuple[int, ...]] = [(character(), character()) for _ in range(120)]
    begun = [(*word, character()) for word in words[:60]]
    ended = [(character(), *word) for word in words[40:80]]
    joined = [(*a, *b) for a, b in zip(words[:40], words[60:100], strict=True)]
    words += [*begun, *ended, *joined]
    return {word: number for number, word in enumerate(dict.fromkeys(words), start=1)}


def random_lattices(n: int, seed: int) -> list[Lattice]:
    """`n` lattices of 5 to 80 characters, with about one word for two of them, and tags that can be learned.

    Half have 22 to 61 characters, 42 on average; of the 1,147 of Weibo half have 22 to 58, 43 on average.

    The tag of a node is the kind of the longest word that ends there, and 0 where none does; a word's kind is the rest
    of its number divided by four. All seeds share one language.
    """
    words = _made_up_words()
    known = list(words)
    draws = Draws(seed)
    return [_lattice(draws, words, known) for _ in range(n)]


def _lattice(draws: Draws, words: dict[tuple[int, ...], int], known: list[tuple[int, ...]]) -> Lattice:
    length = 5 + draws.below(76)
    text: list[int] = []
    while len(text) < length:
        text += draws.one_of(known) if draws.chance(0.45) else [1 + draws.below(CHARACTERS)]
    del text[length:]
    lattice = Lattice([0], [()])
    for node, character in enumerate(text, start=1):
        arcs, tag = [Arc(node - 1, character)], 0
        for source in range(node - 2, max(node - 5, -1), -1):
            if number := words.get(tuple(text[source:node])):
                arcs.append(Arc(source, number))
                tag = number % KINDS  # the longest comes last
        lattice.tags.append(tag)
        lattice.arcs.append(tuple(arcs))
    return lattice
