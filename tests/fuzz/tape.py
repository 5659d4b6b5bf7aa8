"""An eager tape in float64: values are computed where they are written, gradients pulled back op by op.

A parameter may not change while there is something that a lazy graph would still have to compute, or go back through:
such programs raise `ValueError`. So do those that compute a NaN, read or not, or have one in a gradient, in a graph
that checks for it.
"""

import numpy as np

from tests.fuzz.definitions import DEFINITIONS
from tests.fuzz.rounding import is_exact, rounded
from tests.fuzz.shapes import FITS

_graphs = []  # those that are open, the innermost last


def current():
    return _graphs[-1]


def is_open():
    return bool(_graphs)


class Rows(list):
    """Expressions as one array: an op on it is of each."""

    def __getitem__(self, key):
        if isinstance(key, list):
            return Rows(self[at] for at in key)
        return Rows(super().__getitem__(key)) if isinstance(key, slice) else super().__getitem__(key)


class Operand:
    """What expressions and parameters share."""

    __array_ufunc__ = None  # NumPy leaves `array * operand` to us

    @property
    def shape(self):
        return self.data.shape

    def value(self):
        return np.array(self.data)


class Parameter(Operand):
    """An array that is learned, or a table, and the gradient that has come."""

    def __init__(self, data):
        self.data, self.graphs = np.array(data, np.float64), set()
        self.zero_grad()

    def set_value(self, value):
        for graph in self.graphs:
            graph.end()
        self.data = np.array(value, np.float64)

    def grad(self):
        return np.array(self.gradient)

    def gradient_in(self, found):
        return np.array(found.get(self, np.zeros(self.shape)))

    def zero_grad(self):
        self.gradient, self.has_grad = np.zeros(self.shape), False

    is_table = False

    def node(self):
        """The one value of the current graph that is this parameter."""
        return current().constant((self, self.data.tobytes()), lambda: Expression(self.data, ((self, lambda g: g),)))


class Expression(Operand):
    """A value of a graph, and what pulls gradients back from it.

    Attributes:
        edges: (operand, gradient of this -> gradient of the operand).
        root: the value that this is a view of; itself, if it is none.
        look: from an array like the root's to this view of it.
    """

    def __init__(self, data, edges=(), view_of=None, look=None):
        self.data, self.edges, self.graph = np.asarray(data, np.float64), edges, current()
        self.root, self.look = self, lambda array: array
        if view_of is not None:
            self.root, self.look = view_of.root, lambda array: look(view_of.look(array))
        for operand, _ in edges:
            if isinstance(operand, Parameter):
                operand.graphs.add(self.graph)
        if self.graph.check_nan and is_exact() and np.isnan(self.data).any():
            raise ValueError("a NaN")
        self.graph.tape.append(self)
        self.graph.pending = True

    def __len__(self):
        return len(self.data)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __await__(self):
        return (yield self)

    def value(self):
        self.graph.run()
        return super().value()

    def backward(self, gradient=None):
        backward([self], [np.ones(()) if gradient is None else gradient])

    def gradient(self):
        """Of a view: that part of the root's."""
        if self.graph.ended:
            raise ValueError("parameters have changed")
        return self.gradient_in(self.graph.gradients)

    def gradient_in(self, found):
        """Among those of a way back."""
        return np.array(self.look(found.get(self.root, np.zeros(self.root.shape))))


class Graph:
    """The expressions in the order in which they were made.

    Attributes:
        check_nan: whether a NaN is an error.
        training: whether dropout drops; what is in force when a graph is made.
        pending: whether something has been recorded since it ran.
        ended: whether parameters have changed since.
    """

    training = True

    def __init__(self, policy=None, dtype="float32", check_nan=False, **_):
        self.training, self.pending, self.ended = self.training, False, False
        self.check_nan, self.tape, self.gradients, self.constants = check_nan, [], {}, {}

    def __enter__(self):
        _graphs.append(self)
        return self

    def __exit__(self, *_):
        _graphs.pop()

    def run(self):
        """Everything has run."""
        self.pending = False

    def end(self):
        """Parameters change: what goes back after that would be of neither value."""
        if self.pending:
            raise ValueError("values would be computed with other parameters than they were recorded with")
        self.ended = bool(self.tape)

    def constant(self, key, make):
        """The one value under a key."""
        if key not in self.constants:
            self.constants[key] = make()
        return self.constants[key]

    def gone_back(self, outputs, gradients):
        """The gradients that flow from outputs; None is that of none."""
        if self.ended:
            raise ValueError("parameters have changed")
        self.run()
        found = {}
        for x, gradient in zip(outputs, gradients, strict=True):
            for one, given in zip(x, gradient, strict=True) if isinstance(x, Rows) else [(x, gradient)]:
                if gradient is not None:
                    self.give(found, one, np.asarray(given, np.float64))
        for x in reversed(self.tape):
            if x in found:
                for operand, pull in x.edges:
                    self.give(found, operand, pull(found[x]))
        return found

    def give(self, found, operand, gradient):
        """Add up, and take the sum over axes that were broadcast."""
        if gradient is None:
            return
        gradient = np.broadcast_to(gradient, np.broadcast_shapes(np.shape(gradient), operand.shape))
        gradient = gradient.sum(tuple(range(gradient.ndim - len(operand.shape))))
        axes = tuple(at for at, size in enumerate(operand.shape) if size != gradient.shape[at])
        gradient = rounded(gradient.sum(axes, keepdims=True))
        found[operand] = found.get(operand, 0.0) + gradient
        if self.check_nan and is_exact() and np.isnan(found[operand]).any():
            raise ValueError("a NaN in a gradient")


def backward(outputs, gradients):
    """An error changes nothing."""
    graph = _graph_of(outputs)
    graph.gradients = graph.gone_back(outputs, gradients)
    for operand, gradient in graph.gradients.items():
        if isinstance(operand, Parameter):
            operand.gradient, operand.has_grad = operand.gradient + gradient, True


def gradients(outputs, of, gradients):
    found = _graph_of(outputs).gone_back(outputs, gradients)
    return [x.gradient_in(found) for x in of]


def _graph_of(outputs):
    return (outputs[0][0] if isinstance(outputs[0], Rows) else outputs[0]).graph


def apply(name, operands, **attributes):
    """An op on operands: its value now, and how gradients will go back."""
    if operands and isinstance(operands[0], Rows):
        return Rows(apply(name, (x, *operands[1:]), **attributes) for x in operands[0])
    op = DEFINITIONS[name]
    plain = [isinstance(x, int | float) for x in operands]  # it is what it is: 2 or 0.5
    operands = [x if isinstance(x, Operand) else Expression(x) for x in operands]
    if op.view and isinstance(operands[0], Parameter):
        operands = [operands[0].node()]
    if name in FITS and not FITS[name](*(x.shape for x in operands), **attributes):
        raise ValueError(f"{name}: shapes that do not fit")
    arrays = [rounded(x.data, op.exact or number) for x, number in zip(operands, plain, strict=True)]
    result = rounded(op.value(*arrays, **attributes), op.exact)

    def pull(number):
        def one(g):
            found = op.pull(rounded(g, op.exact), result, *arrays, **attributes)[number]
            return None if found is None else rounded(found, op.exact)

        return one

    edges = tuple((x, pull(number)) for number, x in enumerate(operands))
    if op.view:
        return Expression(result, edges, operands[0], lambda array: op.value(array, **attributes))
    return Expression(result, edges)
