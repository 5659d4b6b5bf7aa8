"""Made-up film reviews as sentiment trees, so that examples and tests need no data set.

The sentiment of a node, -2 to 2, follows from its words: words carry sentiment, "very" strengthens it,
"slightly" weakens it, "not" turns it round, "but" lets the second clause win, and everything else adds up.
A node's label is its sentiment plus 2, so the labels can be learned.
"""

from __future__ import annotations

from random import Random

from edbatch.data.trees import Tree

ADJECTIVES = {
    -2: ["awful", "dreadful", "unbearable", "hideous", "worthless"],
    -1: ["dull", "clumsy", "noisy", "bland", "predictable", "tired"],
    0: ["long", "french", "recent", "animated", "quiet", "early", "urban"],
    1: ["fresh", "clever", "warm", "lively", "charming", "tidy"],
    2: ["brilliant", "superb", "dazzling", "unforgettable", "masterful"],
}
NOUNS = {
    -2: ["disaster", "travesty"],
    -1: ["mess", "cliche", "bore"],
    0: ["film", "story", "script", "actor", "scene", "plot", "camera", "ending", "audience"],
    1: ["treat", "gem", "delight"],
    2: ["masterpiece", "triumph"],
}
TRANSITIVE = {
    -2: ["ruins", "wrecks"],
    -1: ["drags", "bores", "weakens"],
    0: ["follows", "shows", "finds", "opens", "fills"],
    1: ["lifts", "helps", "charms"],
    2: ["elevates", "transforms"],
}
INTRANSITIVE = {
    -2: ["collapses"],
    -1: ["drags", "stumbles"],
    0: ["begins", "ends", "moves", "continues"],
    1: ["works", "sings"],
    2: ["shines", "soars"],
}
NAMES = ["it", "everyone", "nobody", "Marlow", "Odette"]
DETERMINERS = ["the", "a", "this", "that", "every"]
PREPOSITIONS = ["of", "in", "with", "about", "near"]
STRONGER = ["very", "truly", "remarkably"]
WEAKER = ["slightly", "somewhat", "rather"]
NEGATIONS = ["not", "never", "hardly"]
SENTIMENTS = (-2, -1, -1, 0, 0, 0, 1, 1, 2)


def random_trees(n: int, seed: int) -> list[Tree]:
    """`n` binary trees of 3 to 40 words, 19 on average, with labels 0 (bad) to 4 (good).

    Half have 12 to 26 words and a depth of 7 to 11; of the Stanford Sentiment Treebank's 8,544 half have 12 to 25
    words, 19.1 on average, 52 at most, and a depth of 7 to 12.

    Equal seeds give equal trees, in every version of Python; fewer trees are the first of more.

    Example:
        >>> print(random_trees(1, seed=4)[0])
        (1 (1 (0 (2 the) (0 disaster))
              (3 (3 charms) (2 (2 a) (2 (0 (2 very) (0 dreadful)) (4 triumph))))) (2 .))
    """
    random = Random(seed)
    return [_Sentence(random).tree for _ in range(n)]


class _Sentence:
    """Grows one tree from the left, so that its nodes come in post-order.

    Each method adds a phrase of `n` words and returns its node.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.tree = Tree([], [], [])
        words = 3 + int(38 * (random.random() * random.random()) ** 0.5)
        self.join(self.clauses(words - 1), self.word("."))

    def below(self, n: int) -> int:
        # random() alone is promised to be the same in every version of Python.
        return int(n * self.random.random())

    def word(self, word: str, sentiment: int = 0) -> int:
        return self.add(sentiment, word, ())

    def one_of(self, words: list[str]) -> int:
        return self.word(words[self.below(len(words))])

    def of_sentiment(self, words: dict[int, list[str]]) -> int:
        sentiment = SENTIMENTS[self.below(len(SENTIMENTS))]
        return self.word(words[sentiment][self.below(len(words[sentiment]))], sentiment)

    def join(self, left: int, right: int, sentiment: int | None = None) -> int:
        if sentiment is None:
            sentiment = self.sentiment(left) + self.sentiment(right)
        return self.add(max(-2, min(2, sentiment)), None, (left, right))

    def sentiment(self, node: int) -> int:
        return self.tree.labels[node] - 2

    def add(self, sentiment: int, word: str | None, children: tuple[int, ...]) -> int:
        self.tree.labels.append(sentiment + 2)
        self.tree.words.append(word)
        self.tree.children.append(children)
        return len(self.tree) - 1

    def clauses(self, n: int) -> int:
        if n < 9 or (n < 20 and self.below(2)):
            return self.clause(n)
        first = 3 + self.below(n - 7)
        left = self.clause(first)
        comma = self.word(",")
        if self.below(2):
            rest = self.join(self.word("but"), self.clauses(n - first - 2))
            return self.join(left, self.join(comma, rest), self.sentiment(rest))
        return self.join(left, self.join(comma, self.join(self.word("and"), self.clauses(n - first - 2))))

    def clause(self, n: int) -> int:
        subject = 1 if n < 4 else 1 + self.below(n // 2)
        return self.join(self.noun_phrase(subject), self.verb_phrase(n - subject))

    def noun_phrase(self, n: int) -> int:
        if n == 1:
            return self.one_of(NAMES)
        if n > 4 and self.below(3):
            first = 2 + self.below(n - 3)
            left = self.noun_phrase(first)
            return self.join(left, self.join(self.one_of(PREPOSITIONS), self.noun_phrase(n - first - 1)))
        return self.join(self.one_of(DETERMINERS), self.nominal(n - 1))

    def nominal(self, n: int) -> int:
        if n == 1:
            return self.of_sentiment(NOUNS)
        adjective = 1 + self.below(min(n - 1, 3))
        return self.join(self.adjective_phrase(adjective), self.nominal(n - adjective))

    def adjective_phrase(self, n: int) -> int:
        if n == 1:
            return self.of_sentiment(ADJECTIVES)
        kind = self.below(3)
        modifier = self.one_of((STRONGER, WEAKER, NEGATIONS)[kind])
        return self.modified(kind, modifier, self.adjective_phrase(n - 1))

    def verb_phrase(self, n: int) -> int:
        if n == 1:
            return self.of_sentiment(INTRANSITIVE)
        kind = self.below(4)
        if kind == 0 and n < 6:
            return self.join(self.word("is"), self.adjective_phrase(n - 1))
        if kind == 1:
            return self.modified(2, self.one_of(NEGATIONS), self.verb_phrase(n - 1))
        return self.join(self.of_sentiment(TRANSITIVE), self.noun_phrase(n - 1))

    def modified(self, kind: int, modifier: int, phrase: int) -> int:
        """A phrase made stronger (0), weaker (1) or opposite (2)."""
        sentiment = self.sentiment(phrase)
        sign = (sentiment > 0) - (sentiment < 0)
        return self.join(modifier, phrase, (2 * sign, sign, -sentiment)[kind])
