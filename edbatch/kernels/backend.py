"""What a device has to have: the protocol that the backends of CPU and GPU implement.

An ARRAY of a device has NumPy's attributes and methods (shape, strides, flags; reshape, T, fill), is indexed by slices
and by arrays of the device, without a copy where NumPy makes none, and takes NumPy's operators. Whatever else is
computed is a kernel of the kernel language, or a product. What is called returns when it has begun; only what brings
something to the host waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from edbatch.kernels.language.ir import Kernel
from edbatch.memory.plan.format import Plan

if TYPE_CHECKING:  # Numba takes long to import; parameters are made without
    from edbatch.compiling.array_table import ArrayTable, HasTables
    from edbatch.kernels.tables import Memory, Programs

Array: TypeAlias = Any  # of the device
Order: TypeAlias = Literal["C", "F"]


class Lists(NamedTuple):
    """What a plan's batches index with, and the integers that they read, on the device.

    Attributes:
        indices, integers: the addresses of both; of what is not there, too.
        held: that lives as long.
    """

    indices: int
    integers: int
    held: Any


class ProgramTables(Protocol):
    """The programs of a plan's types.

    Attributes:
        directory: of all of them.
        version: another number whenever the tables are others.
    """

    directory: ArrayTable[Programs]
    version: int

    def runs_whole(self, batches: np.ndarray) -> bool:
        """Whether none of these batches is computed in several blocks, or calls a function of Python."""


class Backend(Protocol):
    """What computes on a device.

    Attributes:
        adds_in_groups: whether rows that occur several times in a list have to be known before they are added up.
        block_bytes: that the intermediates of those calls of a program may take that are computed at a time.
    """

    adds_in_groups: bool
    block_bytes: int

    # Memory

    def allocate(self, shape: int | tuple[int, ...], dtype: np.dtype, order: Order = "C", zeros: bool = True) -> Array:
        """An array of zeros, or with unspecified contents, stored by rows (order "C") or by columns ("F")."""

    def address(self, array: Array) -> int:
        """Where an array's entries begin: windows and arenas compute with it."""

    def array_at(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype) -> Array:
        """The array whose entries lie there; somebody else holds the memory."""

    def shared(self, array: Any) -> Array:
        """An array of the device; also of another library there, which shares it by DLPack."""

    def from_host(self, array: Any, order: Order = "C", out: Array | None = None) -> Array:
        """The device's array of a host's, may be that; or `out`, given its rows, which are copied there."""

    def to_host(self, array: Array) -> np.ndarray:
        """A device's array on the host; a copy or not. Waits until it is computed, and all that was begun before."""

    def lists(self, plan: HasTables[Plan], integers: np.ndarray, first: int = 0, first_integer: int = 0) -> Lists:
        """A plan's index buffer, and the integers (int32) that its batches read, on the device: those from there on."""

    # Kernels

    def handles(self, wanted: Sequence[Kernel]) -> list[int]:
        """What programs know kernels by: addresses, or whatever the device takes."""

    def call(self, kernel: int, n: int, size: int, given: np.ndarray) -> None:
        """Compute n rows of a kernel without reductions, by its handle.

        Args:
            size: entries of a row.
            given: room for n, and then what `language.given` says.
        """

    def squares(self, arrays: Sequence[Array]) -> Array:
        """The sums of squares of these arrays [entries], or of parts of each."""

    # Running

    def run_batches(
        self, first: int, stop: int, plan: HasTables[Plan], lists: Lists, memory: HasTables[Memory],
        programs: ProgramTables, scratch: int,
    ) -> None:  # fmt: skip
        """Run the batches of a plan from `first` on, up to `stop`; see `kernels.interpreter`."""

    def add_all(self, rows: Array, whole: Array) -> None:
        """whole [*shape] += the sum of rows [n, *shape]."""

    def add_product(self, left: Array, right: Array, whole: Array, fresh: bool) -> None:
        """whole [m, n], stored by columns, += leftᵀ right, of left [k, m] and right [k, n]; fresh: it is all zeros."""

    def sum_equal(self, indices: np.ndarray, rows: Array) -> tuple[np.ndarray, Array]:
        """Each index once, ascending (int64), and its rows [n, *entry] added up in their order."""

    def active(self, options: Any = None) -> AbstractContextManager[Any]:
        """In its block, arrays of this device are computed with there.

        Args:
            options: `graph.options.Options` of a run, of which there is one at a time; None: nothing runs.
        """
