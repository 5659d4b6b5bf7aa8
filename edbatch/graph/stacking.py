"""Parameters stacked in place: several arrays that are parts of one, so that one product reads them all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edbatch.graph.parameters import Parameter
from edbatch.graph.spec import ParameterSpec


def stacked(specs: Sequence[ParameterSpec]) -> ParameterSpec | None:
    """The spec of one parameter whose rows are those of the given ones, in order.

    The given parameters become views of its storage: updating either is updating both, nothing is copied later. The
    stack lives as long as one of them.

    Args:
        specs: of vectors, or of matrices with one number of columns.

    Returns:
        None if that cannot be: a parameter occurs twice, is gone, or is part of another stack already.

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection()
        >>> a, b = model.add_parameters((1, 2), init=1.0), model.add_parameters((2, 2), init=2.0)
        >>> both = stacked([a.spec, b.spec]).parameter()
        >>> b.set_value([[3, 4], [5, 6]])
        >>> both.value().tolist()
        [[1.0, 1.0], [3.0, 4.0], [5.0, 6.0]]
    """
    members = [parameter for spec in specs if (parameter := spec.parameter()) is not None]
    if not can_stack(specs):
        return None
    if members[0].stack is not None:
        return members[0].stack.spec
    stack = Parameter("|".join(spec.name for spec in specs), np.concatenate([member.array for member in members]))
    stack.parts = tuple(specs)
    begin = 0
    for member in members:
        end = begin + len(member.array)
        member.array = stack.array[begin:end]
        member.stack = stack
        begin = end
    return stack.spec


def can_stack(specs: Sequence[ParameterSpec]) -> bool:
    """Whether `stacked` gives a parameter: all are there, each once, and free or stacked in just this order."""
    members = [spec.parameter() for spec in specs]
    if len(set(specs)) < len(specs) or None in members:
        return False
    stacks = {member.stack for member in members if member is not None}
    return stacks == {None} or all(stack is not None and stack.parts == tuple(specs) for stack in stacks)
