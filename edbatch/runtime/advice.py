"""What keeps a program from batching, and what to do about it, in whole sentences.

Each sentence rests on a count of what would be saved, not on how the program looks: `lower_bound` once more for the
graph as it would be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from edbatch.policy.bounds import lower_bound
from edbatch.policy.typed_graph import TypedGraph

LEAST = 8  # batches; who could save less needs no advice
FEW = 8.0  # nodes a batch; with more, what keeps nodes apart costs little
READS = 4  # values read one after the other
SIZES = 4  # types that differ only in sizes
_PLACERS = ("concatenate(", "stack(")  # of which every number of operands is a type
_SHAPE = re.compile(r"(?<![\w.])\[[\d,]*\]")  # of an operand; a parameter's is behind its name


class Use(NamedTuple):
    """What has run of a type.

    Attributes:
        batches, nodes: how many.
        seconds: of its batches, forward; None without `options(profile=True)`.
    """

    batches: int
    nodes: int
    seconds: float | None


def advice(uses: Mapping[str, Use], graphs: Sequence[TypedGraph], whole: Callable[[], TypedGraph]) -> list[str]:
    """Sentences; none where nothing is to be gained.

    Args:
        uses: by name of the type.
        graphs: what was scheduled, one after the other.
        whole: all of them as one graph.
    """
    batches, count = sum(use.batches for use in uses.values()), sum(use.nodes for use in uses.values())
    found = [*_read_one_by_one(batches, count, graphs, whole), *_sizes(uses, graphs)]
    if not found and len(graphs) == 1 and count >= 2 * LEAST and 2 * count < 3 * batches:
        found.append(
            f"Hardly anything ran together: {count:,} nodes took {batches:,} batches, and {_bound(graphs):,} is the "
            "least for what was recorded. Record the samples of a whole mini-batch in one graph before a value is read."
        )
    return found


def _bound(graphs: Sequence[TypedGraph]) -> int:
    return sum(lower_bound(graph) for graph in graphs)


def _read_one_by_one(
    batches: int, count: int, graphs: Sequence[TypedGraph], whole: Callable[[], TypedGraph]
) -> list[str]:
    """Values that were read before what could have run with them was recorded."""
    if len(graphs) < READS or count >= FEW * batches:
        return []
    least = lower_bound(whole())
    if batches - least < LEAST or batches < 2 * least:
        return []
    return [
        f"Values were read {len(graphs):,} times, each before the next sample was recorded: {batches:,} batches of "
        f"{count / batches:.1f} nodes, where {least:,} could do. Collect what you read, the losses say, in a list, and "
        "read their sum or `eb.forward(list)` once; where a value decides what is recorded next, record a step of "
        "every sample, then read the values of all of them with one `eb.forward(list)`."
    ]


def _sizes(uses: Mapping[str, Use], graphs: Sequence[TypedGraph]) -> list[str]:
    """Types that differ only in the sizes of operands."""
    forms: dict[str, list[str]] = {}
    for name in uses:
        forms.setdefault(_form(name), []).append(name)
    apart = {form: names for form, names in forms.items() if len(names) >= SIZES and _few(names, uses)}
    if not apart:
        return []
    bound, merged = _bound(graphs), _bound([_merged(graph, apart) for graph in graphs])
    if bound - merged < LEAST or 4 * merged > 3 * bound:
        return []
    listed = sorted(apart, key=lambda form: -sum(uses[name].batches for name in apart[form]))
    shown = [f"{form} in {len(apart[form]):,} sizes ({_examples(apart[form])})" for form in listed[:3]]
    more = f" and {len(listed) - 3} others" if len(listed) > 3 else ""
    return [
        f"Sizes that differ from sample to sample keep nodes apart: {'; '.join(shown)}{more}. Were each of one size, "
        f"{merged:,} batches could do instead of {bound:,}. Keep what varies in lists of vectors (a sum, mean, max or "
        "logsumexp of a list is one type whatever its length), or pad to a few sizes."
    ]


def _form(name: str) -> str:
    """A type's name without the sizes of its operands: `matmul([?,?], [?])`; a parameter keeps its own."""
    form = _SHAPE.sub(lambda shape: re.sub(r"\d+", "?", shape[0]), name)
    return re.sub(r"(\[[?,]*\])(?:, \1)+", r"\1, ...", form) if name.startswith(_PLACERS) else form


def _few(names: Sequence[str], uses: Mapping[str, Use]) -> bool:
    return sum(uses[name].nodes for name in names) < FEW * sum(uses[name].batches for name in names)


def _examples(names: Sequence[str]) -> str:
    shown = [short(", ".join(_SHAPE.findall(name)), 24) for name in names[:3]]
    return "; ".join(shown) + ("; ..." if len(names) > 3 else "")


def short(name: str, width: int) -> str:
    """A name that is too long for a table, without its end."""
    return name if len(name) <= width else name[: width - 3] + "..."


def _merged(graph: TypedGraph, apart: Mapping[str, Sequence[str]]) -> TypedGraph:
    """The graph with one type for all sizes."""
    names = [form if (form := _form(name)) in apart else name for name in graph.names]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    types = np.array([numbers[name] for name in names], np.int32)[graph.types]
    return TypedGraph(types, graph.indptr, graph.operands, tuple(numbers))
