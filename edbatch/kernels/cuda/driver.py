"""What the CUDA backend asks of a GPU's libraries: one narrow interface, so that the rest runs without a GPU too."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np


class Recording(Protocol):
    """Work that was recorded instead of enqueued (a CUDA graph).

    Attributes:
        stream, blas: what is enqueued on this stream, or with this handle of cuBLAS, is recorded.
    """

    stream: int
    blas: int

    def launch(self) -> None:
        """Enqueue all of it."""


class Driver(Protocol):
    """One GPU, and one stream on it that all work is enqueued on.

    Attributes:
        name: "cuda:0".
        xp: NumPy's API on arrays of the device.
        processors: how many multiprocessors it has.
        stream: CUDA's handle, as all handles and addresses an integer.
        launch, gemm, gemm_strided: addresses of `cuLaunchKernel`, `cublasGemmEx` and `cublasGemmStridedBatchedEx`.
        blas: handle of cuBLAS, bound to the stream, with a workspace of its own.
    """

    name: str
    xp: Any
    processors: int
    stream: int
    launch: int
    gemm: int
    gemm_strided: int
    blas: int

    def load(self, source: str, names: Sequence[str]) -> list[int]:
        """Compile CUDA C++; the handles of the kernels with these names.

        Raises:
            EdBatchError: it does not compile.
        """

    def empty(self, entries: int, dtype: np.dtype) -> Any:
        """An array [entries] with unspecified contents, that begins at a multiple of 256 bytes."""

    def address(self, array: Any) -> int:
        """Where an array's entries begin."""

    def array_at(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype) -> Any:
        """The array whose entries lie there; somebody else holds the memory."""

    def upload(self, host: np.ndarray, target: Any) -> None:
        """Enqueue a copy to the device, of as many contiguous bytes; waits for nothing, and `host` is free at once."""

    def download(self, array: Any) -> np.ndarray:
        """A copy on the host; waits for all that was enqueued before."""

    def synchronize(self) -> None:
        """Wait for all that was enqueued."""

    def active(self) -> AbstractContextManager[Any]:
        """In its block, this device and stream are those that `xp` uses."""

    def capture(self) -> AbstractContextManager[Recording]:
        """In its block, what is enqueued on the recording's stream is recorded, and does not run."""
