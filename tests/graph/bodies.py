"""Bodies of cells for tests of single passes, and what they compute, node by node."""

import numpy as np

from edbatch.graph.cell.body import operands_of
from edbatch.graph.cell.trace import ARGUMENT, Trace
from edbatch.graph.cell.tracing import Arguments, run
from edbatch.graph.expression import Expression
from edbatch.graph.node_type import parameter_array
from edbatch.graph.op import Kind
from edbatch.graph.spec import ParameterSpec, spec_of
from tests.arrays import on_host
from tests.oracle import ORACLE


def trace(function, *shapes, dtype="float64"):
    """The body of a function of arrays of these shapes, as it is recorded."""
    outside = Trace("outside", dtype)
    arguments = [Expression(outside, at, spec_of(shape, np.dtype(dtype))) for at, shape in enumerate(shapes)]
    labels = tuple(str(at) for at in range(len(arguments)))
    return run("a cell", function, Arguments((), tuple(arguments), labels, 0, {}), outside)[0]


def compute(body, *arguments):
    """The outputs of one call, node by node, in NumPy."""
    arrays = []
    given = iter(arguments)

    def seen(operand):
        if isinstance(operand, ParameterSpec):
            return on_host(parameter_array(operand))
        array = arrays[operand.node]
        return array if operand.view is None else operand.view.look(array[None])[0]

    for node in body.nodes:
        if node.type.op is ARGUMENT:
            found = next(given)
        elif node.type.op.name == "parameter":
            found = on_host(parameter_array(node.type.attributes[0][1]))
        elif node.type.op.kind is Kind.SOURCE:
            found = node.value if node.value is not None else float(node.type.op.name == "ones")
        else:
            found = ORACLE[node.type.op.name](
                *map(seen, operands_of(node)), *node.payload, **dict(node.type.attributes)
            )
        arrays.append(np.array(np.broadcast_to(found, node.type.out.shape), node.type.out.dtype))
    return [seen(value) for value in body.outputs]


def names(body):
    """The ops of the nodes that compute or place."""
    return [node.type.op.name for node in body.nodes if node.type.op.kind is not Kind.SOURCE]
