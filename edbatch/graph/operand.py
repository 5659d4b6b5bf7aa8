"""What expressions and parameters share: shape and dtype, numbers, and the operators that `graph.ops` sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import eq, ne
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from edbatch.errors import EdBatchError, MissingOperatorError
from edbatch.graph import methods
from edbatch.graph.hints import VALUE, Size, hint_in_cells, with_hints, without_operators
from edbatch.graph.spec import Shape, Spec

if TYPE_CHECKING:
    from edbatch.graph.expression import Expression

# What NumPy makes of `array * operand`, and the like.
_OPERATORS = (
    np.add, np.subtract, np.multiply, np.divide, np.power, np.matmul, np.less, np.less_equal, np.greater,
    np.greater_equal,
)  # fmt: skip
_COMPARISONS: dict[Any, Callable[[Any, Any], Any]] = {np.equal: eq, np.not_equal: ne}


@with_hints(VALUE)
@without_operators
class Operand(methods.Methods):
    """`+ - * / ** @`, indexing, slicing, `.T`; the other operand may be a number or an array."""

    __slots__ = ()

    @property
    def shape(self) -> Shape:
        """Shape of one sample's value."""
        return self.spec.shape

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64."""
        return self.spec.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.spec.shape)

    @property
    def size(self) -> int:
        """Number of entries."""
        return Size(self.spec.size)

    def item(self) -> float:
        """The only entry as a Python number; of an expression, what is pending runs, as for `value`.

        Raises:
            EdBatchError: there are more entries than one.
        """
        if self.spec.size != 1:
            raise EdBatchError(f"{self!r} as a number: expected one entry, there are {self.spec.size}")
        return float(np.asarray(self.value()).item())

    def tolist(self) -> Any:
        """The value as (nested lists of) Python numbers."""
        return np.asarray(self.value()).tolist()

    def numpy(self) -> Any:
        """`value()`, by PyTorch's name."""
        return self.value()

    def __float__(self) -> float:
        return self.item()

    def __int__(self) -> int:
        return int(self.item())

    __trunc__ = __int__

    def __round__(self, digits: int | None = None) -> float:
        return round(self.item(), digits)

    def __format__(self, form: str) -> str:
        return format(self.item(), form) if form else str(self)

    def __pos__(self) -> Operand:
        return self

    def __len__(self) -> int:
        if not self.spec.shape:
            raise EdBatchError(f"len() of {self!r}: expected at least one axis; numbers are read by .value()")
        return self.spec.shape[0]

    def __iter__(self) -> Iterator[Expression]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        what = hint_in_cells(self) or "; compare its .value()"
        raise EdBatchError(
            f"truth of {self!r}: its value is not known before it runs{what}; "
            "eb.where(condition, a, b) chooses entry by entry"
        )

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise EdBatchError(f"{self!r} is not an array; expected its .value()")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **given: Any) -> Any:
        """What NumPy asks for where an array or a number of its own is beside an operand."""
        if not given and method == "__call__":
            if ufunc in _OPERATORS:
                return getattr(vars(methods)["ops"], ufunc.__name__)(*inputs)
            if (compare := _COMPARISONS.get(ufunc)) is not None and inputs[1] is self:
                return compare(self, inputs[0])
        name = ufunc.__name__
        ours = f"eb.{name}" if hasattr(vars(methods)["ops"], name) else "a function of edbatch"
        raise MissingOperatorError(
            f"np.{name} of {self!r}: NumPy does not know expressions; expected {ours}, or .value()"
        )

    def __array_function__(self, function: Callable[..., Any], *_: Any) -> NoReturn:
        name = function.__name__
        raise EdBatchError(
            f"np.{name} of {self!r}: NumPy does not know expressions; expected a function of edbatch, or .value()"
        )

    if TYPE_CHECKING:
        spec: Spec

        def value(self) -> Any:
            """The value."""

        def __pow__(self, other: Any) -> Expression: ...
        def _with(self, other: Any) -> Expression: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _with
        __rpow__ = __matmul__ = __rmatmul__ = __lt__ = __le__ = __gt__ = __ge__ = _with

        def __neg__(self) -> Expression: ...
        def __abs__(self) -> Expression: ...
        def __getitem__(self, key: Any) -> Expression: ...

        @property
        def T(self) -> Expression:
            """Axes reversed."""
            ...
