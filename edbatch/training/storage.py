"""Updating parameters as they lie in memory: from one end of their storage to the other, or row by row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from edbatch.graph.parameters import LookupParameters, Parameter
from edbatch.kernels.rule import Rule
from edbatch.training.arrays import as_stored, backend_of, one_row, order_of, zeros


class Storage:
    """The array that a parameter, or a stack of them, owns, with what an optimizer remembers of each entry.

    A rule sees the parameters as p [n, width], the state as [n, slots, width], and gradients g [k, width] of some rows,
    all contiguous. A table has its own rows; any other storage is one long row, in the order of its memory.

    Args:
        owner: a parameter that is no part of another's storage.
        rule: what is done to each entry; of its slots there is one number for each.

    Example:
        >>> import edbatch as eb
        >>> W = eb.ParameterCollection().add_parameters((2, 3), init=1.0)
        >>> storage = Storage(W, eb.Adam.rule)
        >>> storage.state.shape, storage.slot(0, W).shape
        ((1, 2, 6), (2, 3))
    """

    def __init__(self, owner: Parameter, rule: Rule) -> None:
        self.owner = owner
        self.rule = rule
        array = owner.array
        rows = len(array) if isinstance(owner, LookupParameters) else 1
        self.state = zeros(owner, (rows, len(rule.slots), array.size // rows))
        self._shape = array.shape
        self._order = order_of(array)

    def take_over(self, other: Storage) -> None:
        """Copy what was remembered of a parameter while it had a storage of its own; it is now a part of this one's."""
        for number in range(len(self.rule.slots)):
            self.slot(number, other.owner)[...] = other.slot(number, other.owner)

    def slot(self, number: int, parameter: Parameter) -> Any:
        """What one slot holds of the owner or of a part of it; of the parameter's shape, to read or to write to."""
        of_owner = as_stored(self.state[:, number], self._shape, self._order)
        return of_owner if parameter is self.owner else of_owner[parameter.rows]

    def apply(self, constants: Sequence[float]) -> None:
        """Run the rule over all that has a gradient: the rows of a table, or everything."""
        array = self.owner.array
        if isinstance(self.owner, LookupParameters):
            found = self.owner.gradient_rows()
            assert found is not None
            rows, gradient = found
            flat = array.reshape(len(array), -1)
            gradient = gradient.reshape(len(rows), -1)
        else:
            rows, flat, gradient = None, one_row(array), one_row(self.owner.gradient_array())
        backend_of(self.owner).loops.update(self.rule, flat, gradient, self.state, rows, constants)

    def apply_to_part(self, part: Parameter, constants: Sequence[float]) -> None:
        """Run the rule over one part of a stack: through copies, for a part of a matrix is not contiguous."""
        array = part.array
        flat, order = one_row(array), order_of(array)
        slots = [self.slot(number, part) for number in range(len(self.rule.slots))]
        state = zeros(part, (1, len(slots), array.size))
        for number, slot in enumerate(slots):
            state[:, number] = one_row(slot)
        backend_of(part).loops.update(self.rule, flat, one_row(part.gradient_array()), state, None, constants)
        array[...] = as_stored(flat, array.shape, order)
        for number, slot in enumerate(slots):
            slot[...] = as_stored(state[:, number], array.shape, order)


def by_storage(parameters: Iterable[Parameter]) -> dict[Parameter, list[Parameter]]:
    """The given parameters by the owner of their storage."""
    found: dict[Parameter, list[Parameter]] = {}
    for parameter in parameters:
        found.setdefault(owner_of(parameter), []).append(parameter)
    return found


def owner_of(parameter: Parameter) -> Parameter:
    """The stack that a parameter is a part of, or the parameter itself."""
    return parameter if parameter.stack is None else parameter.stack


def is_whole(owner: Parameter, members: Sequence[Parameter]) -> bool:
    """Whether the given members are all there is in a storage."""
    return len(members) == max(1, len(owner.parts))
