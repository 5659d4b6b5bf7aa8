"""Updating parameters as they lie in memory: from one end of their storage to the other, or row by row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from edbatch.graph.model.parameters import LookupParameters, Parameter
from edbatch.kernels.language.given import PLACE, filled, given_of
from edbatch.training.arrays import as_stored, backend_of, in_rows
from edbatch.training.rule import CONSTANTS, GRADIENT, PARAMETER, Rule, kernel_of


class Storage:
    """The array that a parameter, or a stack of them, owns, with what an optimizer remembers of each entry.

    Args:
        owner: a parameter that is no part of another's storage.
        rule: what is done to each entry.

    Attributes:
        slots: for each slot of the rule an array like the owner's. All that is remembered of a row of a table, or of
            any other storage as a whole, lies side by side.

    Example:
        >>> import edbatch as eb
        >>> W = eb.ParameterCollection().add_parameters((2, 3), init=1.0)
        >>> storage = Storage(W, eb.Adam.rule)
        >>> len(storage.slots), storage.slot(0, W).shape
        (2, (2, 3))
    """

    def __init__(self, owner: Parameter, rule: Rule) -> None:
        self.owner = owner
        array = owner.array
        rows = len(array) if isinstance(owner, LookupParameters) else 1
        state = backend_of(owner).zeros((rows, len(rule.slots), array.size // rows), owner.dtype)
        self.slots = [as_stored(state[:, number], array) for number in range(len(rule.slots))]
        self._rule = rule
        self._calls: dict[Parameter, _Call] = {}  # of the owner and its parts

    def take_over(self, other: Storage) -> None:
        """Copy what was remembered of a parameter while it had a storage of its own; it is now a part of this one's."""
        for number, slot in enumerate(other.slots):
            self.slot(number, other.owner)[...] = slot

    def slot(self, number: int, parameter: Parameter) -> Any:
        """What one slot holds of the owner or of a part of it; of the parameter's shape, to read or to write to."""
        return self.slots[number] if parameter is self.owner else self.slots[number][parameter.rows]

    def apply(self, parameter: Parameter, constants: Any) -> None:
        """Run the rule over all that has a gradient of the owner or a part of it: the rows of a table, or everything.

        Args:
            parameter: the owner, or a part.
            constants: the rule's, an array of the parameter's dtype, where the parameter is.
        """
        call = self._calls.get(parameter)
        if call is None:
            slots = [self.slot(number, parameter) for number in range(len(self.slots))]
            call = self._calls[parameter] = _Call(self._rule, parameter, slots)
        call.run(constants)


class _Call:
    """A rule's kernel for a parameter, and all that it is given but for what is another in each update.

    Args:
        parameter: the owner of a storage, or a part of it.
        slots: its slots; these, and its array, stay where they are.
    """

    def __init__(self, rule: Rule, parameter: Parameter, slots: Sequence[Any]) -> None:
        self._parameter, backend = parameter, backend_of(parameter)
        self._table = parameter if isinstance(parameter, LookupParameters) else None
        arrays = [parameter.array, *slots[:1]]
        lines = [in_rows(array) if self._table is None else array.reshape(len(array), -1) for array in arrays]
        self._n, width = lines[0].shape
        places = [(0, 0, 0), (0, lines[0].strides[0], 0)]
        places += [(backend.address(array), array.strides[0], 0) for array in lines]
        begins = [backend.address(slot) // slot.itemsize for slot in slots]
        kernel = kernel_of(rule, parameter.dtype.name, long=self._table is None)
        self._given = filled(kernel, [width], places, columns=[begin - begins[0] for begin in begins])
        self._run = backend.prepared(kernel, width, self._given)
        first = given_of(kernel).places
        self._constants, self._gradient = first + PLACE * CONSTANTS, first + PLACE * GRADIENT
        self._lists = slice(first + PLACE * PARAMETER + PLACE - 1, first + PLACE * len(places), PLACE)
        self._seen: Any = None  # the gradient whose address is given

    def run(self, constants: Any) -> None:
        """Update all that has a gradient: the rows of a table, or everything; on a GPU, enqueue that."""
        address, given, n = backend_of(self._parameter).address, self._given, self._n
        given[self._constants] = address(constants)
        if self._table is None:
            gradient = self._parameter.gradient_array()
            if gradient is not self._seen:
                self._seen, given[self._gradient] = gradient, address(gradient)
        else:
            found = self._table.gradient_rows()
            assert found is not None
            n = len(found[0])
            rows, gradient = backend_of(self._table).from_host(found[0], "C"), found[1].reshape(n, -1)
            given[self._lists], given[self._gradient] = address(rows), address(gradient)
        self._run(n)


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
