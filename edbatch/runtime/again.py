"""What a graph has computed, once more: with inputs and parameters as they are now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from edbatch.graph.node_type import TYPES, intern
from edbatch.graph.sources import INPUT, ZEROS
from edbatch.graph.spec import spec_of
from edbatch.runtime.evaluation import Evaluation


def begin_again(evaluation: Evaluation, inputs: list[Any], given: Mapping[int, Any]) -> tuple[list[int], list[int]]:
    """What was recorded, to be recorded anew: types and integers, see `Columns`; the evaluation is over.

    Nodes keep their ids: where parts of cells were, that were split off when these ran, there are zeros.

    Args:
        evaluation: which has taken over all nodes, and has kept them.
        inputs: arrays of the input nodes that have not run, found by payload; then of all.
        given: by the id of an input node another array.
    """
    types: list[int] = []
    args: list[int] = []
    arrays: list[Any] = []
    filler = intern(ZEROS, (), (), spec_of((), np.dtype(np.float32))).id
    for first, kinds, integers in evaluation.recorded:
        types += [filler] * (first - len(types))
        at = len(args)
        args += _listed(integers)
        for node, kind in enumerate(_listed(kinds), first):
            type = TYPES[kind]
            if type.op is INPUT:
                if node in given:
                    found = given[node]
                else:
                    found = np.asarray(evaluation.value(node)) if node < evaluation.done else inputs[args[at]]
                args[at] = len(arrays)
                arrays.append(found)
            at += type.n_args if type.n_args >= 0 else args[at] + 1
            types.append(kind)
    evaluation.release(whole=True)
    inputs[:] = arrays
    return types, args


def _listed(integers: Any) -> list[int]:
    return integers if isinstance(integers, list) else integers.tolist()
