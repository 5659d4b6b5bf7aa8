"""Models with the data they read, by name: what `edbatch run` and the benchmarks run."""

from __future__ import annotations

from difflib import get_close_matches

import edbatch as eb
from edbatch.models.workloads import others, sentences, trees
from edbatch.models.workloads.sentences import RARE
from edbatch.models.workloads.workload import Known, Labelled, Numbered, Workload

__all__ = ["NINE", "RARE", "WORKLOADS", "Known", "Labelled", "Numbered", "Workload", "get_workload"]

NINE = {**trees.NINE, **sentences.NINE, **others.NINE}  # those of ED-Batch (Chen et al. 2023)
WORKLOADS = {**NINE, **trees.OTHERS, **sentences.OTHERS, **others.OTHERS}


def get_workload(name: str) -> Workload:
    """The workload of this name; an EdBatchError where there is none."""
    if name not in WORKLOADS:
        alike = get_close_matches(str(name), WORKLOADS, n=1)
        known = f"did you mean {alike[0]!r}?" if alike else f"expected one of {', '.join(WORKLOADS)}"
        raise eb.EdBatchError(f"no model is named {name!r}; {known}")
    return WORKLOADS[name]
