"""Train a lattice LSTM to find names in text without blanks, from its characters and the words they may make up.

    python -m scripts.train.ner                                    # on a made-up language
    EDBATCH_DATA=... python -m scripts.train.ner --real            # on lattices of Chinese Weibo posts
    python -m scripts.train.ner --train train.txt --dev dev.txt

A run that was stopped goes on; its learning curve is runs/lattice-lstm/curve.png and .json.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

import edbatch as eb
from edbatch.data.lattices import Lattice, sizes
from edbatch.models import LatticeLSTM
from scripts.train.script import Sample, Scores, Script, Task


def prepare(model: eb.ParameterCollection, train: list[Lattice], dev: list[Lattice], hidden: int) -> Task:
    """The most frequent tag is that of characters outside names."""
    outside = Counter(tag for lattice in train for tag in lattice.tags[1:]).most_common(1)[0][0]

    def numbered(lattices: list[Lattice]) -> list[Sample]:
        return [Sample((lattice.arcs,), lattice.tags[1:]) for lattice in lattices]

    def measure(scores: Scores, samples: list[Sample]) -> dict[str, float]:
        """How many tags are right, and the F1 of tags inside names."""
        found = np.concatenate([rows.argmax(axis=1) for rows in scores])
        expected = np.concatenate([sample.labels for sample in samples])
        right = found == expected
        named = int(np.sum(found != outside) + np.sum(expected != outside))
        f1 = 2 * float(np.sum(right & (expected != outside))) / named if named else 1.0
        return {"F1 of tags in names": f1, "accuracy": float(right.mean())}

    network = LatticeLSTM(model, *sizes(train + dev), dim=hidden)
    return Task(network, numbered(train), numbered(dev), measure)


SCRIPT = Script(__doc__, "lattice-lstm", prepare, dev=("lattice/dev.txt",))

if __name__ == "__main__":
    SCRIPT.main()
