"""The tables of one compiled program: integers that follow from sizes, and apart from these what does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from edbatch.graph.node_type import parameter_array
from edbatch.graph.spec import ParameterSpec
from edbatch.kernels.backend import Backend

ALL_CALLS = 2**31 - 1  # of a block: lists are not cut
Parameters = tuple[
    tuple[ParameterSpec, ref[Any]], ...
]  # each with its array, which is not held: programs outlive models


class Fixed:
    """What does not follow from sizes; two are equal if they have the same kernels, and the same at all addresses.

    Attributes:
        kernels, addresses: as of a `Programs`.
        parameters, constants: the arrays that addresses are of.
    """

    def __init__(
        self, kernels: Sequence[int], addresses: Sequence[int], parameters: Parameters, constants: Sequence[Any]
    ) -> None:
        self.kernels, self.addresses = np.array(kernels, np.int64), np.array(addresses, np.int64)
        self.parameters, self._constants = parameters, tuple(constants)
        specs, constant = tuple([spec for spec, _ in parameters]), tuple(map(id, constants))
        self._key = tuple(kernels), tuple(addresses), specs, constant

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class Tables(NamedTuple):
    """What the interpreter reads of one program (see `kernels.program`).

    Attributes:
        slots, arguments, steps, places: as of a `Programs`.
        width, element_width: entries of scratch for a call, and for an element of its list.
        out: entries of a row of the result.
        least: calls that are worth a product.
        itemsize, lists: as of a `ProgramRange`.
    """

    slots: np.ndarray
    arguments: np.ndarray
    steps: np.ndarray
    places: np.ndarray
    width: int
    element_width: int
    out: int
    least: int
    itemsize: int
    lists: int
    fixed: Fixed

    def held(self) -> list[Any] | None:
        """The arrays of the parameters, to be held while the tables are read; None: some are no longer where they were.

        Tracing another cell may have stacked some.

        Raises:
            EdBatchError: a parameter is gone.
        """
        return arrays_of(self.fixed.parameters)

    def range_fields(self, backend: Backend) -> tuple[int, int, int, int, int]:
        """`calls`, `itemsize`, `width`, `element_width` and `lists` of a `ProgramRange`: a block's values have room."""
        itemsize, lists = self.itemsize, self.lists
        rows = backend.block_bytes // max(1, itemsize * (self.width + self.out))
        calls = max(self.least, rows) if lists < 0 else ALL_CALLS
        return calls, itemsize, itemsize * self.width, itemsize * self.element_width, lists


def arrays_of(parameters: Parameters) -> list[Any] | None:
    """See `Tables.held`."""
    held: list[Any] = []
    for spec, known in parameters:
        parameter = spec.parameter()
        array = parameter_array(spec) if parameter is None else parameter.array
        if array is not known():
            return None
        held.append(array)
    return held
