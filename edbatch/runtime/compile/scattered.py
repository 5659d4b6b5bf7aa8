"""Kernels that read, and add to, windows whose rows have entries that do not lie side by side: transposed, reversed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from edbatch.graph.cell.passes.entries import by_rows
from edbatch.kernels import row_kernels
from edbatch.kernels.backend import Backend
from edbatch.kernels.language.given import filled
from edbatch.kernels.language.ir import NEXT, RUN, Kernel
from edbatch.memory.plan.addresses import SCATTERED
from edbatch.memory.plan.windows import Window, Windows


class ScatteredKernels:
    """The kernels of the windows of a type table."""

    def __init__(self, windows: Windows, backend: Backend) -> None:
        self._windows = windows
        self._backend = backend
        self._records = np.zeros(0, SCATTERED)
        self._words = np.zeros(0, np.int64)
        # Windows that kernels are there for which read, and which add. They count once all are made: an interrupt may
        # come at any time.
        self._reading = self._adding = 0

    def tables(self, adding: bool) -> tuple[np.ndarray, np.ndarray]:
        """Per scattered window that has a number its record `Scattered`, and the words that kernels are given.

        Args:
            adding: whether kernels that add are needed.
        """
        windows = self._windows.scattered
        if self._reading < len(windows):
            self._records = np.append(self._records, np.zeros(len(windows) - len(self._records), SCATTERED))
            for number in range(self._reading, len(windows)):
                record, seen = self._records[number], windows[number]
                record["entries"], record["axes"] = seen.entries, len(seen.shape)
                there, here = seen.strides, by_rows(seen.shape)
                self._make(number, "read", "read", row_kernels.copy_rows, (there, here))
            self._reading = len(windows)
        if adding:
            for number in range(self._adding, len(windows)):
                there, here = windows[number].strides, by_rows(windows[number].shape)
                self._make(number, "add", "add", row_kernels.add_rows, (here, there))
                self._make(number, "add_lists", "lists", row_kernels.add_lists, (here, there, there))
            self._adding = len(windows)
        return self._records, self._words

    def _make(
        self, number: int, field: str, name: str, make: Callable[[str, int, int], Kernel],
        accesses: tuple[tuple[int, ...], ...],
    ) -> None:  # fmt: skip
        """Fill in one kernel of a window's record: `make`, given dtype, axes and how the last of these lies.

        `name`: how the fields for what it is given begin. `accesses`: strides of what it reads, then of what it writes.
        """
        seen: Window = self._windows.scattered[number]
        last = NEXT if seen.strides[-1] == 1 else RUN
        kernel = make(self._windows.layouts[seen.arena][1].name, len(seen.shape), last)
        strides = [
            stride
            for strides in accesses
            for axis, stride in enumerate(strides)
            if axis < len(strides) - 1 or (strides == seen.strides and last == RUN)
        ]
        sizes = [*seen.shape, *[0] * (kernel.axes - len(seen.shape))]
        words = filled(kernel, sizes, [(0, 0, 0)] * 2, strides)
        record = self._records[number]
        (record[field],) = self._backend.handles([kernel])
        record[f"{name}_given"], record[f"{name}_end"] = len(self._words), len(self._words) + len(words)
        self._words = np.append(self._words, words)
