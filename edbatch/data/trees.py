"""Labelled trees over words, in the bracketed form of the Penn Treebank; in files one per line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from edbatch.data.draws import Draws
from edbatch.data.files import file_format
from edbatch.errors import EdBatchError, shown

__all__ = ["Tree", "parse_tree", "random_trees", "read_trees", "write_trees"]

# A bracket and a label, with the word of a leaf or without, or a closing bracket; a no-break space is no blank.
_PART = re.compile(r"\s*(?:\(\s*([0-9]{1,18})(?![^()\s])(?:\s+([^()\s]+)\s*\))?|(\)))", re.ASCII)
_TOKEN = re.compile(r"\(\s*[^()\s]*|\)|[^()\s]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree whose nodes stand in post-order: children before their parent, the root last.

    Attributes:
        labels: per node its label, 0, 1, 2...
        words: per node the word of a leaf, None inside the tree.
        children: per node the positions of its children; () for a leaf.

    Example:
        >>> tree = parse_tree("(3 (2 so) (4 good))")
        >>> tree
        Tree(labels=[2, 4, 3], words=['so', 'good', None], children=[(), (), (0, 1)])
        >>> str(tree), len(tree)
        ('(3 (2 so) (4 good))', 3)
    """

    labels: list[int]
    words: list[str | None]
    children: list[tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.labels)

    def __str__(self) -> str:
        parts: list[str] = []
        todo: list[int | str] = [len(self) - 1]
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                parts.append(item)
            elif (word := self.words[item]) is not None:
                parts.append(f" ({self.labels[item]} {word})")
            else:
                parts.append(f" ({self.labels[item]}")
                todo += [")", *reversed(self.children[item])]
        return "".join(parts).lstrip()

    def binarized(self) -> Tree:
        """The same tree with two children at every inner node.

        A chain of only children becomes one node with the label of the uppermost; three or more children are
        joined from the left, under nodes of their parent's label.

        Example:
            >>> str(parse_tree("(1 (2 a) (2 b) (3 (4 c)))").binarized())
            '(1 (1 (2 a) (2 b)) (3 c))'
        """
        parent = {child: node for node, children in enumerate(self.children) for child in children}
        binary = Tree([], [], [])
        joined: dict[int, int] = {}  # inner node -> what its children so far have become
        for node, (label, word) in enumerate(zip(self.labels, self.words, strict=True)):
            if word is not None:
                new = binary._add(label, word, ())
            else:
                new = joined.pop(node)
                binary.labels[new] = label
            if node in parent:
                above = parent[node]
                if above in joined:
                    new = binary._add(self.labels[above], None, (joined[above], new))
                joined[above] = new
        return binary

    def _add(self, label: int, word: str | None, children: tuple[int, ...]) -> int:
        self.labels.append(label)
        self.words.append(word)
        self.children.append(children)
        return len(self.labels) - 1


def parse_tree(text: str, place: str = "tree") -> Tree:
    """Read one tree: `(label word)` is a leaf, `(label child child ...)` an inner node. No recursion.

    Where the text is no tree, an EdBatchError names `place`, the column, and what was expected there.

    Example:
        >>> parse_tree("(3 (2 so) good)", "reviews.txt:7")
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: reviews.txt:7: column 11: expected '(label' or ')', found 'good'
    """
    tree = Tree([], [], [])
    opened: list[tuple[int, list[int]]] = []  # of the nodes around the place label and children
    at, end = 0, len(text.rstrip())
    while at < end and (match := _PART.match(text, at)) and (opened or not tree.labels):
        label, word, closes = match.groups()
        if closes and not (opened and opened[-1][1]):
            break
        at = match.end()
        if label and not word:
            opened.append((int(label), []))
            continue
        inner, children = opened.pop() if closes else (int(label), [])
        node = tree._add(inner, word, tuple(children))
        if opened:
            opened[-1][1].append(node)
    if at < end or opened or not tree.labels:
        found = _TOKEN.search(text, at)
        expected = "nothing after the tree" if tree.labels else "'(' and a label (0, 1, 2, ...)"
        if opened:
            label, children = opened[-1]
            expected = "'(label' or ')'" if children else f"a word and ')', or '(label', after the label {label}"
        place = f"{place}: column {1 + (found.start() if found else end)}"
        raise EdBatchError(f"{place}: expected {expected}, found {shown(found[0]) if found else 'the end'}")
    return tree


read_trees, write_trees = file_format(parse_tree, "trees", "one per line, such as (3 (2 so) (4 good))")


# Made-up film reviews. The sentiment of a node, -2 to 2, follows from its words: words carry sentiment, "very"
# strengthens it, "slightly" weakens it, "not" turns it round, "but" lets the second clause win, and all else adds up.


def _by_sentiment(words: str) -> dict[int, list[str]]:
    return {sentiment: some.split() for sentiment, some in zip(range(-2, 3), words.split("/"), strict=True)}


ADJECTIVES = _by_sentiment(
    "awful dreadful unbearable hideous worthless / dull clumsy noisy bland predictable tired / "
    "long french recent animated quiet early urban / fresh clever warm lively charming tidy / "
    "brilliant superb dazzling unforgettable masterful"
)
NOUNS = _by_sentiment(
    "disaster travesty / mess cliche bore / "
    "film story script actor scene plot camera ending audience / treat gem delight / masterpiece triumph"
)
TRANSITIVE = _by_sentiment(
    "ruins wrecks / drags bores weakens / follows shows finds opens fills / lifts helps charms / elevates transforms"
)
INTRANSITIVE = _by_sentiment("collapses / drags stumbles / begins ends moves continues / works sings / shines soars")
NAMES = ["it", "everyone", "nobody", "Marlow", "Odette"]
DETERMINERS = ["the", "a", "this", "that", "every"]
PREPOSITIONS = ["of", "in", "with", "about", "near"]
STRONGER = ["very", "truly", "remarkably"]
WEAKER = ["slightly", "somewhat", "rather"]
NEGATIONS = ["not", "never", "hardly"]
SENTIMENTS = (-2, -1, -1, 0, 0, 0, 1, 1, 2)


def random_trees(n: int, seed: int) -> list[Tree]:
    """`n` binary trees, made-up film reviews of 3 to 40 words, 19 on average, with labels 0 (bad) to 4 (good).

    Half have 12 to 26 words; of the Stanford Sentiment Treebank's 8,544 half have 12 to 25, 19.1 on average.
    """
    draws = Draws(seed)
    return [_Sentence(draws).tree for _ in range(n)]


class _Sentence:
    """Grows one tree from the left, so that its nodes come in post-order.

    Each method adds a phrase of `n` words and returns its node.
    """

    def __init__(self, draws: Draws) -> None:
        self.draws = draws
        self.tree = Tree([], [], [])
        words = 3 + int(38 * (draws.fraction() * draws.fraction()) ** 0.5)
        self.join(self.clauses(words - 1), self.add("."))

    def add(self, word: str | None, sentiment: int = 0, children: tuple[int, ...] = ()) -> int:
        return self.tree._add(sentiment + 2, word, children)

    def one_of(self, words: list[str]) -> int:
        return self.add(self.draws.one_of(words))

    def of_sentiment(self, words: dict[int, list[str]]) -> int:
        sentiment = self.draws.one_of(SENTIMENTS)
        return self.add(self.draws.one_of(words[sentiment]), sentiment)

    def sentiment(self, node: int) -> int:
        return self.tree.labels[node] - 2

    def join(self, left: int, right: int, sentiment: int | None = None) -> int:
        if sentiment is None:
            sentiment = self.sentiment(left) + self.sentiment(right)
        return self.add(None, max(-2, min(2, sentiment)), (left, right))

    def clauses(self, n: int) -> int:
        if n < 9 or (n < 20 and self.draws.below(2)):
            return self.clause(n)
        first = 3 + self.draws.below(n - 7)
        left = self.clause(first)
        comma = self.add(",")
        contrast = self.draws.below(2)
        rest = self.join(self.add("but" if contrast else "and"), self.clauses(n - first - 2))
        return self.join(left, self.join(comma, rest), self.sentiment(rest) if contrast else None)

    def clause(self, n: int) -> int:
        subject = 1 if n < 4 else 1 + self.draws.below(n // 2)
        return self.join(self.noun_phrase(subject), self.verb_phrase(n - subject))

    def noun_phrase(self, n: int) -> int:
        if n == 1:
            return self.one_of(NAMES)
        if n > 4 and self.draws.below(3):
            first = 2 + self.draws.below(n - 3)
            left = self.noun_phrase(first)
            return self.join(left, self.join(self.one_of(PREPOSITIONS), self.noun_phrase(n - first - 1)))
        return self.join(self.one_of(DETERMINERS), self.nominal(n - 1))

    def nominal(self, n: int) -> int:
        if n == 1:
            return self.of_sentiment(NOUNS)
        adjective = 1 + self.draws.below(min(n - 1, 3))
        return self.join(self.adjective_phrase(adjective), self.nominal(n - adjective))

    def adjective_phrase(self, n: int) -> int:
        if n == 1:
            return self.of_sentiment(ADJECTIVES)
        kind = self.draws.below(3)
        return self.modified(kind, self.one_of((STRONGER, WEAKER, NEGATIONS)[kind]), self.adjective_phrase(n - 1))

    def verb_phrase(self, n: int) -> int:
        if n == 1:
            return self.of_sentiment(INTRANSITIVE)
        kind = self.draws.below(4)
        if kind == 0 and n < 6:
            return self.join(self.add("is"), self.adjective_phrase(n - 1))
        if kind == 1:
            return self.modified(2, self.one_of(NEGATIONS), self.verb_phrase(n - 1))
        return self.join(self.of_sentiment(TRANSITIVE), self.noun_phrase(n - 1))

    def modified(self, kind: int, modifier: int, phrase: int) -> int:
        """A phrase made stronger (0), weaker (1) or opposite (2)."""
        sentiment = self.sentiment(phrase)
        sign = (sentiment > 0) - (sentiment < 0)
        return self.join(modifier, phrase, (2 * sign, sign, -sentiment)[kind])
