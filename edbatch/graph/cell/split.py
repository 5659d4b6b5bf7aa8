"""Types of cells split around a recurrence: a node of a cell's type becomes one node of each part's type."""

from __future__ import annotations

from dataclasses import dataclass

from edbatch.base.locking import lock
from edbatch.graph.cell.body import steps_to_outputs
from edbatch.graph.cell.entry import CellOp, cell_op
from edbatch.graph.cell.passes import prepare_for_kernels
from edbatch.graph.cell.passes.split_stages import CORE, EARLY, Part, split_stages
from edbatch.graph.cell.type_body import body_of_type, outputs_seen
from edbatch.graph.node_type import NodeType, intern
from edbatch.graph.views import NODE_BITS, VIEWS, steps_of, view_of


@dataclass(frozen=True)
class Split:
    """A cell's type in parts.

    Args:
        types: of the parts; the last one's results lie as those of the whole.
        parts: what they compute, and what they are given.
        core: the number of the part that the recurrence waits for.
    """

    types: tuple[NodeType, ...]
    parts: tuple[Part, ...]
    core: int


def split_type(type: NodeType, eager: frozenset[int], needed: frozenset[int]) -> Split | None:
    """A cell's type in parts, for operands that do not wait for a recurrence and outputs that it reads.

    Returns:
        None if there is nothing to split; see `passes.split_stages`.
    """
    op = type.op
    assert isinstance(op, CellOp)
    if (eager, needed) not in op.splits:
        with lock:  # the parts have one type each
            if (eager, needed) not in op.splits:
                op.splits[eager, needed] = _split(type, op, eager, needed)
    found: Split | None = op.splits[eager, needed]
    return found


def _split(type: NodeType, op: CellOp, eager: frozenset[int], needed: frozenset[int]) -> Split | None:
    plain = "passes" in op.compiled.without
    whole = op.compiled.splittable._replace(columns=op.body.columns)
    parts = split_stages(whole, type.out, eager, needed)
    if parts is None:
        return None
    types = []
    for part in parts:
        given = [op.names[k] for k in part.given if k >= 0]
        stage = "" if part.stage == CORE else "eager " if part.stage == EARLY else "lazy "
        name = f"{op.name} ({stage}{', '.join(given)})"
        body = prepare_for_kernels(part.body, plain, named=True)
        op_of_part = cell_op(name, body, is_early=part.stage == EARLY)
        types.append(intern(op_of_part, (), part.body.arguments, part.row))
    core = next(number for number, part in enumerate(parts) if part.stage == CORE)
    return Split(tuple(types), parts, core)


def in_core(type: NodeType, split: Split, code: int) -> int:
    """The view of the core that shows what view `code` shows of the whole; -1 if the core does not return it."""
    core, steps = split.parts[split.core], steps_to_outputs(body_of_type(type), type.out)
    for output in outputs_seen(type, code):
        if output in core.codes:
            found = core.codes[output]
            for op, attributes in steps_of(code)[len(steps_of(steps[output][0] >> NODE_BITS)) :]:
                view = VIEWS[found]
                seen = view_of(core.row if view is None else view.out, found, op, attributes)
                if seen is None:  # a chain of views that is too long
                    return -1
                found = seen.code
            return found
    return -1
