"""A program linked: integers that follow from sizes, and apart from these what does not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from weakref import WeakValueDictionary, ref

import numpy as np

from edbatch.base.records import words_of
from edbatch.graph.node_type import parameter_array
from edbatch.graph.spec import ParameterSpec
from edbatch.kernels.backend import Backend
from edbatch.kernels.language.analysis import Analysis, analysis_of
from edbatch.kernels.language.cuda import lanes_of
from edbatch.kernels.language.ir import Kernel
from edbatch.kernels.program import KERNEL, STEP


class Tables(NamedTuple):
    """What the interpreter reads of one program (see `kernels.program`).

    Attributes:
        slots, arguments, steps, places, kernels, addresses: as of a `Programs`.
        calls, itemsize, lists: as of an `Extent`.
        parameters: that addresses are of, each with its array there; not held, since tables outlive models.
        constants: the other arrays that addresses are of.
    """

    slots: np.ndarray
    arguments: np.ndarray
    steps: np.ndarray
    places: np.ndarray
    kernels: np.ndarray
    addresses: np.ndarray
    calls: int
    itemsize: int
    lists: int
    parameters: Sequence[tuple[ParameterSpec, ref[Any]]]
    constants: Sequence[Any]

    def held(self) -> list[Any] | None:
        """The arrays of the parameters, to be held while the tables are read; None: some are no longer where they were.

        Tracing another cell may have stacked some.

        Raises:
            EdBatchError: a parameter is gone.
        """
        return arrays_of(self.parameters)


def arrays_of(parameters: Sequence[tuple[ParameterSpec, ref[Any]]]) -> list[Any] | None:
    """See `Tables.held`."""
    held: list[Any] = []
    for spec, known in parameters:
        parameter = spec.parameter()
        array = parameter_array(spec) if parameter is None else parameter.array
        if array is not known():
            return None
        held.append(array)
    return held


ALL_CALLS = 2**31 - 1  # of a block: lists are not cut
assert STEP.names is not None
_READ = [STEP.names.index(name) for name in ("code", "kernel", "groups", "entries")]
_LANES = STEP.names.index("lanes")


class Fixed:
    """What does not follow from sizes; two are equal if they have the same kernels, and the same at all addresses.

    Attributes:
        handles: of the kernels; is_grouped: whether a group of threads may compute an entry of one.
        addresses: of parameters and constants; these: as of `Tables`.
    """

    def __init__(
        self, programs: tuple[Kernel, ...], handles: tuple[int, ...], addresses: tuple[int, ...],
        parameters: tuple[tuple[ParameterSpec, ref[Any]], ...], constants: tuple[Any, ...],
    ) -> None:  # fmt: skip
        self.analyses = [analysis_of(kernel) for kernel in programs]
        self.is_grouped = any(analysis.grouped for analysis in self.analyses)
        self.handles, self.addresses = np.array(handles, np.int64), np.array(addresses, np.int64)
        self.parameters, self.constants = parameters, constants
        self._key = handles, addresses, tuple([spec for spec, _ in parameters]), tuple(map(id, constants))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class Linked(NamedTuple):
    """A program linked.

    Attributes:
        slots, arguments, steps, places: as of `Tables`, but for the lanes of steps, which do not follow evenly.
        scratch, out: entries for a call, and of a row of the result.
        least: calls that are worth a product.
        itemsize, fixed: see there.
        element_scratch: entries for an element of a call's list.
        lists: as of an `Extent`.
    """

    slots: np.ndarray
    arguments: np.ndarray
    steps: np.ndarray
    places: np.ndarray
    scratch: int
    out: int
    least: int
    itemsize: int
    fixed: Fixed
    element_scratch: int = 0
    lists: int = -1

    def is_right(self) -> bool:
        """Whether parameters lie where they did."""
        parameters = self.fixed.parameters
        return not parameters or arrays_of(parameters) is not None

    def tables(self, backend: Backend) -> Tables:
        """What the interpreter reads."""
        steps, fixed = self.steps, self.fixed
        if fixed.is_grouped:
            words = words_of(steps)
            for at, (code, kernel, groups, entries) in enumerate(words[:, _READ].tolist()):
                if code == KERNEL:
                    words[at, _LANES] = lanes_of(fixed.analyses[kernel], groups, entries)
        rows = backend.block_bytes // max(1, self.itemsize * (self.scratch + self.out))
        calls = max(self.least, rows) if self.lists < 0 else ALL_CALLS
        return Tables(
            self.slots, self.arguments, steps, self.places, fixed.handles, fixed.addresses,
            calls, self.itemsize, self.lists, fixed.parameters, fixed.constants,
        )  # fmt: skip


_number_rows: WeakValueDictionary[tuple[Backend, np.dtype, bytes], Any] = WeakValueDictionary()


def number_row(numbers: Iterable[float], dtype: np.dtype, backend: Backend) -> Any:
    """An array [1, k] of numbers that kernels read: one for all that read the same. It is not written to."""
    with np.errstate(over="ignore"):
        row = np.array([[*numbers]]).astype(dtype)
    key = backend, dtype, row.tobytes()
    found = _number_rows.get(key)
    if found is None:
        found = _number_rows[key] = backend.from_host(row, "C")
    return found


def shape_of(analysis: Analysis, sizes: Sequence[int]) -> tuple[int, int, int, int]:
    """`groups`, `entries`, `scratch` and `lanes` of a `KernelStep`, given the sizes of a kernel's axes."""
    groups = math.prod(sizes[: analysis.kernel.outer]) if analysis.grouped else 1
    entries = math.prod(sizes) // groups
    return groups, entries, analysis.scratch_rows, lanes_of(analysis, groups, entries)
