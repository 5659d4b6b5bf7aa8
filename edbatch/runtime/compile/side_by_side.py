"""Programs that only put vectors side by side, maybe thousands: without a step, or a search, for each."""

from __future__ import annotations

import numpy as np

from edbatch.graph.node_type import NodeType
from edbatch.graph.spec import ParameterSpec
from edbatch.kernels.program import ARGUMENT_OF, POSITION, SLOT, Move, Storage, step_table
from edbatch.runtime.compile.linked import Fixed, Linked
from edbatch.runtime.compile.steps import columns_of_operands


def vectors_side_by_side(type: NodeType) -> Linked | None:
    """The program of a type that puts vectors side by side: each is gathered where it goes; None of any other type."""
    if type.op.places is None or not all(x.__class__ is not ParameterSpec and len(x.shape) == 1 for x in type.operands):
        return None
    columns = columns_of_operands(type)
    if columns is None:
        return None
    slots, arguments = np.zeros(len(columns), SLOT), np.zeros(len(columns), ARGUMENT_OF)
    slots["storage"] = Storage.RESULT
    slots["column"], arguments["entries"] = np.array(columns, np.int64).T
    arguments["slot"] = np.arange(len(columns))
    arguments["move"] = Move.ALWAYS
    places, fixed = np.zeros(0, POSITION), Fixed((), (), (), (), ())
    return Linked(slots, arguments, step_table([]), places, 0, type.out.size, 1, type.out.dtype.itemsize, fixed)
