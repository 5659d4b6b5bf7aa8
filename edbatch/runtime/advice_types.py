"""Advice about types that could be one: those that differ in sizes or in numbers, and cells that are made anew."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from edbatch.policy.typed_graph import TypedGraph, lower_bound

LEAST = 8  # batches; who could save less needs no advice
FEW = 8.0  # nodes a batch; with more, what keeps nodes apart costs little
TYPES = 4  # that differ in one way only
_PLACERS = ("concatenate(", "stack(")  # of which every number of operands is a type
_SHAPE = re.compile(r"(?<![\w.])\[[\d,]*\]")  # of an operand; a parameter's is behind its name
_NUMBER = re.compile(r"(?<==)-?(?:\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+)(?![\w.])")  # of an attribute, or by keyword
_SAME_NAME = re.compile(r" #\d+$")  # what tells types of one name apart


class Use(NamedTuple):
    """What has run of a type.

    Attributes:
        batches, nodes: how many.
        seconds: of its batches, forward; None without `options(profile=True)`.
    """

    batches: int
    nodes: int
    seconds: float | None


class Way(NamedTuple):
    """A way in which types differ that could be one.

    Attributes:
        form_of: from a type's name, that without what varies.
        varies: what does, in a name; `what` it is.
        sentence: about it, see `_apart`.
    """

    form_of: Callable[[str], str]
    varies: re.Pattern[str]
    what: str
    sentence: str


def types_apart(uses: Mapping[str, Use], graphs: Sequence[TypedGraph]) -> list[str]:
    """Types that differ only in the sizes of operands, or only in numbers."""
    return [sentence for way in (_SIZES, _NUMBERS) for sentence in _apart(uses, graphs, way)]


def _apart(uses: Mapping[str, Use], graphs: Sequence[TypedGraph], way: Way) -> list[str]:
    forms: dict[str, list[str]] = {}
    for name in uses:
        forms.setdefault(way.form_of(name), []).append(name)
    apart = {form: names for form, names in forms.items() if len(names) >= TYPES and _few(names, uses)}
    gain = gain_of(graphs, [_merged(graph, apart, way.form_of) for graph in graphs]) if apart else None
    if gain is None:
        return []
    order = sorted(apart, key=lambda form: -sum(uses[name].batches for name in apart[form]))
    shown = [f"{form} in {len(apart[form]):,} {way.what} ({_examples(apart[form], way.varies)})" for form in order]
    return [way.sentence.format(listed=_listed(shown), gain=gain)]


def cells_made_anew(graphs: Sequence[TypedGraph], once: Sequence[TypedGraph]) -> list[str]:
    """Cells of one function that compute the same, each of a type of its own.

    Args:
        graphs: as they are.
        once: as they would be if such cells were one.
    """
    gain = gain_of(graphs, once)
    if gain is None:
        return []
    found: Counter[str] = Counter()
    for graph, other in zip(graphs, once, strict=True):
        changed = graph.types != other.types
        kinds = np.union1d(graph.types[changed], other.types[changed])
        found.update(_SAME_NAME.sub("", graph.names[kind]) for kind in kinds.tolist())
    listed = _listed([f"{name} in {count:,} cells" for name, count in found.most_common()])
    return [
        f"Cells were made anew that compute the same, and do not run together: {listed}. Were each made once, {gain}. "
        "Make a cell outside of the function that is called for each sample, as a function of the module or a method, "
        "and give it what changes as arguments; one that is made anew is traced and compiled again, too."
    ]


def bound_of(graphs: Sequence[TypedGraph]) -> int:
    """How many batches several graphs need, at least."""
    return sum(lower_bound(graph) for graph in graphs)


def gain_of(graphs: Sequence[TypedGraph], others: Sequence[TypedGraph]) -> str | None:
    """Describe what other graphs would save; None if that is not worth a sentence."""
    if all(graph is other for graph, other in zip(graphs, others, strict=True)):
        return None
    bound, least = bound_of(graphs), bound_of(others)
    if bound - least < LEAST or 4 * least > 3 * bound:
        return None
    return f"{least:,} batches could do instead of {bound:,}"


def short(name: str, width: int) -> str:
    """A name that is too long for a table, without its end."""
    return name if len(name) <= width else name[: width - 3] + "..."


def _listed(found: Sequence[str]) -> str:
    return "; ".join(found[:3]) + (f" and {len(found) - 3} others" if len(found) > 3 else "")


def _few(names: Sequence[str], uses: Mapping[str, Use]) -> bool:
    return sum(uses[name].nodes for name in names) < FEW * sum(uses[name].batches for name in names)


def _examples(names: Sequence[str], varies: re.Pattern[str]) -> str:
    shown = [short(", ".join(varies.findall(name)), 24) for name in names[:3]]
    return "; ".join(shown) + ("; ..." if len(names) > 3 else "")


def _merged(graph: TypedGraph, apart: Mapping[str, Sequence[str]], form_of: Callable[[str], str]) -> TypedGraph:
    """The graph with one type for each form."""
    names = [form if (form := form_of(name)) in apart else name for name in graph.names]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    types = np.array([numbers[name] for name in names], np.int32)[graph.types]
    return TypedGraph(types, graph.indptr, graph.operands, tuple(numbers))


def _without_sizes(name: str) -> str:
    """A type's name without the sizes of its operands: `matmul([?,?], [?])`; a parameter keeps its own."""
    form = _SHAPE.sub(lambda shape: re.sub(r"\d+", "?", shape[0]), name)
    return re.sub(r"(\[[?,]*\])(?:, \1)+", r"\1, ...", form) if name.startswith(_PLACERS) else form


def _without_numbers(name: str) -> str:
    """A type's name without numbers that are no integers: `leaky_relu([4], slope=?)`."""
    return _NUMBER.sub("?", name)


_SIZES = Way(
    _without_sizes,
    _SHAPE,
    "sizes",
    "Sizes that differ from sample to sample keep nodes apart: {listed}. Were each of one size, {gain}. Keep what "
    "varies in lists of vectors (a sum, mean, max or logsumexp of a list is one type whatever its length), or pad to a "
    "few sizes.",
)
_NUMBERS = Way(
    _without_numbers,
    _NUMBER,
    "numbers",
    "Numbers that differ from node to node keep nodes apart, and kernels are compiled for each: {listed}. Were they "
    "operands, {gain}. Give a number that changes as an operand, eb.scalar(number), to +, *, maximum, minimum, where "
    "or **, and to a cell by place; or take only a few numbers.",
)
