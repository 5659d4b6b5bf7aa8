"""Structures for vertex functions, and vertices as Python's recursion has them."""

import edbatch as eb


def chains(rng):
    return eb.InputGraph.of_chains(rng.integers(1, 9, 6))


def tree(rng, leaves):
    """A binary tree as nested tuples, of numbers below 8."""
    parts = rng.integers(0, 8, leaves).tolist()
    while len(parts) > 1:
        at = int(rng.integers(len(parts) - 1))
        parts[at : at + 2] = [(parts[at], parts[at + 1])]
    return parts[0]


def dags(rng, n=40, most=3, kinds=2):
    """Any DAG, whose vertices are numbered in any order."""
    number = rng.permutation(n)
    children = [()] * n
    for at in range(1, n):
        children[number[at]] = number[rng.integers(0, at, rng.integers(0, most + 1))].tolist()
    return eb.InputGraph.of_lists([children], rng.integers(0, kinds, n))
