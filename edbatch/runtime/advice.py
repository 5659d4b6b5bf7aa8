"""What keeps a program from batching, and what to do about it, in whole sentences.

Each sentence rests on a count of what would be saved, not on how the program looks: `lower_bound` once more for the
graph as it would be.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from edbatch.policy.topology import longest_paths
from edbatch.policy.typed_graph import TypedGraph, lower_bound
from edbatch.runtime.report import Use, short

LEAST = 8  # batches; who could save less needs no advice
FEW = 8.0  # nodes a batch; with more, what keeps nodes apart costs little
READS = 4  # values read one after the other
TYPES = 4  # that differ in sizes only
_PLACERS = ("concatenate(", "stack(")  # of which every number of operands is a type
_SHAPE = re.compile(r"(?<![\w.])\[[\d,]*\]")  # of an operand; a parameter's is behind its name
_SAME_NAME = re.compile(r" #\d+$")  # what tells types of one name apart
_OF_LISTS = {"add": "eb.sum", "maximum": "eb.max", "minimum": "eb.min"}
_GROWING = re.compile(rf"({'|'.join(_OF_LISTS)})\((\[[\d,]*\]), \2\)")  # of two operands of one shape


def advice(
    uses: Mapping[str, Use], graphs: Sequence[TypedGraph], whole: Callable[[], TypedGraph], once: Sequence[TypedGraph]
) -> list[str]:
    """Sentences; none where nothing is to be gained.

    Args:
        uses: by name of the type.
        graphs, whole: what was scheduled, one after the other; all of them as one graph.
        once: the graphs with one type for all cells that compute the same.
    """
    batches, count = sum(use.batches for use in uses.values()), sum(use.nodes for use in uses.values())
    sentences = (
        _read_one_by_one(batches, count, graphs, whole),
        _cells_made_anew(graphs, once),
        _sizes_apart(uses, graphs),
        _put_together_one_by_one(graphs),
    )
    found = [sentence for sentence in sentences if sentence]
    if not found and len(graphs) == 1 and count >= 2 * LEAST and 2 * count < 3 * batches:
        found.append(
            f"Hardly anything ran together: {count:,} nodes took {batches:,} batches, and {lower_bound(graphs[0]):,} "
            "is the least for what was recorded. Record the samples of a whole mini-batch in one graph before a value "
            "is read."
        )
    return found


def _read_one_by_one(batches: int, count: int, graphs: Sequence[TypedGraph], whole: Callable[[], TypedGraph]) -> str:
    """Values that were read before what could have run with them was recorded."""
    if len(graphs) < READS or count >= FEW * batches:
        return ""
    least = lower_bound(whole())
    if batches - least < LEAST or batches < 2 * least:
        return ""
    return (
        f"Values were read {len(graphs):,} times, each before the next sample was recorded: {batches:,} batches of "
        f"{count / batches:.1f} nodes, where {least:,} could do. Collect what you read, the losses say, in a list, and "
        "read their sum or `eb.forward(list)` once; where a value decides what is recorded next, record a step of "
        "every sample, then read the values of all of them with one `eb.forward(list)`."
    )


def _cells_made_anew(graphs: Sequence[TypedGraph], once: Sequence[TypedGraph]) -> str:
    """Cells of one function that compute the same, each of a type of its own."""
    gain = _gain_of(graphs, map(lower_bound, once))
    if not gain:
        return ""
    found: Counter[str] = Counter()
    for graph, other in zip(graphs, once, strict=True):
        changed = graph.types != other.types
        kinds = np.union1d(graph.types[changed], other.types[changed])
        found.update(_SAME_NAME.sub("", graph.names[kind]) for kind in kinds.tolist())
    listed = _listed([f"{name} in {count:,} cells" for name, count in found.most_common()])
    return (
        f"Cells were made anew that compute the same, and do not run together: {listed}. Were each made once, {gain}. "
        "Make a cell outside of the function that is called for each sample, as a function of the module or a method, "
        "and give it what changes as arguments; one that is made anew is traced and compiled again, too."
    )


def _sizes_apart(uses: Mapping[str, Use], graphs: Sequence[TypedGraph]) -> str:
    """Types that differ only in the sizes of operands."""
    forms: dict[str, list[str]] = {}
    for name in uses:
        forms.setdefault(_without_sizes(name), []).append(name)
    batches = {form: sum(uses[name].batches for name in names) for form, names in forms.items()}
    apart = {
        form: names
        for form, names in forms.items()
        if len(names) >= TYPES and sum(uses[name].nodes for name in names) < FEW * batches[form]
    }
    gain = _gain_of(graphs, [lower_bound(_merged(graph, apart)) for graph in graphs]) if apart else ""
    if not gain:
        return ""
    shown = []
    for form in sorted(apart, key=lambda form: -batches[form]):
        names = apart[form]
        examples = "; ".join(short(", ".join(_SHAPE.findall(name)), 24) for name in names[:3])
        shown.append(f"{form} in {len(names):,} sizes ({examples}{'; ...' if len(names) > 3 else ''})")
    return (
        f"Sizes that differ from sample to sample keep nodes apart: {_listed(shown)}. Were each of one size, {gain}. "
        "Keep what varies in lists of vectors (a sum, mean, max or logsumexp of a list is one type whatever its "
        "length), or pad to a few sizes."
    )


def _without_sizes(name: str) -> str:
    """A type's name without the sizes of its operands: `matmul([?,?], [?])`; a parameter keeps its own."""
    form = _SHAPE.sub(lambda shape: re.sub(r"\d+", "?", shape[0]), name)
    return re.sub(r"(\[[?,]*\])(?:, \1)+", r"\1, ...", form) if name.startswith(_PLACERS) else form


def _merged(graph: TypedGraph, apart: Mapping[str, Sequence[str]]) -> TypedGraph:
    """The graph with one type for each form."""
    names = [form if (form := _without_sizes(name)) in apart else name for name in graph.names]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    types = np.array([numbers[name] for name in names], np.int32)[graph.types]
    return TypedGraph(types, graph.indptr, graph.operands, tuple(numbers))


def _put_together_one_by_one(graphs: Sequence[TypedGraph]) -> str:
    """Totals, each of whose nodes waits for the one before."""
    totals = [_totals(graph) for graph in graphs]
    gain = _gain_of(graphs, [least for least, *_ in totals])
    if not gain:
        return ""
    _, longest, name = max(totals, key=lambda one: one[1])
    function = _OF_LISTS[name.partition("(")[0]]
    return (
        f"A total grows by one operand at a time: {longest:,} nodes {name} in a row, each a batch. Were it {function} "
        f"of a list, {gain}. Collect the operands (losses, say) in a list, and write total = {function}(list) once."
    )


def _totals(graph: TypedGraph) -> tuple[int, int, str]:
    """Find totals: nodes of one type, each an operand of the next and of nothing else.

    Returns:
        The lower bound with one node for each; how many nodes the longest takes, and their type.
    """
    n, types, operands = len(graph), graph.types, graph.operands
    grows = np.array([_GROWING.fullmatch(name) is not None for name in graph.names], bool)
    users = np.repeat(np.arange(n), np.diff(graph.indptr))
    only = np.bincount(operands, minlength=n)[operands] == 1
    joins = only & grows[types[users]] & (types[operands] == types[users])
    last = np.arange(n)  # of the total that a node is part of
    last[operands[joins]] = users[joins]
    while (last != last[last]).any():
        last = last[last]
    sizes = np.bincount(last, minlength=n)
    if sizes.max(initial=0) < LEAST:
        return lower_bound(graph), 0, ""
    is_part, is_last = sizes[last] >= LEAST, last == np.arange(n)
    names = (*graph.names, *(f"{name} of a list" for name in graph.names))
    of_lists = (types + len(graph.names) * is_part).astype(np.int32)
    least = bound_without(TypedGraph(of_lists, graph.indptr, operands, names), is_part & ~is_last)
    longest = int(sizes.argmax())
    return least, int(sizes[longest]), graph.names[types[longest]]


def bound_without(graph: TypedGraph, free: np.ndarray) -> int:
    """The lower bound of a graph some of whose nodes take no batch."""
    types = np.where(free, len(graph.names), graph.types).astype(np.int32)
    paths = longest_paths(graph.indptr, graph.operands, graph.topological, free)
    marked = TypedGraph(types, graph.indptr, graph.operands, (*graph.names, "free"))
    return lower_bound(marked) - int(paths.max(initial=0))


def _gain_of(graphs: Sequence[TypedGraph], others: Iterable[int]) -> str:
    """Describe what graphs with other lower bounds would save; empty if that is not worth a sentence."""
    bound, least = sum(map(lower_bound, graphs)), sum(others)
    if bound - least < LEAST or 4 * least > 3 * bound:
        return ""
    return f"{least:,} batches could do instead of {bound:,}"


def _listed(found: Sequence[str]) -> str:
    return "; ".join(found[:3]) + (f" and {len(found) - 3} others" if len(found) > 3 else "")
