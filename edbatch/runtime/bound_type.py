"""A type that is ready to run."""

from __future__ import annotations

from typing import Any

from edbatch.graph.cell.body import Body
from edbatch.graph.cell.entry import CellOp
from edbatch.graph.cell.type_body import body_of_type, columns_of_type
from edbatch.graph.node_type import NodeType
from edbatch.graph.op import Kind
from edbatch.graph.options import current_options
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec
from edbatch.kernels.backend import Backend
from edbatch.memory.plan.windows import Windows
from edbatch.runtime.compile.list_program import ListProgram, forward_of
from edbatch.runtime.compile.program import FORWARD, Program
from edbatch.runtime.compile.structure import structure_of


class BoundType:
    """One type, ready to run: what computes it, and where its results go.

    Attributes:
        window: plain window of the results.
        derivatives: what has been compiled to go back through it; see `runtime.compile.derivatives`.
    """

    __slots__ = ("_backend", "_programs", "derivatives", "type", "window")

    def __init__(self, type: NodeType, windows: Windows, backend: Backend) -> None:
        self.type = type
        self.window = windows.plain(type.out.shape, type.out.dtype)
        self._backend = backend
        self._programs: dict[bool, Program | ListProgram] = {}  # by whether they are plain
        if type.op.equations is not None:
            self._programs = dict.fromkeys((False, True), forward_of(type, backend))
        elif type.op.composite is not None and not (structure := structure_of(type).structure).is_open:
            body_of_type(type)  # where it cannot be opened, nothing has changed so far
            structure.is_open = structure.is_ours
        self.derivatives: dict[Any, Any] = {}

    def program(self) -> Program | ListProgram | None:
        """What computes it under the options in force; None of a source."""
        plain, type = current_options().plain, self.type
        if plain not in self._programs and type.op.kind is not Kind.SOURCE:
            self._programs[plain] = Program(type, FORWARD, _body, self._backend)
        return self._programs.get(plain)


def _body(type: NodeType) -> tuple[Body, tuple[int, ...]]:
    return body_of_type(type)[0], columns_of_type(type)


def holds_parameters(type: NodeType) -> bool:
    """Whether nodes of a type read parameters."""
    if isinstance(type.op, CellOp):
        return any(holds_parameters(node.type) for node in type.op.body.nodes)
    return type.op is PARAMETER or any(isinstance(operand, ParameterSpec) for operand in type.operands)
