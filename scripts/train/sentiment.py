"""Train a TreeLSTM to tell sentiment, with a loss at every node of every tree.

    python -m scripts.train.sentiment                                  # on made-up reviews
    EDBATCH_DATA=... python -m scripts.train.sentiment --real          # on the Stanford Sentiment Treebank
    python -m scripts.train.sentiment --train trees.txt --dev dev.txt  # on trees in PTB form: (3 (2 so) (4 good))

A run that was stopped goes on; its learning curve is runs/tree-lstm/curve.png and .json.
"""

from __future__ import annotations

import edbatch as eb
from edbatch.data.trees import Tree
from edbatch.data.vocabulary import Vocabulary
from edbatch.models import TreeLSTM
from scripts.train.script import Sample, Scores, Script, Task


def prepare(model: eb.ParameterCollection, train: list[Tree], dev: list[Tree], hidden: int) -> Task:
    """Words that occur once share one embedding, which stands for unknown words."""
    words = Vocabulary((word for tree in train for word in tree.words if word is not None), at_least=2)
    labels = 1 + max(label for tree in train + dev for label in tree.labels)

    def numbered(trees: list[Tree]) -> list[Sample]:
        return [
            Sample(([None if word is None else words[word] for word in tree.words], tree.children), tree.labels)
            for tree in trees
        ]

    return Task(TreeLSTM(model, len(words), labels, hidden), numbered(train), numbered(dev), measure)


def measure(scores: Scores, samples: list[Sample]) -> dict[str, float]:
    """How many roots, and how many of all nodes, are right."""
    right = [rows.argmax(axis=1) == sample.labels for rows, sample in zip(scores, samples, strict=True)]
    return {
        "root accuracy": sum(int(nodes[-1]) for nodes in right) / len(right),
        "node accuracy": sum(int(nodes.sum()) for nodes in right) / sum(map(len, right)),
    }


SCRIPT = Script(__doc__, "tree-lstm", prepare, dev=("sst/dev.txt",), defaults={"epochs": 6})

if __name__ == "__main__":
    SCRIPT.main()
