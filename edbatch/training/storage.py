"""Updating parameters as they lie in memory: from one end of their storage to the other, or row by row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from edbatch.graph.model.parameters import LookupParameters, Parameter
from edbatch.kernels.language.given import PLACE, filled, given_of
from edbatch.training.arrays import as_stored, in_rows
from edbatch.training.rule import CONSTANTS, GRADIENT, PARAMETER, Rule, kernel_of


class Storage:
    """The array that a parameter, or a stack of them, owns, with what an optimizer remembers of each entry.

    Attributes:
        slots: for each slot of the rule an array like the owner's. All that is remembered of a row of a table, or of
            any other storage as a whole, lies side by side.
    """

    def __init__(self, owner: Parameter, rule: Rule) -> None:
        self.owner = owner
        array = owner.array
        self._array = ref(array)
        rows = len(array) if isinstance(owner, LookupParameters) else 1
        state = owner.device.backend.allocate((rows, len(rule.slots), array.size // rows), owner.dtype)
        self.slots = [as_stored(state[:, number], array) for number in range(len(rule.slots))]
        self._rule = rule
        self._calls: dict[Parameter, Call] = {}  # of the owner and its parts

    @property
    def is_right(self) -> bool:
        """Whether the array is where it was."""
        return self.owner.array is self._array()

    def take_over(self, other: Storage) -> None:
        """Copy what was remembered of a parameter in another storage, whose place this one takes, or of a part."""
        for number, slot in enumerate(other.slots):
            self.slot(number, other.owner)[...] = slot

    def slot(self, number: int, parameter: Parameter) -> Any:
        """What one slot holds of the owner or of a part of it; of the parameter's shape, to read or to write to."""
        return self.slots[number] if parameter is self.owner else self.slots[number][parameter.rows]

    def call(self, parameter: Parameter) -> Call:
        """What runs the rule over all that has a gradient of the owner or a part of it."""
        call = self._calls.get(parameter)
        if call is None:
            slots = [self.slot(number, parameter) for number in range(len(self.slots))]
            call = self._calls[parameter] = Call(self._rule, parameter, slots)
        return call


class Call:
    """A rule's kernel for a parameter, whose array and slots stay where they are, and what it is given in all updates.

    Attributes:
        kernel, width, given: see `Backend.call`.
        table: the parameter, if it is a table, of which the rows that have a gradient are updated.
    """

    def __init__(self, rule: Rule, parameter: Parameter, slots: Sequence[Any]) -> None:
        self._parameter, backend = parameter, parameter.device.backend
        self.table = parameter if isinstance(parameter, LookupParameters) else None
        arrays = [parameter.array, *slots[:1]]
        lines = [in_rows(array) if self.table is None else array.reshape(len(array), -1) for array in arrays]
        self._n, width = lines[0].shape
        places = [(0, 0, 0), (0, lines[0].strides[0], 0)]
        places += [(backend.address(array), array.strides[0], 0) for array in lines]
        begins = [backend.address(slot) // slot.itemsize for slot in slots]
        self.kernel = kernel_of(rule, parameter.dtype.name, long=self.table is None)
        self.given = np.append(0, filled(self.kernel, [width], places, columns=[begin - begins[0] for begin in begins]))
        self.width, first = width, 1 + given_of(self.kernel).places
        self._constants, self._gradient = first + PLACE * CONSTANTS, first + PLACE * GRADIENT
        self._lists = slice(first + PLACE * PARAMETER + PLACE - 1, first + PLACE * len(places), PLACE)

    def give_constants(self, constants: Any) -> None:
        """Have the rule's constants, an array of the parameter's dtype that is kept by the caller."""
        self.given[self._constants] = self._parameter.device.backend.address(constants)

    def give_gradient(self) -> tuple[int, Any]:
        """Have the gradient where it is now; how many rows are updated, and what is to be kept meanwhile."""
        given, address = self.given, self._parameter.device.backend.address
        if self.table is None:
            gradient = self._parameter.gradient_array()
            given[self._gradient] = address(gradient)
            return self._n, gradient
        found = self.table.gradient_rows()
        assert found is not None
        numbers = found[0].astype(np.int32)
        rows, gradient = self.table.device.backend.from_host(numbers, "C"), found[1].reshape(len(numbers), -1)
        given[self._lists], given[self._gradient] = address(rows), address(gradient)
        return len(gradient), (rows, gradient)


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
