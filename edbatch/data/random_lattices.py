"""Made-up lattices of a made-up language."""

from __future__ import annotations

from random import Random

from edbatch.data.lattices import Arc, Lattice

# A made-up language: words of two characters, and longer ones that begin or end with these, so that words lie in words.
CHARACTERS = 80
KINDS = 4  # of words, and so of tags: 0 is a word that is no name


def _made_up_words() -> dict[tuple[int, ...], int]:
    """Words by their characters, numbered from 1."""
    random = Random(0)

    def character() -> int:
        return 1 + int(CHARACTERS * random.random())

    words: list[tuple[int, ...]] = [(character(), character()) for _ in range(120)]
    begun = [(*word, character()) for word in words[:60]]
    ended = [(character(), *word) for word in words[40:80]]
    joined = [(*a, *b) for a, b in zip(words[:40], words[60:100], strict=True)]
    words += [*begun, *ended, *joined]
    return {word: number for number, word in enumerate(dict.fromkeys(words), start=1)}


def random_lattices(n: int, seed: int) -> list[Lattice]:
    """`n` made-up lattices of 5 to 80 characters, with about one word for two of them, and tags that can be learned.

    Half have 22 to 61 characters, 42 on average; of the 1,147 of Weibo half have 22 to 58, 43 on average, with 0.53
    words for a character, and one in ten over 82.

    The tag of a node is the kind of the longest word that ends there, and 0 where none does; a word's kind is the
    rest of its number divided by four. All seeds share one language. Equal seeds give equal lattices, in every version
    of Python; fewer lattices are the first of more.

    Example:
        >>> print(random_lattices(1, seed=206)[0])
        6
        0 0 0 2 0 0
        0
        1 0 32
        1 1 20
        3 2 59 1 52 0 190
        1 3 72
        1 4 15
    """
    words = _made_up_words()
    known = list(words)
    random = Random(seed)
    return [_lattice(random, words, known) for _ in range(n)]


def _lattice(random: Random, words: dict[tuple[int, ...], int], known: list[tuple[int, ...]]) -> Lattice:
    length = 5 + int(76 * random.random())
    text: list[int] = []
    while len(text) < length:
        # random() alone is promised to be the same in every version of Python.
        if random.random() < 0.45:
            text += known[int(len(known) * random.random())]
        else:
            text.append(1 + int(CHARACTERS * random.random()))
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
