"""Pass: a cell in a recurrence as up to three: what is ready before it, what it waits for, what can wait until after.

`W x` of all steps does not depend on the state: taken out of the step, it runs as one product before the first step. So
does the read-out of all states after the last.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass

from edbatch.graph.cell.body import (
    Body,
    Node,
    Nodes,
    Value,
    ancestors,
    in_a_row,
    slice_of,
    step_to,
    steps_to_outputs,
)
from edbatch.graph.cell.passes.split_concatenations import concatenated, split_concatenations
from edbatch.graph.cell.trace import ARGUMENT, argument_type
from edbatch.graph.spec import Spec
from edbatch.graph.views import NODE_BITS, VIEWS

EARLY, CORE, LATE = range(3)

# Entries of a weight whose product with what was looked up takes longer than to look up the product (half a
# microsecond).
LEAST_SHARED = 1 << 16


@dataclass(frozen=True)
class Part:
    """One of the bodies that a body is split into.

    Args:
        stage: EARLY, CORE or LATE.
        body: what it computes.
        row: the spec of its result.
        given: where its operands, then its integers come from. k: the k-th operand or integer of the whole (numbered
            after operands); -1 - p: the result of part p, which comes before it.
        codes: from outputs of the whole that it returns, by number, to the view that shows them in its row.
    """

    stage: int
    body: Body
    row: Spec
    given: tuple[int, ...]
    codes: dict[int, int]


def split_stages(body: Body, row: Spec, eager: Set[int], needed: Set[int]) -> tuple[Part, ...] | None:
    """Split a body around a recurrence.

    Early is what needs eager arguments and integers only, as far as it ends in ops that do not fuse; element-wise ops
    after them stay in the core, whose kernels take them along. A product with a concatenation is early for the vectors
    that are. Late is what no needed output needs. Either must hold
    a product with a parameter, or it stays in the core.

    Args:
        body: simplified, not yet prepared for kernels.
        row: in which its outputs lie; the last part has them there, too.
        eager: arguments that do not wait for the recurrence, by number.
        needed: outputs that the recurrence reads, by number.

    Returns:
        Two or three parts, each given what earlier ones compute; the last returns all outputs. None: nothing to split.
    """
    body = split_concatenations(body, _ready(body, eager), ancestors(body, [body.outputs[k].node for k in needed]))
    free = _free(body)
    stage = _stages(body, free, eager, needed)
    present = [EARLY] * (EARLY in stage) + [CORE] + [LATE] * (LATE in stage)
    if len(present) == 1:
        return None
    if LATE in present and any(free[body.outputs[k].node] for k in needed):
        return None  # the last part would compute for itself what others read of the core: two values, two gradients
    wanted: dict[int, list[Value]] = {s: [] for s in present}
    wanted[present[-1]] = list(body.outputs)
    if present[-1] == LATE:
        wanted[CORE] = [body.outputs[k] for k in sorted(needed)]
    for s in reversed(present[:-1]):  # and what later parts read
        read = {value.node for later in present if later > s for value in _reads(body, stage, later, wanted[later])}
        crossing = [node for node in sorted(read) if stage[node] == s]
        wanted[s] += [piece for node in crossing for piece in _pieces(body, node)]
    parts: list[Part] = []
    shown: dict[int, tuple[int, int]] = {}  # from a node to the part that returns it, and the view of it there
    for s in present:
        part, given = _part(body, free, stage, s, wanted[s], parts, shown)
        if s == present[-1]:
            parts.append(Part(s, part._replace(columns=body.columns), row, given, {}))
            break
        part, part_row = in_a_row(part)
        codes = [step >> NODE_BITS for step, _ in steps_to_outputs(part, part_row)]
        places = dict(zip(wanted[s], part.columns, strict=True))
        for node in dict.fromkeys(value.node for value in wanted[s] if stage[value.node] == s):
            pieces = _pieces(body, node)
            if places.keys() >= set(pieces):
                begin, spec = places[pieces[0]], body.nodes[node].type.out
                if [places[piece] - begin for piece in pieces] != [0, *body.nodes[node].cuts]:
                    return None  # another result is in their midst
                shown[node] = len(parts), step_to(part_row, begin, spec) >> NODE_BITS
        returned = dict(zip(sorted(needed), codes, strict=False)) if s == CORE else {}
        parts.append(Part(s, part, part_row, given, returned))
    return tuple(parts)


def may_split(body: Body) -> tuple[bool, bool, bool]:
    """Whether something is early for some eager arguments, whether something is late for some needed outputs, and
    whether there is a product of what is looked up alone. What is foreign is called once, in no part of its own."""
    if any(node.type.op.call is not None for node in body.nodes):
        return False, False, False
    free = _free(body)
    products = [number for number, node in enumerate(body.nodes) if _is_product(body, free, node)]
    arguments = range(len(body.arguments))
    factors = [concatenated(body, body.nodes[number]) or (Value(number),) for number in products]
    has_early = any(not ancestors(body, [x.node]).issuperset(arguments) for values in factors for x in values)
    needs = [ancestors(body, [value.node]) for value in body.outputs]
    has_late = any(number in a and number not in b for number in products for a in needs for b in needs)
    looked_up = _ready(body, frozenset())
    looks_up = any(
        looked_up[number] and any(spec.size >= LEAST_SHARED for spec in body.nodes[number].type.operands)
        for number in products
    )
    return has_early, has_late, looks_up


def _free(body: Body) -> list[bool]:
    """Per node, whether it depends on neither arguments nor integers: each part computes it for itself."""
    return _of_all_below(body, lambda _, node: node.type.op is not ARGUMENT and all(x >= 0 for x in node.payload))


def _ready(body: Body, eager: Set[int]) -> list[bool]:
    """Per node, whether it depends on no argument but eager ones."""
    return _of_all_below(body, lambda number, node: node.type.op is not ARGUMENT or number in eager)


def _of_all_below(body: Body, holds: Callable[[int, Node], bool]) -> list[bool]:
    """Per node, whether something holds of it and of all that it needs."""
    found: list[bool] = []
    for number, node in enumerate(body.nodes):
        found.append(holds(number, node) and all(found[value.node] for value in node.operands))
    return found


def _stages(body: Body, free: list[bool], eager: Set[int], needed: Set[int]) -> list[int]:
    """Per node its stage; -1 for arguments and what is free."""
    ready = _ready(body, eager)
    work = [not free[number] and node.type.op is not ARGUMENT for number, node in enumerate(body.nodes)]
    kept = ancestors(body, [body.outputs[k].node for k in needed])
    late = [number for number in range(len(work)) if work[number] and number not in kept]
    if not any(_is_product(body, free, body.nodes[number]) for number in late):
        late = []
    ends = [
        number
        for number, node in enumerate(body.nodes)
        if work[number] and ready[number] and number not in late and not node.type.op.elementwise
    ]
    early = ancestors(body, ends) if any(_is_product(body, free, body.nodes[number]) for number in ends) else set()
    lateness = set(late)
    return [
        -1 if not work[number] else LATE if number in lateness else EARLY if number in early else CORE
        for number in range(len(work))
    ]


def _is_product(body: Body, free: list[bool], node: Node) -> bool:
    """Whether a matrix that is a parameter (or computed from parameters) is multiplied with something that is not."""
    if node.type.op.name != "matmul" or all(free[value.node] for value in node.operands):
        return False
    pairs = zip(node.type.operands, node.operands, strict=True)
    return any(len(spec.shape) == 2 and free[value.node] for spec, value in pairs)


def _reads(body: Body, stage: list[int], s: int, wanted: list[Value]) -> list[Value]:
    operands = [value for number, node in enumerate(body.nodes) if stage[number] == s for value in node.operands]
    return operands + wanted


def _pieces(body: Body, node: int) -> list[Value]:
    """What a part returns of a node: of several that were merged each, for gradients may flow into some of them."""
    out, cuts = body.nodes[node].type.out, body.nodes[node].cuts
    if not cuts:
        return [Value(node)]
    return [slice_of(body, node, begin, end) for begin, end in zip((0, *cuts), (*cuts, out.size), strict=True)]


def _part(
    body: Body,
    free: list[bool],
    stage: list[int],
    s: int,
    wanted: list[Value],
    parts: list[Part],
    shown: dict[int, tuple[int, int]],
) -> tuple[Body, tuple[int, ...]]:
    """The body of one stage that returns `wanted`, and what it is given."""
    members = {number for number in range(len(stage)) if stage[number] == s}
    read = {value.node for value in _reads(body, stage, s, wanted)}
    members |= {number for number in ancestors(body, [n for n in read if free[n]]) if free[number]}
    used_parts = sorted({shown[node][0] for node in read if stage[node] not in (s, -1)})
    used_arguments = [number for number in range(len(body.arguments)) if number in read]
    specs = [parts[p].row for p in used_parts] + [body.arguments[number] for number in used_arguments]
    nodes = Nodes(Node(argument_type(k, spec), ()) for k, spec in enumerate(specs))
    new = {node: Value(used_parts.index(p), VIEWS[code]) for node, (p, code) in shown.items() if p in used_parts}
    new |= {number: Value(len(used_parts) + k) for k, number in enumerate(used_arguments)}
    integers: dict[int, int] = {}
    for number in sorted(members):
        node = body.nodes[number]
        payload = tuple(x if x >= 0 else -1 - integers.setdefault(-1 - x, len(integers)) for x in node.payload)
        new[number] = nodes.add(node._replace(operands=nodes.moved(node.operands, new), payload=payload))
    outputs = nodes.moved(wanted, new)
    made = Body(tuple(specs), tuple(nodes), outputs, len(integers))
    given = (*(-1 - p for p in used_parts), *used_arguments, *(len(body.arguments) + k for k in integers))
    return made, given
