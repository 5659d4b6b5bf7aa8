"""What a graph has computed, once more: with inputs and parameters as they are now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from edbatch.graph.sources import INPUT
from edbatch.runtime.evaluation import Evaluation


def begin_again(evaluation: Evaluation, inputs: list[Any], given: Mapping[int, Any]) -> tuple[list[int], list[int]]:
    """What was recorded, to be recorded anew: types and integers, see `Columns`; the evaluation is over.

    Args:
        evaluation: which has taken over all nodes.
        inputs: arrays of the input nodes that have not run, found by payload; then of all.
        given: by the id of an input node another array.
    """
    nodes, types = evaluation.nodes, [bound.type for bound in evaluation.table.bound]
    recorded, args = [types[number] for number in nodes.types[: nodes.n]], nodes.args[: nodes.n_args].tolist()
    arrays: list[Any] = []
    for node, type in enumerate(recorded):
        if type.op is not INPUT:
            continue
        at = int(nodes.starts[node])
        if node in given:
            found = given[node]
        elif node < evaluation.done:
            found = np.asarray(evaluation.value(node))
        else:
            found = inputs[args[at]]
        args[at] = len(arrays)
        arrays.append(found)
    evaluation.release(whole=True)
    inputs[:] = arrays
    return [type.id for type in recorded], args
