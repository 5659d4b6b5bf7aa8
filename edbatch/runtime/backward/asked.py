"""The gradients that are asked for apart from those that parameters have."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.cell.stacking import ColumnRange
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.model.parameters import LookupParameters, Parameter
from edbatch.graph.spec import Spec


class Asked:
    """A request of `edbatch.gradients`, and its results.

    A parameter's gradient gathers in a stand-in, so that its own is left alone whatever happens.

    Args:
        of: parameters, expressions and arrays of expressions.
        check: called with a place and an entry that is no parameter, has it be an expression of the graph.

    Attributes:
        ids: of the expressions, by spec; found: their gradients [n, *shape], to be filled in.
    """

    def __init__(self, of: list[Any], check: Callable[[str, Any], None]) -> None:
        self._of = of
        self._stand_ins: dict[Parameter, Parameter] = {}
        self._begins: list[int] = []
        self.ids: dict[Spec, list[int]] = {}
        self.found: dict[Spec, np.ndarray] = {}
        for at, x in enumerate(of):
            if isinstance(x, Parameter):
                if x.frozen:
                    raise EdBatchError(f"gradients: {x!r} is frozen, and has no gradient")
                self._begins.append(0)
                continue
            check(f"gradients: entry {at}", x)
            ids = self.ids.setdefault(x.spec, [])
            self._begins.append(len(ids))
            ids += x.ids.tolist() if isinstance(x, ExpressionArray) else [x.id]

    @cached_property
    def _wholes(self) -> set[Parameter]:
        """The parameters, or the stacks that they are parts of, which they may have become when the graph ran."""
        return {x if x.stack is None else x.stack for x in self._of if isinstance(x, Parameter)}

    def gatherer(self, parameter: Parameter) -> Parameter | None:
        """The accumulator of the gradient of a parameter, a stack or a part of one; None: it is not asked for."""
        if isinstance(parameter, ColumnRange):  # a cell in a recurrence was split
            matrix = self.gatherer(parameter.matrix)
            return None if matrix is None else parameter.of(matrix)
        whole = parameter if parameter.stack is None else parameter.stack
        return self._stand_in(parameter) if whole in self._wholes else None

    def _stand_in(self, parameter: Parameter) -> Parameter:
        known = self._stand_ins.get(parameter)
        if known is None:
            stack = None if parameter.stack is None else self._stand_in(parameter.stack)
            known = self._stand_ins[parameter] = parameter.stand_in(stack)
        return known

    def results(self, sparse: bool, unused_as_none: bool) -> list[Any]:
        """The gradients, in the order in which they were asked for: arrays that nobody else has."""
        found = list[Any]()
        for x, begin in zip(self._of, self._begins, strict=True):
            if not isinstance(x, Parameter):
                rows = self.found[x.spec]
                found.append(rows[begin : begin + len(x)] if isinstance(x, ExpressionArray) else rows[begin])
            elif unused_as_none and not self._stand_in(x).has_grad:
                found.append(None)
            else:
                found.append(self._of_parameter(x, sparse))
        return found

    def _of_parameter(self, parameter: Parameter, sparse: bool) -> Any:
        to_host, gathered = parameter.device.backend.to_host, self._stand_in(parameter)
        if not sparse or not isinstance(gathered, LookupParameters):
            return np.array(to_host(gathered.gradient_array()))
        rows = gathered.gradient_rows()
        if rows is None:
            return np.zeros(0, np.int64), np.zeros((0, *parameter.shape[1:]), parameter.dtype)
        return rows[0].copy(), np.array(to_host(rows[1]))
