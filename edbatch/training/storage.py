"""Updating parameters as they lie in memory: from one end of their storage to the other, or row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import numpy as np

from edbatch.graph.parameters import LookupParameters, Parameter

Rule = Callable[..., None]

ONE_ROW = np.zeros(1, np.int64)


class Storage:
    """The array that a parameter, or a stack of them, owns, with what an optimizer remembers of each entry.

    A rule is compiled code `rule(p, g, state, rows, *constants)` that sees the parameters as p [n, width], state as
    [n, slots, width], and gradients g [k, width] of the rows `rows` [k], all contiguous. A table has its own rows; any
    other storage is one long row, in the order of its memory. All slots are one array: what the compiler cannot see to
    lie apart, it checks at run time, and with many arrays it uses no vector instructions.

    Args:
        owner: a parameter that is no part of another's storage.
        slots: how many numbers are remembered for each entry.

    Example:
        >>> import edbatch as eb
        >>> W = eb.ParameterCollection().add_parameters((2, 3), init=1.0)
        >>> storage = Storage(W, slots=2)
        >>> storage.state.shape, storage.slot(0, W).shape
        ((1, 2, 6), (2, 3))
    """

    def __init__(self, owner: Parameter, slots: int) -> None:
        self.owner = owner
        array = owner.array
        rows = len(array) if isinstance(owner, LookupParameters) else 1
        self.state = np.zeros((rows, slots, array.size // rows), array.dtype)
        self._shape = array.shape
        self._order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"

    def take_over(self, other: Storage) -> None:
        """Copy what was remembered of a parameter while it had a storage of its own; it is now a part of this one's."""
        for number in range(self.state.shape[1]):
            self.slot(number, other.owner)[...] = other.slot(number, other.owner)

    def slot(self, number: int, parameter: Parameter) -> np.ndarray:
        """What one slot holds of the owner or of a part of it; of the parameter's shape, to read or to write to."""
        of_owner = self.state[:, number].reshape(self._shape, order=self._order)
        return of_owner if parameter is self.owner else of_owner[parameter.rows]

    def apply(self, rule: Rule, constants: Sequence[float]) -> None:
        """Run a rule over all that has a gradient: the rows of a table, or everything."""
        array = self.owner.array
        if isinstance(self.owner, LookupParameters):
            found = self.owner.sparse_grad()
            assert found is not None
            rows, gradient = found
            flat = array.reshape(len(array), -1)
            gradient = gradient.reshape(len(rows), -1)
        else:
            rows, flat, gradient = ONE_ROW, _row(array), _row(self.owner.grad())
        rule(flat, gradient, self.state, rows, *map(array.dtype.type, constants))

    def apply_to_part(self, part: Parameter, rule: Rule, constants: Sequence[float]) -> None:
        """Run a rule over one part of a stack: through copies, for a part of a matrix is not contiguous."""
        array = part.array
        flat = _row(array)
        slots = range(self.state.shape[1])
        state = np.empty((1, len(slots), array.size), array.dtype)
        for number in slots:
            state[0, number] = _row(self.slot(number, part))
        rule(flat, _row(part.grad()), state, ONE_ROW, *map(array.dtype.type, constants))
        array[...] = flat.reshape(array.shape, order="F")
        for number in slots:
            self.slot(number, part)[...] = state[0, number].reshape(array.shape, order="F")


def _row(array: np.ndarray) -> np.ndarray:
    """The entries in the order of their memory, [1, size]; a copy only of what is not contiguous."""
    return array.ravel(order="K").reshape(1, -1)


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
