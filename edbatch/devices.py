"""Devices: where parameters and values live, and batches run."""

from __future__ import annotations

import os
import re
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from edbatch.base.context_stack import ContextStack, OpenContext
from edbatch.base.lazy import LazyModule
from edbatch.errors import EdBatchError, shown

if TYPE_CHECKING:
    from edbatch.kernels.backend import Backend

#: Per kind of device, the module whose `open_backend(number)` gives what computes there.
BACKENDS = {"cpu": LazyModule("edbatch.kernels.cpu.backend"), "cuda": LazyModule("edbatch.kernels.cuda.backend")}

_blocks: ContextStack[Device] = ContextStack("edbatch_devices")


class Device:
    """A device; as a context manager it is the current one inside the block. Made by `device`.

    Attributes:
        kind: "cpu" or "cuda".
        number: of several of one kind.
    """

    def __init__(self, kind: str, number: int) -> None:
        self.kind = kind
        self.number = number
        self._entered: list[OpenContext[Device]] = []  # by all threads

    @property
    def name(self) -> str:
        """As `device` takes it."""
        return self.kind if self.kind == "cpu" else f"{self.kind}:{self.number}"

    @cached_property
    def backend(self) -> Backend:
        """What computes there; opened on first use.

        Raises:
            EdBatchError: the device, or a library for it, is missing.
        """
        with _opening:  # two backends would have two streams, and two pools
            found = vars(self).get("backend")
            opened: Backend = BACKENDS[self.kind].open_backend(self.number) if found is None else found
            return opened

    def synchronize(self) -> None:
        """Wait until everything that was begun there is done; reading a value waits by itself.

        Example:
            >>> import edbatch as eb
            >>> eb.device("cpu").synchronize()
        """
        backend = self.backend
        with backend.active():
            backend.to_host(backend.allocate((1,), np.dtype(np.float32)))  # waits for all that was begun before

    @_blocks.entering
    def __enter__(self, block: OpenContext[Device]) -> Device:
        return self

    @_blocks.leaving
    def __exit__(self, *_: object) -> None:
        """Nothing more to do."""

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.name,)

    def __repr__(self) -> str:
        return f"device({self.name!r})"


_devices: dict[str, Device] = {}
_opening = threading.RLock()  # a cached property of Python 3.12 or newer has none


def device(name: str | Device) -> Device:
    """The device of a name: "cpu", "cuda" (the first GPU), "cuda:1".

    Inside `with eb.device("cuda:1"):` parameters are made, and graphs run, on that device. Outside, the environment
    variable EDBATCH_DEVICE names the device; without it, it is the CPU. A GPU needs CuPy:
    `pip install 'edbatch[cuda12]'` or `'edbatch[cuda13]'`.

    Raises:
        EdBatchError: there is no device of this name. (Whether the machine has it shows on first use.)

    Example:
        >>> import edbatch as eb
        >>> with eb.device("cpu"):
        ...     model = eb.ParameterCollection()
        >>> model.device
        device('cpu')
        >>> eb.device("gpu")
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: device 'gpu': expected "cpu", "cuda" or "cuda:1"
    """
    if isinstance(name, Device):
        return name
    found = _devices.get(name) if isinstance(name, str) else None
    if found is None:
        kinds = "|".join(BACKENDS)
        match = re.fullmatch(rf"({kinds})(?::(\d{{1,3}}))?", name) if isinstance(name, str) else None
        if match is None or (match[1] == "cpu" and match[2]):
            raise EdBatchError(f'device {shown(name)}: expected "cpu", "cuda" or "cuda:1"')
        new = Device(match[1], int(match[2] or 0))
        found = _devices[name] = _devices.setdefault(new.name, new)
    return found


def opened_device(name: str | Device | None) -> Device:
    """The device of a name, or (None) the one in force, opened now.

    Raises:
        EdBatchError: the device, or a library for it, is missing.
    """
    found = current_device() if name is None else device(name)
    found.backend  # noqa: B018 (opens it)
    return found


def current_device() -> Device:
    """The device in force: of the innermost `with` block, else of EDBATCH_DEVICE, else the CPU."""
    return _blocks.innermost() or device(os.environ.get("EDBATCH_DEVICE") or "cpu")
