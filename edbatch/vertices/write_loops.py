"""The loops that write the nodes of all vertices of an input graph.

A loop over vertices whose body depends on the vertex is guessed wrong by the processor at nearly every one. So vertices
are taken by blocks: where what each one records begins is found in order, and then every operand is written for
all vertices of the block that have one recording. Indices are unsigned, or Numba's code would see whether each counts
from the end.
"""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.vertices.vertex_graph import CHILD, DRAWN, OWN, PULLED

BLOCK = 2048  # few enough to stay in the processor's cache
VERTEX, NODE, OPERAND, INTEGER, DRAW = range(5)  # of each vertex of a block

_at = np.uint64

Structure = tuple[np.ndarray, np.ndarray, np.ndarray]
Tables = tuple[np.ndarray, np.ndarray, np.ndarray]


@compiled(small=True)
def write(
    structure: Structure,
    recordings: np.ndarray,
    tables: Tables,
    given: tuple[np.ndarray, np.ndarray],
    begin: tuple[int, int],
    written: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """Write the nodes of all vertices.

    Args:
        structure: order (empty: that of the numbers), offsets, children.
        recordings: per vertex.
        tables: of all recordings, one after the other: [types, operands, integers, results, drawn numbers] of each
            begin at, but for the last, which are counted; types; rows [what, a, b, added] (see `recording.Row`), of
            operands, integers and results.
        given: rank of each vertex, and the inputs' columns, one after the other.
        begin: id of the first node, and the first number that is drawn.
        written: types, operands, integers and [vertex, result] ids; filled in.
    """
    begins, _, rows = tables
    n_recordings = len(begins) - 1
    block = np.empty((n_recordings, 5, BLOCK), np.int64)
    n_in_block = np.empty(n_recordings, np.int64)
    types, operands, integers, results = written
    width = results.shape[1]
    flat = results.reshape(-1)
    next_at = np.array([begin[0], 0, 0, begin[1]])
    passes_on = False
    for one in range(n_recordings):
        for at in range(begins[one, 3], begins[one + 1, 1]):
            passes_on = passes_on or rows[at, 0] == CHILD
    for first in range(0, len(recordings), BLOCK):
        end = min(len(recordings), first + BLOCK)
        _place(first, end, structure[0], recordings, begins, next_at, (block, n_in_block))
        for one in range(n_recordings):
            of_one = block[one, :, : n_in_block[one]]
            _write_types(begins[one : one + 2, 0], tables[1], of_one[NODE], begin[0], types)
            for at in range(begins[one, 3], begins[one + 1, 1]):
                if rows[at, 0] != CHILD:
                    where = of_one[VERTEX], width, at - begins[one, 3]
                    _write_column(rows[at], flat, where, of_one, structure, given, results)
        if passes_on:  # a child's may be what a vertex of the same block has passed on
            _pass_on(first, end, structure, recordings, begins, rows, results)
        for one in range(n_recordings):
            of_one = block[one, :, : n_in_block[one]]
            for at in range(begins[one, 1], begins[one, 2]):
                where = of_one[OPERAND], 1, at - begins[one, 1]
                _write_column(rows[at], operands, where, of_one, structure, given, results)
            for at in range(begins[one, 2], begins[one, 3]):
                where = of_one[INTEGER], 1, at - begins[one, 2]
                _write_column(rows[at], integers, where, of_one, structure, given, results)


@compiled(small=True)
def _place(
    first: int,
    end: int,
    order: np.ndarray,
    recordings: np.ndarray,
    begins: np.ndarray,
    next_at: np.ndarray,
    found: tuple[np.ndarray, np.ndarray],
) -> None:
    """Where what the vertices of a block record begins, by recording.

    Args:
        next_at: the next node, operand, integer and number that is drawn; brought up to date.
        found: [recording, what, vertex], and how many there are of each recording; filled in.
    """
    block, n_in_block = found
    n_recordings = len(n_in_block)
    entries = block.reshape(-1)
    steps = np.empty((n_recordings, 4), np.int64)
    for one in range(n_recordings):
        steps[one, 0] = begins[one + 1, 0] - begins[one, 0]
        steps[one, 1] = begins[one, 2] - begins[one, 1]
        steps[one, 2] = begins[one, 3] - begins[one, 2]
        steps[one, 3] = begins[one, 4]
        n_in_block[one] = one * 5 * BLOCK
    node, operand, integer, draw = next_at[0], next_at[1], next_at[2], next_at[3]
    for step in range(first, end):
        vertex = order[_at(step)] if len(order) else step
        one = recordings[_at(vertex)]
        at = n_in_block[_at(one)]
        entries[_at(at)] = vertex
        entries[_at(at + BLOCK)] = node
        entries[_at(at + 2 * BLOCK)] = operand
        entries[_at(at + 3 * BLOCK)] = integer
        entries[_at(at + 4 * BLOCK)] = draw
        n_in_block[_at(one)] = at + 1
        node += steps[_at(one), 0]
        operand += steps[_at(one), 1]
        integer += steps[_at(one), 2]
        draw += steps[_at(one), 3]
    next_at[0], next_at[1], next_at[2], next_at[3] = node, operand, integer, draw
    for one in range(n_recordings):
        n_in_block[one] -= one * 5 * BLOCK


@compiled(small=True)
def _write_types(
    begins: np.ndarray, node_types: np.ndarray, nodes: np.ndarray, first_node: int, types: np.ndarray
) -> None:
    """Write the types of the nodes that begin at `nodes`."""
    for at in range(begins[0], begins[1]):
        type = node_types[at]
        step = at - begins[0] - first_node
        for i in range(len(nodes)):
            types[_at(nodes[i] + step)] = type


@compiled(small=True)
def _write_column(
    row: np.ndarray,
    target: np.ndarray,
    where: tuple[np.ndarray, int, int],
    block: np.ndarray,
    structure: Structure,
    given: tuple[np.ndarray, np.ndarray],
    results: np.ndarray,
) -> None:
    """Write one integer, or one result, of some vertices.

    Args:
        row: what it is.
        target: that it is written to; `where`: at places * scale + step.
        block: [what, vertex].
        structure, given, results: see `write`.
    """
    places, scale, step = where
    what, a, b, added = row[0], row[1], row[2], row[3]
    vertices = block[VERTEX]
    if what == OWN:
        nodes = block[NODE]
        for i in range(len(vertices)):
            target[_at(places[i] * scale + step)] = nodes[i] + added
    elif what == CHILD:
        _, offsets, children = structure
        width = results.shape[1]
        flat = results.reshape(-1)
        for i in range(len(vertices)):
            child = children[_at(offsets[_at(vertices[i])] + a)]
            target[_at(places[i] * scale + step)] = flat[_at(child * width + b)] + added
    elif what == PULLED:
        rank, inputs = given
        for i in range(len(vertices)):
            target[_at(places[i] * scale + step)] = inputs[_at(a + rank[_at(vertices[i])])] + added
    elif what == DRAWN:
        draws = block[DRAW]
        for i in range(len(vertices)):
            target[_at(places[i] * scale + step)] = draws[i] + added
    else:
        for i in range(len(vertices)):
            target[_at(places[i] * scale + step)] = added


@compiled(small=True)
def _pass_on(
    first: int,
    end: int,
    structure: Structure,
    recordings: np.ndarray,
    begins: np.ndarray,
    rows: np.ndarray,
    results: np.ndarray,
) -> None:
    """Write what the vertices of a block give that is a child's."""
    order, offsets, children = structure
    for step in range(first, end):
        vertex = order[step] if len(order) else step
        one = recordings[vertex]
        for at in range(begins[one, 3], begins[one + 1, 1]):
            if rows[at, 0] == CHILD:
                child = children[offsets[vertex] + rows[at, 1]]
                results[vertex, at - begins[one, 3]] = results[child, rows[at, 2]] + rows[at, 3]
