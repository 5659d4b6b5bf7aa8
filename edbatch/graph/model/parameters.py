"""Parameters: the arrays a model learns, with their gradients."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any, Literal, Self
from weakref import ref

import numpy as np

from edbatch.base.locking import lock, signals_deferred
from edbatch.devices import Device, current_device
from edbatch.errors import EdBatchError, checked_flag, shown
from edbatch.graph.hints import PARAMETER, with_hints
from edbatch.graph.model.exchange import cast, from_dlpack
from edbatch.graph.model.writes import Source, note_write, running
from edbatch.graph.opened import refuse_in_trace
from edbatch.graph.operand import Operand
from edbatch.graph.spec import FLOATS, ParameterSpec


@with_hints(PARAMETER)
class Parameter(Operand):
    """A learned array that is used whole: `W @ h + b`.

    As an operand it is part of the node's type: all nodes with the same parameter run as one product. `W == b` says
    whether they are one parameter, so that lists of parameters can be searched (`W in frozen`); beside numbers, arrays
    and expressions `==` is an error.

    Example:
        >>> import edbatch as eb
        >>> b = eb.ParameterCollection().add_parameters(2, name="b", init=0.5)
        >>> b.set_value([1, 2])
        >>> with eb.Graph():
        ...     print((b * 3).value())
        [3. 6.]
    """

    graph = None  # what recording reads of an operand: a parameter belongs to none
    #: Where a gradient came from last.
    source: Source | None = None
    #: Whether its gradient was added to one that came before an update of others by the same call of `backward`.
    has_leftovers = False
    #: When it was last written to, see `graph.model.writes`; 0: never.
    written = 0
    #: Whether somebody else owns the memory, see `ParameterCollection.share`.
    is_shared = False
    _order: Literal["C", "F"] = "F"
    _export: ref[Any] | None = None

    def __init__(self, name: str, array: Any, device: Device | None = None, *, shares: bool = False) -> None:
        if not shares and (not isinstance(array, np.ndarray) or array.dtype not in FLOATS):
            raise EdBatchError(
                f"parameter {name!r}: expected an array of {' or '.join(map(str, FLOATS))}, got {shown(array)}; "
                "models make parameters of any numbers by `add_parameters`"
            )
        self._name = name
        self.device = device or current_device()
        # A matrix is stored [in, out], so that `x @ W.T` reads it row by row.
        by_rows = array.ndim != 2 or (shares and array.flags.c_contiguous)
        self._stored: Literal["C", "F"] = "C" if by_rows else self._order
        if not shares:
            array = self.device.backend.from_host(np.array(array, order=self._stored), self._stored)
        self.array = array
        #: The parameter whose storage this one is a part of (its rows `rows`), see `graph.cell.stacking`.
        self.stack: Parameter | None = None
        self.rows = slice(None)
        #: Of a stack: what it is made of, in order.
        self.parts: tuple[ParameterSpec, ...] = ()
        #: Of a stack: what neighbours among its parts are together, by the first and the end.
        self.runs: dict[tuple[int, int], Parameter] = {}
        self.spec: ParameterSpec = ParameterSpec(self, name, array.shape, array.dtype)
        self._has_grad = False
        self._frozen = False
        self._gradient: Any = None  # zero where no gradient has come

    @property
    def name(self) -> str:
        """What files, reports and messages call it, since it was made: two of one model have different ones."""
        return self._name

    def __eq__(self, other: object) -> bool:
        """Whether it is the same parameter, as lists of parameters ask; beside a value `==` is an error."""
        if isinstance(other, Number | np.ndarray | list | tuple | Operand) and not isinstance(other, Parameter):
            raise EdBatchError(
                f"== of {self!r}: a parameter equals only itself; compare .value(), or use `is`; "
                "eb.equal(a, b) is 1 where entries are equal"
            )
        return self is other

    __hash__ = object.__hash__

    def value(self) -> np.ndarray:
        """A copy of the array, on the host; it is read-only: `set_value` changes the parameter, `.copy()` is your own.

        Example:
            >>> import edbatch as eb
            >>> eb.ParameterCollection().add_parameters(2, init=1.0).value()
            array([1., 1.], dtype=float32)
        """
        refuse_in_trace("Parameter.value")
        with lock:  # an update by another thread comes before or after
            return read_only(self.device.backend.to_host(self.array))

    def set_value(self, value: Any) -> None:
        """Overwrite the array in place; what has already been computed with the old one stays.

        Where going back needs the old one, `backward` of what was computed with it is an error from then on. So is
        reading what this thread recorded before and what has not run.

        Args:
            value: numbers; arrays and tensors of other libraries too, see `edbatch.from_dlpack`.

        Raises:
            EdBatchError: `value` has another shape, is no array of numbers, or has one too large for the dtype.
        """
        given = self._given(value, "set_value")
        with lock, self.device.backend.active():
            self.array[...] = self.device.backend.from_host(given, "C")
        note_write([self])

    def __dlpack__(self, **arguments: Any) -> Any:
        """Export the array to another library, without a copy: `np.from_dlpack(W)`, `torch.from_dlpack(W)`.

        Both sides see what either writes (NumPy before 2.3 only reads). A matrix is stored by columns, a part of a
        stack has gaps between them: libraries that take only arrays without strides must copy it. As long as the other
        library holds the array, no cell moves the parameter beside others (`cell.explain()` says so): calls run faster
        where it is exported after the cell's first call, or not at all.

        EdBatch cannot see writes from outside. What runs after one reads what was written; call `touch` where a graph
        was recorded before the write, and is read, or gone back through, after it.

        Example:
            >>> import numpy as np, edbatch as eb
            >>> W = eb.ParameterCollection(device="cpu").add_parameters(2, init=1.0)
            >>> np.from_dlpack(W)[0] = 7
            >>> W.value()
            array([7., 1.], dtype=float32)
        """
        refuse_in_trace("Parameter.__dlpack__")
        with lock:
            array = None if self._export is None else self._export()
            if array is None:
                array = self.array[...]  # an object of its own, which lives as long as it is held elsewhere
                self._export = ref(array)
        return array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Where the array is; (1, 0) is the CPU."""
        return self.array.__dlpack_device__()

    @property
    def is_exported(self) -> bool:
        """Whether another library holds the array, see `__dlpack__`."""
        return self._export is not None and self._export() is not None

    def touch(self) -> None:
        """Say that another library has written to the array: it counts as changed, as by `set_value`.

        Example:
            >>> import numpy as np, edbatch as eb
            >>> W = eb.ParameterCollection(device="cpu").add_parameters(2, init=1.0)
            >>> np.from_dlpack(W)[0] = 7
            >>> W.touch()  # what was computed with the old value is gone back through no more
        """
        note_write([self])

    @property
    def version(self) -> int:
        """A number that is another one after each write that EdBatch knows of: updates, `set_value`, `load`, `touch`.

        Example:
            >>> import edbatch as eb
            >>> W = eb.ParameterCollection().add_parameters(2)
            >>> before, _ = W.version, W.set_value([1, 2])
            >>> W.version == before
            False
        """
        return max(member.written for member in self.members())

    def move(self, array: Any) -> None:
        """Have the parameter lie in memory of somebody else's (see `ParameterCollection.share`), with its values.

        Raises:
            EdBatchError: a cell has put the parameter beside others, or `array` does not fit.
        """
        place = f"{self!r}.move"
        found = shareable(array, self.device, self.dtype, self._order == "C", place)
        if found.shape != self.shape:
            raise EdBatchError(f"{place}: expected shape {self.shape}, got {found.shape}")
        with lock, signals_deferred(), self.device.backend.active():
            if self.stack is not None or self.parts:
                raise EdBatchError(
                    f"{place}: a cell has stored it beside others; set its memory before the first cell is called"
                )
            self.array, self.is_shared = found, True
            self._stored = "C" if found.flags.c_contiguous else "F"
            if self._gradient is not None:  # it lies as the array does
                before, self._gradient = self._gradient, self._zeros()
                self._gradient[...] = before
        note_write([self])

    @property
    def has_grad(self) -> bool:
        """Whether a gradient has come since the last `zero_grad`."""
        refuse_in_trace("Parameter.has_grad")
        return any([member._has_grad for member in self.members()])  # noqa: C419 (a generator takes longer)

    def grad(self) -> np.ndarray:
        """A copy, on the host, of the sum of the gradients since the last `zero_grad`; zeros if none came.

        The copy is read-only: `scale_grad` and `set_grad` change the gradient, `.copy()` is your own.

        Example:
            >>> import edbatch as eb
            >>> eb.ParameterCollection().add_parameters((1, 2)).grad()
            array([[0., 0.]], dtype=float32)
        """
        with lock:
            return read_only(self.device.backend.to_host(self.gradient_array()))

    def gradient_array(self) -> Any:
        """What `grad` is a copy of, where the parameter is and laid out like it; zeros if no gradient has come."""
        refuse_in_trace("Parameter.grad")
        return self._sum() if self.has_grad else self._zeros()

    def gathers_in(self, array: Any) -> bool:
        """Whether gradients are added up in this array, which `gradient_array` gave; not of parts of a stack."""
        return self._gradient is array

    def set_grad(self, gradient: Any) -> None:
        """Put another gradient in the place of the sum of those that have come.

        Args:
            gradient: of the parameter's shape; what `set_value` takes.

        Raises:
            EdBatchError: as of `set_value`; or the parameter is frozen.

        Example:
            >>> import edbatch as eb
            >>> W = eb.ParameterCollection().add_parameters(2)
            >>> W.set_grad([1, 2])
            >>> W.grad()
            array([1., 2.], dtype=float32)
        """
        given = self._given(gradient, "set_grad")
        if self.frozen:
            raise EdBatchError(f"{self!r}.set_grad: the parameter is frozen, and has no gradient")
        with lock, signals_deferred(), self.device.backend.active():
            self.zero_grad()
            self.accumulator()[0][...] = self.device.backend.from_host(given, "C")

    def scale_grad(self, factor: float) -> None:
        """Multiply the gradient that has come, as clipping does; see `set_grad`.

        Raises:
            EdBatchError: `factor` is no number, or an infinite one.
        """
        factor = _checked_factor(self, factor)
        with lock, signals_deferred(), self.device.backend.active():
            found = self._gradient_that_came()
            if found is not None:
                found *= factor

    def _gradient_that_came(self) -> Any:
        return self._sum() if self.has_grad else None

    @property
    def frozen(self) -> bool:
        """Whether it is left as it is, see `freeze`."""
        return all([member._frozen for member in self.members()])  # noqa: C419

    def freeze(self, frozen: bool = True) -> None:
        """From now on `backward` computes no gradient of it, and no optimizer changes it; `freeze(False)` ends that.

        Gradients that have come are forgotten. What flows through it to other values flows as before, and nothing is
        compiled anew.

        Example:
            >>> import edbatch as eb
            >>> W = eb.ParameterCollection().add_parameters(2)
            >>> W.freeze()
            >>> W.frozen
            True
        """
        flag = checked_flag(f"{self!r}.freeze", frozen)
        self.zero_grad()
        for member in self.members():
            member._frozen = flag
        if self.stack is not None or self.parts:
            with self.device.backend.active():
                self._sum().fill(0)  # the gradient of a stack is computed with that of its frozen parts

    def zero_grad(self) -> None:
        """Forget the gradients that have come."""
        if self.has_grad:
            with self.device.backend.active():
                self._sum().fill(0)
            self.note_cleared()

    def note_cleared(self) -> None:
        """Forget the gradients that have come: the sum of them is all zeros now, as updates leave it."""
        for member in self.members():
            member._has_grad = False

    def accumulator(self) -> tuple[Any, bool]:
        """The array to add a gradient to, and whether it is all zeros; from now on the parameter has a gradient."""
        fresh, source = True, running.innermost()
        for member in self.members():
            fresh = fresh and not member._has_grad
            member._note_source(source)
            member._has_grad = not member._frozen
        return self._sum(), fresh

    def _note_source(self, source: Source | None) -> None:
        """Note where a gradient that comes now is from; None: nobody knows, as of one that is set."""
        before = self.source
        if not self._has_grad:
            self.source, self.has_leftovers = source, False
        elif source is not None and source is not before:
            self.source = source
            self.has_leftovers = self.has_leftovers or (before is not None and before.is_applied)

    def add_rows(self, rows: np.ndarray, values: Any) -> None:
        """Add gradients `values` [n, *entry] (copied) to rows [n]; a row may be there more than once."""
        if len(rows):
            backend, whole = self.device.backend, self.accumulator()[0]
            with backend.active():
                found, total = backend.sum_equal(rows, backend.from_host(values).reshape(len(rows), -1))
                whole[backend.from_host(found)] += total.reshape(-1, *whole.shape[1:])

    def members(self) -> list[Parameter]:
        """The parameters that know whether a gradient has come: the parts of a stack, or itself."""
        return [part for spec in self.parts if (part := spec.parameter()) is not None] if self.parts else [self]

    def stand_in(self, stack: Parameter | None) -> Self:
        """A parameter like this one that gathers gradients of its own, or in the rows of a `stack` that does."""
        made = object.__new__(type(self))
        # A stack and parts of it have one from the beginning, all zeros: none knows whether one of another has come.
        has_grad = stack is not None or bool(self.parts)
        vars(made).update(vars(self), stack=stack, parts=(), _gradient=None, _has_grad=has_grad)
        return made

    def _given(self, numbers: Any, method: str) -> np.ndarray:
        """A caller's numbers as an array of the parameter's shape and dtype."""
        place = f"{self!r}.{method}"
        given = from_dlpack(own_value(numbers), place)
        if given.shape != self.shape:
            raise EdBatchError(f"{place}: expected shape {self.shape}, got {given.shape}")
        return cast(given, self.dtype, place)

    def _sum(self) -> Any:
        if self.stack is not None:
            return self.stack._sum()[self.rows]
        if self._gradient is None:
            self._gradient = self._zeros()
        return self._gradient

    def _zeros(self) -> Any:
        with self.device.backend.active():
            return self.device.backend.allocate(self.shape, self.dtype, self._stored)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are parameters of their own: with an array, and so types, of their own."""
        return type(self), (self.name, self.value(), self.device), {"_frozen": self._frozen}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spec!r})"


class LookupParameters(Parameter):
    """A learned table whose rows are used one by one: `lookup(embed, word)` or `embed[word]`.

    Look-ups of different rows are one type and one batch. Gradients are kept as the rows that were looked up. Anywhere
    else a table is a parameter like any other (`embed @ h`: the scores of all words), with a gradient of all its rows.

    Example:
        >>> import edbatch as eb
        >>> embed = eb.ParameterCollection().add_lookup_parameters((3, 2), init=1.0)
        >>> with eb.Graph():
        ...     eb.sum(embed[2]).backward()
        >>> embed.sparse_grad()
        (array([2]), array([[1., 1.]], dtype=float32))
    """

    _order = "C"

    def __init__(self, name: str, array: Any, device: Device | None = None, *, shares: bool = False) -> None:
        super().__init__(name, array, device, shares=shares)
        self._came: list[tuple[np.ndarray, Any]] = []
        self._is_dense = False  # whether a gradient of all rows has come; then it is in `_gradient`

    def stand_in(self, stack: Parameter | None) -> Self:
        """See `Parameter.stand_in`."""
        made = super().stand_in(stack)
        made._came, made._is_dense = [], False
        return made

    def sparse_grad(self) -> tuple[np.ndarray, Any] | None:
        """The rows that have a gradient (int64 [k], ascending, each once) and the gradients [k, *entry].

        Read-only copies, on the host, like `grad`. All rows if the whole table was used, None if no gradient has come.
        """
        found = self.gradient_rows()
        return None if found is None else (read_only(found[0]), read_only(self.device.backend.to_host(found[1])))

    def gradient_rows(self) -> tuple[np.ndarray, Any] | None:
        """What `sparse_grad` is a copy of; the gradients are where the table is."""
        refuse_in_trace("LookupParameters.sparse_grad")
        if self._is_dense:
            return np.arange(self.shape[0]), self._sum()
        return self._rows()

    def gradient_array(self) -> Any:
        """The gradient of the whole table, made for this call: `gradient_rows` is what training reads."""
        refuse_in_trace("LookupParameters.grad")
        backend = self.device.backend
        with backend.active():
            dense = self._zeros()
            if self._is_dense:
                dense[...] = self._sum()
            elif (found := self._rows()) is not None:
                dense[backend.from_host(found[0])] = found[1]
        return dense

    def _gradient_that_came(self) -> Any:
        found = self.gradient_rows()
        return None if found is None else found[1]

    def zero_grad(self) -> None:
        """Forget the gradients that have come."""
        self._came.clear()
        if self._is_dense:
            with self.device.backend.active():
                self._gradient.fill(0)
        self._has_grad = self._is_dense = False

    def note_cleared(self) -> None:
        """See `Parameter.note_cleared`; updates go through the rows, and leave them."""
        self.zero_grad()

    def accumulator(self) -> tuple[Any, bool]:
        """See `Parameter.accumulator`: the gradient of all rows."""
        self._is_dense = True
        return super().accumulator()

    def add_rows(self, rows: np.ndarray, values: Any) -> None:
        """See `Parameter.add_rows`: rows are kept as they are."""
        if len(rows):
            backend = self.device.backend
            with backend.active():
                self._came.append(backend.sum_equal(rows, backend.from_host(values)))
            self._note_source(running.innermost())
            self._has_grad = True

    def _sum(self) -> Any:
        with lock, signals_deferred(), self.device.backend.active():
            dense, rows = super()._sum(), self._rows()
            if rows is not None:
                dense[self.device.backend.from_host(rows[0])] += rows[1]
                self._came.clear()
        return dense

    def _rows(self) -> tuple[np.ndarray, Any] | None:
        """What has come by row, each once."""
        backend = self.device.backend
        with lock, backend.active():
            if len(self._came) > 1:
                rows = np.concatenate([found for found, _ in self._came])
                values = backend.allocate((len(rows), *self.shape[1:]), self.dtype)
                end = 0
                for found, came in self._came:
                    begin, end = end, end + len(found)
                    values[begin:end] = came
                self._came = [backend.sum_equal(rows, values)]
            return self._came[0] if self._came else None


def shareable(array: Any, device: Device, dtype: np.dtype, by_rows: bool, place: str) -> Any:
    """An array of a device's in memory that somebody else owns; errors as of `ParameterCollection.share`."""
    own = type(device.backend.allocate((1,), FLOATS[0]))
    found = array if isinstance(array, own) or own is not np.ndarray else from_dlpack(array, place)
    if not isinstance(found, own):
        raise EdBatchError(f"{place}: expected an array of {device.name} ({own.__module__}), got {shown(array)}")
    if found.dtype != dtype:
        raise EdBatchError(f"{place}: expected an array of {dtype}, got {found.dtype}")
    if not (found.flags.c_contiguous or (found.ndim == 2 and found.flags.f_contiguous)) or not found.size:
        raise EdBatchError(f"{place}: expected entries side by side, got strides {found.strides} of {found.shape}")
    if by_rows and not (found.ndim and found.flags.c_contiguous):
        raise EdBatchError(f"{place}: expected rows that lie side by side, got strides {found.strides}")
    if own is np.ndarray and not found.flags.writeable:
        raise EdBatchError(f"{place}: expected an array that can be written to; x.numpy() of a tensor x is one")
    return found


def read_only(array: np.ndarray) -> np.ndarray:
    """A copy that cannot be written to: who writes to it takes it for what it is a copy of."""
    found = np.array(array, order="C")
    found.flags.writeable = False
    return found


def own_value(numbers: Any) -> Any:
    """Return a parameter's value, wherever it is, for a caller that copies numbers; anything else as it is."""
    return numbers.value() if isinstance(numbers, Parameter) else numbers


def _checked_factor(parameter: Parameter, factor: Any) -> float:
    """A number, maybe as an array without axes."""
    if not isinstance(factor, Operand | str | bytes | np.complexfloating) and getattr(factor, "ndim", 0) == 0:
        try:
            found = float(factor)
        except (TypeError, ValueError, OverflowError):
            found = math.nan
        if math.isfinite(found):
            return found
    raise EdBatchError(f"{parameter!r}.scale_grad: expected a finite number, got {shown(factor)}")
