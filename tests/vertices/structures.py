"""Structures for vertex functions, and vertices as Python's recursion has them."""

import numpy as np

import edbatch as eb
from edbatch.graph.cell.tree import flatten


def chains(rng):
    return eb.InputGraph.of_chains(rng.integers(1, 9, 6))


def tree(rng, leaves):
    """A binary tree as nested tuples, of numbers below 8."""
    parts = rng.integers(0, 8, leaves).tolist()
    while len(parts) > 1:
        at = int(rng.integers(len(parts) - 1))
        parts[at : at + 2] = [(parts[at], parts[at + 1])]
    return parts[0]


def trees(rng):
    return eb.InputGraph.of_tuples([tree(rng, leaves) for leaves in rng.integers(1, 9, 5)])[0]


def lattices(rng):
    """Of kind 0 what follows one another, of kind 1 arcs from one of these to a later one."""
    samples, kinds = [], []
    for n in rng.integers(2, 8, 4).tolist():
        vertices, of_node = [[]], [0]
        kinds.append(0)
        for node in range(1, n):
            arcs = [len(vertices) + at for at in range(1 + int(rng.integers(3)))]
            for _ in arcs:
                vertices.append([of_node[int(rng.integers(node))]])
                kinds.append(1)
            of_node.append(len(vertices))
            vertices.append(arcs)
            kinds.append(0)
        samples.append(vertices)
    return eb.InputGraph.of_lists(samples, kinds)


def dags(rng, n=40, most=3, kinds=2):
    """Any DAG, whose vertices are numbered in any order."""
    number = rng.permutation(n)
    children = [()] * n
    for at in range(1, n):
        children[number[at]] = number[rng.integers(0, at, rng.integers(0, most + 1))].tolist()
    return eb.InputGraph.of_lists([children], rng.integers(0, kinds, n))


STRUCTURES = {"chains": chains, "trees": trees, "lattices": lattices, "dags": dags}


class Walked:
    """A vertex that a recursive function computes by itself, alone."""

    def __init__(self, kind, children, pulled):
        self.kind = kind
        self.children = children
        self.n_children = len(children)
        self.pulled = pulled
        self.scattered = self.pushed = None

    def gather(self, child=None):
        if child is None:
            return [one.scattered for one in self.children]
        return self.children[child].scattered

    def pull(self):
        return self.pulled

    def scatter(self, *results):
        self.scattered = results[0] if len(results) == 1 else results

    def push(self, *results):
        self.pushed = results[0] if len(results) == 1 else results


def walk(functions, graph, *inputs):
    """What `eb.vertex(*functions)(graph, *inputs)` is to be: a `Walked` for each vertex."""
    kinds, offsets, children = graph.kinds, graph.offsets, graph.children
    rank = [int((kinds[:v] == kinds[v]).sum()) for v in range(len(graph))]
    found = {}

    def pulled(v):
        given = inputs[kinds[v]] if kinds[v] < len(inputs) else None
        leaves, structure = flatten(given)
        return structure.build([entry(x, rank[v]) for x in leaves])

    def go(v):
        if v not in found:
            found[v] = Walked(kinds[v], [go(c) for c in children[offsets[v] : offsets[v + 1]].tolist()], pulled(v))
            functions[kinds[v]](found[v])
        return found[v]

    return [go(v) for v in range(len(graph))]


def entry(x, at):
    if isinstance(x, eb.ExpressionArray):
        return x[at]
    if not isinstance(x, np.ndarray):
        return x
    return int(x[at]) if x.dtype.kind in "iu" else eb.input(x[at])
