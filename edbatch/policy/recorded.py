"""Typed graphs in text files, as other schedulers record them."""

from __future__ import annotations

import os
from itertools import pairwise

import numpy as np

from edbatch.base.files import read_text, write_atomically
from edbatch.errors import EdBatchError
from edbatch.policy.typed_graph import TypedGraph


def read_graph(path: str | os.PathLike[str]) -> TypedGraph:
    """Read a recorded graph.

    The first line holds the number of nodes; then there is one line `type n_inputs inputs...` per node,
    all integers. Lines that start with `#` are comments; `# type K NAME` names type number K, which a node has to have,
    and `# runs N N ...` says how many nodes there were after each run but the last, both once at most. Types become 0,
    1, 2... in ascending order.

    Raises:
        EdBatchError: the file cannot be read, `file:line` is not of this form, or the graph has a cycle.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "sum.txt"
        >>> _ = path.write_text("3\\n7 0\\n7 0\\n9 2 0 1\\n# type 9 sum\\n")
        >>> graph = read_graph(path)
        >>> graph, graph.names
        (TypedGraph(3 nodes, 2 edges, 2 types), ('7', 'sum'))
    """
    rows: list[tuple[str, list[int]]] = []  # where it stands, and its integers
    names: dict[int, tuple[str, str]] = {}  # where it stands, and the name
    ends: list[int] = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        place = f"{path}:{number}"
        if line.startswith("#"):
            words = line[1:].split(maxsplit=2)
            if len(words) == 3 and words[0] == "type" and words[1].isdecimal():
                (kind,) = _integers(place, words[1])
                if kind in names:
                    raise EdBatchError(f"{place}: type {kind} already has a name, {names[kind][1]!r}")
                names[kind] = place, words[2].rstrip()
            elif words[:1] == ["runs"]:
                if ends:
                    raise EdBatchError(f"{place}: the line of where runs end occurs twice")
                ends = _integers(place, " ".join(words[1:]))
        elif line.strip():
            rows.append((place, _integers(place, line)))
    if not rows:
        raise EdBatchError(f"{path}: no graph in it; the first line must hold the number of nodes")
    (place, head), nodes = rows[0], rows[1:]
    if len(head) != 1 or head[0] < 0:
        raise EdBatchError(f"{place}: expected the number of nodes alone")
    if len(nodes) != head[0]:
        raise EdBatchError(f"{rows[-1][0]}: the first line says {head[0]} nodes, but {len(nodes)} follow")
    for place, row in nodes:
        if len(row) < 2 or row[0] < 0 or row[1] != len(row) - 2:
            raise EdBatchError(f"{place}: expected 'type n_inputs inputs...' with so many inputs, found {row}")
        if wrong := [operand for operand in row[2:] if not 0 <= operand < len(nodes)]:
            raise EdBatchError(f"{place}: input {wrong[0]} is not one of the nodes 0..{len(nodes) - 1}")
    numbers, types = np.unique([row[0] for _, row in nodes], return_inverse=True)
    operands = [operand for _, row in nodes for operand in row[2:]]
    kinds = numbers.tolist()
    if missing := [kind for kind in names if kind not in kinds]:
        raise EdBatchError(f"{names[missing[0]][0]}: no node has type {missing[0]}, which is named there")
    called = [names.get(kind, ("", str(kind)))[1] for kind in kinds]
    try:
        return TypedGraph.checked(types, np.cumsum([0, *(row[1] for _, row in nodes)]), operands, called, ends)
    except EdBatchError as error:
        raise EdBatchError(f"{path}: {error}") from error


def write_graph(path: str | os.PathLike[str], graph: TypedGraph) -> None:
    """Write a graph that `read_graph` reads back, with its type names, and where its runs end, in comments at the end.

    Types that no node has are left out.

    Raises:
        EdBatchError: a type name spans several lines, or the file cannot be written.
    """
    for name in graph.names:
        if name.splitlines() != [name] or name != name.strip():
            raise EdBatchError(f"type name {name!r} does not fit on a line of its own")
    lines: list[list[object]] = [[len(graph)]]
    for kind, (start, end) in zip(graph.types.tolist(), pairwise(graph.indptr.tolist()), strict=True):
        lines.append([kind, end - start, *graph.operands[start:end].tolist()])
    lines += [["# type", kind, graph.names[kind]] for kind in np.unique(graph.types).tolist()]
    lines += [["# runs", *graph.ends]] if graph.ends else []
    write_atomically(path, "".join(" ".join(map(str, line)) + "\n" for line in lines))


def _integers(place: str, text: str) -> list[int]:
    try:
        return [int(word) for word in text.split()]
    except ValueError:
        found = text.strip() if len(text) <= 80 else f"{text.strip()[:80]}..."
        raise EdBatchError(f"{place}: expected integers, found {found!r}") from None
