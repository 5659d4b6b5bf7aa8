"""What keeps a program from batching, and what to do about it, in whole sentences.

Each sentence rests on a count of what would be saved, not on how the program looks: `lower_bound` once more for the
graph as it would be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from edbatch.policy.typed_graph import TypedGraph, lower_bound
from edbatch.runtime.advice_chains import put_together_one_by_one
from edbatch.runtime.advice_types import FEW, LEAST, Use, bound_of, cells_made_anew, types_apart

READS = 4  # values read one after the other


def advice(
    uses: Mapping[str, Use],
    graphs: Sequence[TypedGraph],
    whole: Callable[[], TypedGraph],
    once: Sequence[TypedGraph],
) -> list[str]:
    """Sentences; none where nothing is to be gained.

    Args:
        uses: by name of the type.
        graphs: what was scheduled, one after the other.
        whole: all of them as one graph.
        once: the graphs with one type for all cells that compute the same.
    """
    batches, count = sum(use.batches for use in uses.values()), sum(use.nodes for use in uses.values())
    found = [
        *_read_one_by_one(batches, count, graphs, whole),
        *cells_made_anew(graphs, once),
        *types_apart(uses, graphs),
        *put_together_one_by_one(graphs),
    ]
    if not found and len(graphs) == 1 and count >= 2 * LEAST and 2 * count < 3 * batches:
        found.append(
            f"Hardly anything ran together: {count:,} nodes took {batches:,} batches, and {bound_of(graphs):,} is the "
            "least for what was recorded. Record the samples of a whole mini-batch in one graph before a value is read."
        )
    return found


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
