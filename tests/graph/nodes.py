"""Nodes of any op of the table, made from its samples."""

from inspect import signature

import edbatch as eb
from edbatch.graph.list_callers import over_lists
from edbatch.graph.node_type import node_type
from edbatch.graph.op import Kind
from edbatch.graph.views import look

LONGEST = 3


def lists_of(op):
    """How many lists an op reads."""
    attributes = op.samples[0].attributes if op.samples else {}
    return len(signature(op.composite).parameters) - len(attributes) - op.singles if op.variadic else 0


def shapes_of(op, sample, length=LONGEST):
    """The shape of each operand of a node, whose lists are of this length."""
    if not op.variadic:
        return list(sample.shapes)
    of_lists = sample.shapes[op.singles : op.singles + lists_of(op)]
    return [*sample.shapes[: op.singles], *(shape for shape in of_lists for _ in range(length))]


def chosen(op, sample, number):
    """Which of the operands that a node with the longest lists has are those of a node with other lists."""
    shapes, length = shapes_of(op, sample), 1 + number % LONGEST
    if not op.variadic:
        return range(len(shapes))
    starts = range(op.singles, len(shapes), LONGEST)
    return [*range(op.singles), *(start + at for start in starts for at in range(length))]


def added(op, attributes, xs, integers=(), graph=None):
    """A node of an op, or a view."""
    if op.kind is Kind.VIEW:
        return look(xs[0], op, attributes)
    if op.variadic:
        lists, rest = lists_of(op), xs[op.singles :]
        length = len(rest) // lists
        read = tuple(rest[at * length : (at + 1) * length] for at in range(lists))
        return over_lists(op, tuple(xs[: op.singles]), read, attributes)
    specs = tuple(x.spec for x in xs)
    ids = [x.id for x in xs if isinstance(x, eb.Expression)]
    return (graph or xs[0].graph).add(node_type(op, attributes, specs), ids, list(integers))
