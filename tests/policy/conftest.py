import os
from pathlib import Path

import numpy as np
import pytest

from edbatch.policy import TypedGraph, read_graph


def make_random_graph(seed, nodes=16, types=3, names="ABCDEFGH", shuffle=True):
    """A random typed DAG; ids are not topological, operands may repeat."""
    random = np.random.default_rng(seed)
    nodes = int(random.integers(1, nodes + 1))
    rows = [
        random.integers(0, node, random.integers(0, min(node, 3) + 1)).tolist() if node else [] for node in range(nodes)
    ]
    kinds = random.integers(0, types, nodes)
    place = random.permutation(nodes) if shuffle else np.arange(nodes)
    operands = [[] for _ in range(nodes)]
    for node, row in enumerate(rows):
        operands[place[node]] = [int(place[operand]) for operand in row]
    order = np.argsort(place)
    return TypedGraph.from_lists([names[kinds[order[node]]] for node in range(nodes)], operands)


@pytest.fixture(scope="session")
def random_graph():
    return make_random_graph


def make_tree(depth, inner="I", output="O"):
    """The tree of the paper's Figure 1: an output node at every node, all summed by a chain of R."""
    types, operands = [], []

    def add(kind, *inputs):
        types.append(kind)
        operands.append(list(inputs))
        return len(types) - 1

    def subtree(height):
        # unbalanced, so that depths differ
        below = [subtree(height - 1), subtree(max(0, height - 2))] if height else []
        node = add(inner if height else "L", *below)
        outputs.append(add(output, node))
        return node

    outputs = []
    subtree(depth)
    last = outputs[0]
    for node in outputs[1:]:
        last = add("R", last, node)
    return TypedGraph.from_lists(types, operands)


@pytest.fixture(scope="session")
def tree():
    return make_tree


@pytest.fixture(scope="session")
def recorded():
    """Recorded graphs by name; skips where the data is not there."""
    folder = Path(os.environ.get("EDBATCH_DATA", "/nonexistent")) / "graphs"
    if not folder.is_dir():
        pytest.skip("EDBATCH_DATA is not set")
    return lambda name: read_graph(folder / f"{name}.txt")
