"""A cell's body as the layout planner sees it: variables, and batches that want their operands side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from edbatch.graph.cell.batches import is_product, partly_read
from edbatch.graph.cell.body import Body, Value, parameter_in
from edbatch.graph.cell.stacking import space_of
from edbatch.graph.cell.trace import ARGUMENT
from edbatch.graph.op import Kind
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec
from edbatch.graph.views import columns_of
from edbatch.memory.layout import BatchedOp, Variable

# What copying an entry costs where not all operands can lie side by side: products would become several, and
# concatenations a copy; element-wise ops can as well run one by one.
PRODUCT, CONCATENATION, ELEMENTWISE = 100, 10, 1


@dataclass
class Model:
    """What the planner is given.

    Attributes:
        variables, ops: see `plan_layout`. The ops are the body's batches in order, then its concatenations, then what
            only says how variables lie that are not free to move.
        roles: per variable: argument, intermediate, output, constant or parameter; "copy" of a concatenation, which
            is stored only if its operands do not lie side by side; "part" of what is no storage of its own.
        parameters: the variables that are parameters.
        concatenations: per op that is one, the variable.
        copied: concatenations that no layout makes a view: what they put side by side, and why not.
    """

    variables: list[Variable] = field(default_factory=list)
    ops: list[BatchedOp] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)
    parameters: dict[ParameterSpec, int] = field(default_factory=dict)
    concatenations: dict[int, int] = field(default_factory=dict)
    copied: dict[int, tuple[list[int], str]] = field(default_factory=dict)
    n_batches: int = 0

    def add(self, name: str, size: int, space: str, role: str) -> int:
        """A new variable; its number."""
        self.variables.append(Variable(name, size, space))
        self.roles.append(role)
        return len(self.variables) - 1

    def ordered(self, name: str, variables: Sequence[int]) -> None:
        """These lie side by side in this order, whatever is planned."""
        if len(variables) > 1:
            self.ops.append(BatchedOp(name, tuple(variables), (), ordered=True, cost=PRODUCT**2))


def describe(body: Body, batches: Sequence[Sequence[int]], arguments: Sequence[str]) -> Model:
    """The variables of a body and its batches, as operations on them.

    Arguments, intermediates and outputs lie in a row per call. Parameters lie in the space of those that they can be
    stacked with; a stack that is there already is a space whose order is given. So are the slices of one value, which
    lies in one piece. Concatenations want their operands side by side, in their order: then they are that memory.
    """
    model = Model(n_batches=len(batches))
    nodes = _add_nodes(model, body, arguments)
    views = _add_views(model, body, nodes)
    for node in body.nodes:
        for value in node.operands:
            spec = parameter_in(body.nodes, value)
            if spec is not None and spec not in model.parameters:
                model.parameters[spec] = model.add(spec.name, spec.size, space_of(spec), "parameter")

    def variable(operand: Value) -> int:
        spec = parameter_in(body.nodes, operand)
        if spec is not None:
            return model.parameters[spec]
        return nodes[operand.node] if operand.view is None else views[operand]

    for batch in batches:
        members = [body.nodes[number] for number in batch]
        name = members[0].type.op.name + (f" x{len(batch)}" if len(batch) > 1 else "")
        columns = zip(*[node.operands for node in members], strict=True)
        operands = tuple([tuple(map(variable, column)) for column in columns])
        cost = PRODUCT if is_product(body, members[0]) else ELEMENTWISE
        model.ops.append(BatchedOp(name, tuple(nodes[number] for number in batch), operands, cost=cost))
    partly = partly_read(body)
    for number, node in enumerate(body.nodes):
        if node.type.op.places is None:
            continue
        whole, placed = nodes[number], tuple(map(variable, node.operands))
        name = model.variables[whole].name
        if dict(node.type.attributes).get("axis") != 0:
            model.copied[whole] = list(placed), "its parts alternate in memory"
        elif number in partly:
            model.copied[whole] = list(placed), "a part of it is read"
        elif len(set(placed)) < len(placed):
            model.copied[whole] = list(placed), "it has a part twice"
        else:
            space = f"parts of {name}"
            sizes = [model.variables[operand].size for operand in placed]
            parts = tuple(model.add(f"{name}.{at}", size, space, "part") for at, size in enumerate(sizes))
            model.concatenations[len(model.ops)] = whole
            model.ops.append(BatchedOp(name, parts, (placed,), ordered=True, cost=CONCATENATION))
    _fix_slices(model, views)
    _fix_stacks(model)
    return model


def _add_nodes(model: Model, body: Body, arguments: Sequence[str]) -> list[int]:
    """A variable for every node, named after its op; -1 for parameters that are read as they are."""
    returned = {value.node for value in body.outputs}
    looked_at = returned | {value.node for node in body.nodes for value in node.operands if value.view is not None}
    others = [node.type.op is PARAMETER and number not in looked_at for number, node in enumerate(body.nodes)]
    uses = Counter(node.type.op.name for node, other in zip(body.nodes, others, strict=True) if not other)
    seen: Counter[str] = Counter()
    names = iter(arguments)
    numbers = []
    for number, (node, other) in enumerate(zip(body.nodes, others, strict=True)):
        if other:
            numbers.append(-1)
            continue
        op = node.type.op
        seen[op.name] += 1
        name = op.name + (str(seen[op.name]) if uses[op.name] > 1 else "")
        space = "row"
        if op is ARGUMENT:
            name, role = next(names), "argument"
        elif op.kind is Kind.SOURCE:
            space, role = "constants", "constant"
        elif op.places is not None:
            space, role = f"copy in {name}", "copy"
        else:
            role = "output" if number in returned else "intermediate"
        numbers.append(model.add(name, node.type.out.size, space, role))
    return numbers


def _add_views(model: Model, body: Body, nodes: Sequence[int]) -> dict[Value, int]:
    """A variable for every slice that is read: of one space if they are disjoint slices of one value."""
    viewed: dict[int, dict[Value, tuple[int, int] | None]] = {}
    for node in body.nodes:
        for value in node.operands:
            if value.view is not None:
                viewed.setdefault(value.node, {})[value] = columns_of(value.view)
    variables: dict[Value, int] = {}
    for number, places in viewed.items():
        name, size = model.variables[nodes[number]].name, model.variables[nodes[number]].size
        ranges = sorted({place for place in places.values() if place is not None and place != (0, size)})
        overlapping = {place for left, right in pairwise(ranges) if sum(left) > right[0] for place in (left, right)}
        made: dict[tuple[int, int], int] = {(0, size): nodes[number]}  # what is only reshaped is the value itself
        for place in ranges:
            if place not in overlapping:
                made[place] = model.add(f"{name}[{place[0]}:{sum(place)}]", place[1], f"slices of {name}", "part")
        for value, found in places.items():
            assert value.view is not None
            if found in made:
                variables[value] = made[found]
            else:
                space = f"view {len(model.variables)} of {name}"
                variables[value] = model.add(f"a view of {name}", value.view.out.size, space, "part")
    return variables


def _fix_slices(model: Model, views: dict[Value, int]) -> None:
    """Slices lie in the order of their columns, with what nobody reads between them."""
    slices: dict[str, list[tuple[int, int, int]]] = {}
    for variable, value in {variable: value for value, variable in views.items()}.items():
        place = columns_of(value.view) if value.view is not None else None
        space = model.variables[variable].space
        if place is not None and space.startswith("slices of "):
            slices.setdefault(space, []).append((*place, variable))
    for space, found in slices.items():
        run: list[int] = []
        end = 0
        for begin, size, variable in sorted(found):
            if begin > end and run:
                run.append(model.add(f"{space}, unread", begin - end, space, "part"))
            run.append(variable)
            end = begin + size
        model.ordered(space, run)


def _fix_stacks(model: Model) -> None:
    """Parameters that are parts of a stack lie in its order, with those parts that the cell does not read."""
    read = model.parameters
    stacks: dict[ParameterSpec, tuple[ParameterSpec, ...]] = {}
    for spec in read:
        parameter = spec.parameter()
        if parameter is not None and parameter.stack is not None:
            stacks[parameter.stack.spec] = parameter.stack.parts
    for stack, parts in stacks.items():
        unread = {part: model.add(part.name, part.size, stack.name, "part") for part in parts if part not in read}
        model.ordered(stack.name, [read[part] if part in read else unread[part] for part in parts])
