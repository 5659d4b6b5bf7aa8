"""What is known of a value before it is computed: its shape and dtype."""

from __future__ import annotations

import math
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from edbatch.errors import EdBatchError, shown

if TYPE_CHECKING:
    from edbatch.devices import Device
    from edbatch.graph.model.parameters import Parameter

Shape = tuple[int, ...]

_interned: dict[tuple[Shape, np.dtype, bool], Spec] = {}

#: Entries of one value, and rows or columns of a parameter: BLAS and CUDA count them in 32 bits.
MOST_ENTRIES = 2**31 - 1

#: Axes of one value: some functions of NumPy take 32, and a batch is one more.
MOST_AXES = 31

#: The dtypes of values.
FLOATS = (np.dtype("float32"), np.dtype("float64"))


class Spec:
    """Shape and dtype of a value; two values of one shape and dtype share one `Spec` object.

    Specs are compared by identity, so that finding the type of a node is a dictionary look-up of pointers.

    Attributes:
        each: whether there is a value for each element of a list; only where the computation of an op over lists is
            written down.
    """

    __slots__ = ("dtype", "each", "shape", "size")

    def __init__(self, shape: Shape, dtype: np.dtype, each: bool = False) -> None:
        self.shape = shape
        self.dtype = dtype
        self.each = each
        self.size = math.prod(shape)

    def __repr__(self) -> str:
        return f"[{','.join(map(str, self.shape))}]"


class _Link(weakref.ref["Parameter"]):
    """A weak reference to a parameter, with the entries of tables that name it (see `ParameterSpec.enters`)."""

    __slots__ = ("entries",)

    entries: list[tuple[dict[Any, Any], Any]]


class ParameterSpec(Spec):
    """The spec of one parameter: an operand that is part of the node's type and takes no part in the graph.

    It refers to the parameter weakly: a model's arrays must not live as long as what names them.
    """

    __slots__ = ("__weakref__", "_entries", "device", "name", "parameter")

    _entries: list[tuple[dict[Any, Any], Any]]

    def __init__(self, parameter: Parameter, name: str, shape: Shape, dtype: np.dtype) -> None:
        super().__init__(shape, dtype)
        self.name = name
        self.device: Device = parameter.device
        self.parameter = _Link(parameter, _gone.append)
        self.parameter.entries = self._entries = []

    def enters(self, table: dict[Any, Any], key: Any) -> None:
        """Have `table[key]`, which is of no use without the parameter, taken out when that is gone; see `reclaim`."""
        self._entries.append((table, key))
        if self.parameter() is None:
            _gone.append(self.parameter)

    def __repr__(self) -> str:
        return f"{self.name}{super().__repr__()}"


# Parameters that are gone. They are only noted here, by a function in C, which no interrupt ends: the garbage collector
# may come at any time, and an exception in what it calls would be lost.
_gone: deque[weakref.ref[Parameter]] = deque()


def reclaim() -> None:
    """Take out of tables what names parameters that are gone; for who holds the lock."""
    while _gone:
        link = _gone.popleft()
        assert isinstance(link, _Link)
        entries = link.entries
        while entries:
            table, key = entries.pop()
            table.pop(key, None)


def spec_of(shape: Shape, dtype: np.dtype, each: bool = False) -> Spec:
    """The one `Spec` of this shape and dtype; `each`: see there.

    Of too many entries or axes, or another dtype, there is none: what is shared by all graphs of a process begins here.
    """
    found = _interned.get((shape, dtype, each))
    if found is not None:
        return found
    if not (isinstance(dtype, np.dtype) and dtype in FLOATS):
        raise EdBatchError(f"a value of {dtype!r}: expected float32 or float64")
    if math.prod(shape) > MOST_ENTRIES:
        raise EdBatchError(
            f"a value of {' x '.join(map(str, shape))} entries: expected at most {MOST_ENTRIES:,} in all"
        )
    if len(shape) > MOST_AXES:
        raise EdBatchError(f"a value of {len(shape)} axes: expected at most {MOST_AXES}")
    return _interned.setdefault((shape, dtype, each), Spec(shape, dtype, each))  # one step: two threads get the same


_NAMED: dict[object, np.dtype] = {known.name: known for known in FLOATS}
_NAMES = {known: name for name, known in _NAMED.items()}


def name_of(dtype: np.dtype) -> Any:
    """The name of float32 or float64, which NumPy puts together whenever it is asked."""
    return _NAMES[dtype]


def float_dtype(dtype: object) -> np.dtype:
    """float32 or float64 as a NumPy dtype; anything else is an error."""
    if dtype.__class__ is str and dtype in _NAMED:
        return _NAMED[dtype]
    try:
        # To NumPy None is float64, also where a dtype is compared with it, and whatever has a dtype is one.
        found = np.dtype(dtype) if isinstance(dtype, str | type | np.dtype) else None
    except Exception:  # whatever an object of another library makes of it
        found = None
    for known in FLOATS if found is not None else ():
        if found == known:
            return known
    raise EdBatchError(f"dtype {shown(dtype)}: expected float32 or float64")
