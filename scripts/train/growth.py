"""Train a top-down TreeLSTM to grow trees of some kinds, whose shape follows from what it draws.

    python -m scripts.train.growth

The trees are made up: what a leaf may be follows from the tree's kind, the leaf's side and its depth. A run that was
stopped goes on; its learning curve is runs/tree-generator/curve.png and .json.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import numpy as np

import edbatch as eb
from edbatch.models import TreeGenerator
from scripts.train.script import ProgramTask, Script, Source

KINDS, WORDS, DEEPEST = 4, 24, 6


class Grown(NamedTuple):
    """A tree of a kind."""

    number: int
    kind: int
    tree: Any


def leaf(kind: int, right: bool, deep: bool, choice: int) -> int:
    """A word: of six for each kind, three are for each side, and two of these for what is deep."""
    return (6 * kind + 3 * right + (choice if deep else 2 - choice)) % WORDS


def random_grown(n: int, seed: int) -> list[Grown]:
    """`n` trees; the left side of a tree is a leaf more often than the right one."""
    random = Random(seed)

    def tree(kind: int, depth: int, right: bool) -> Any:
        if depth == DEEPEST or random.random() < (0.3 if right else 0.6):
            return leaf(kind, right, depth > 2, int(2 * random.random()))
        return tree(kind, depth + 1, False), tree(kind, depth + 1, True)

    return [Grown(k, k % KINDS, (tree(k % KINDS, 1, False), tree(k % KINDS, 1, True))) for k in range(n)]


def follows(kind: int, tree: Any, depth: int = 0, right: bool = False) -> bool:
    """Whether a tree is one that `random_grown` could have made."""
    if isinstance(tree, tuple):
        sides = [follows(kind, child, depth + 1, at == 1) for at, child in enumerate(tree)]
        return depth < DEEPEST and all(sides)
    return depth > 0 and any(tree == leaf(kind, right, depth > 2, choice) for choice in (0, 1))


def nodes(tree: Any) -> int:
    """How many there are in a tree."""
    return 1 + sum(map(nodes, tree)) if isinstance(tree, tuple) else 1


def prepare(model: eb.ParameterCollection, train: list[Grown], dev: list[Grown], hidden: int) -> ProgramTask:
    """Learns from trees, and is measured on how probable others are, and on what it grows itself."""
    network = TreeGenerator(model, WORDS, KINDS, hidden)

    async def loss(sample: Grown) -> list[eb.Expression]:
        return network.losses(sample.tree, network.root(sample.kind))

    async def answer(sample: Grown) -> tuple[float, Any]:
        loss = network.loss(sample.tree, sample.kind)
        grown = network.grow(sample.kind, DEEPEST, np.random.default_rng(sample.number))
        value, tree = await eb.all(loss, grown)
        return float(value), tree

    return ProgramTask(train, dev, loss, answer, measure)


def measure(answers: list[tuple[float, Any]], samples: list[Grown]) -> dict[str, float]:
    """The perplexity of a node, and how many of the trees that grew are as they should be."""
    total = sum(value for value, _ in answers)
    good = [follows(sample.kind, tree) for (_, tree), sample in zip(answers, samples, strict=True)]
    return {
        "trees as they should be": sum(good) / len(good),
        "perplexity": float(np.exp(total / sum(nodes(sample.tree) for sample in samples))),
    }


SCRIPT = Script(__doc__, "tree-generator", prepare, Source(random_grown), drawn=("trees as they should be",))

if __name__ == "__main__":
    SCRIPT.main()
