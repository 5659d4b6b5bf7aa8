"""Bodies of cells for tests of single passes, and what they compute, node by node."""

import numpy as np

from edbatch.graph.body import operands_of
from edbatch.graph.cell_trace import Arguments, run
from edbatch.graph.expression import Expression
from edbatch.graph.node_type import parameter_array
from edbatch.graph.op import Kind
from edbatch.graph.spec import ParameterSpec, spec_of
from edbatch.graph.trace import ARGUMENT, Trace
from edbatch.graph.watch import Watch
from edbatch.kernels.numpy_backend import NumPyBackend
from edbatch.runtime.type_table import kernel_of, places_of
from tests.arrays import on_host


def trace(function, *shapes, dtype="float64"):
    """The body of a function of arrays of these shapes, as it is recorded."""
    outside = Trace("outside", dtype)
    arguments = [Expression(outside, at, spec_of(shape, np.dtype(dtype))) for at, shape in enumerate(shapes)]
    labels = tuple(str(at) for at in range(len(arguments)))
    return run("a cell", function, Arguments((), tuple(arguments), labels, 0, {}), outside, Watch())[0]


def compute(body, *arguments):
    """The outputs of one call, with every node's own kernel."""
    arrays = []
    given = iter(arguments)

    def seen(operand):
        if isinstance(operand, ParameterSpec):
            return on_host(parameter_array(operand))[None]
        array = arrays[operand.node]
        return array if operand.view is None else operand.view.look(array)

    for node in body.nodes:
        out = np.full((1, *node.type.out.shape), np.nan, node.type.out.dtype)
        if node.type.op is ARGUMENT:
            out[0] = next(given)
        elif node.type.op.name == "parameter":
            out[0] = on_host(parameter_array(node.type.attributes[0][1]))
        elif node.type.op.kind is Kind.SOURCE:
            out[0] = node.value if node.value is not None else float(node.type.op.name == "ones")
        elif node.type.op.places is not None:
            for part, operand in zip(places_of(node.type)(out), operands_of(node), strict=True):
                part[...] = seen(operand)
        elif node.type.op.variadic:
            rows = [seen(operand) for operand in operands_of(node)]
            kernel_of(node.type, NumPyBackend())(out, np.concatenate(rows), np.array([0, len(rows)], np.int32))
        else:
            kernel_of(node.type, NumPyBackend())(out, *map(seen, operands_of(node)))
        arrays.append(out)
    return [seen(value)[0] for value in body.outputs]


def names(body):
    """The ops of the nodes that compute or place."""
    return [node.type.op.name for node in body.nodes if node.type.op.kind is not Kind.SOURCE]
