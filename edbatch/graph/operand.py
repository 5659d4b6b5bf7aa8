"""What expressions and parameters share: shape and dtype, and the operators that `graph.ops` sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edbatch.graph.spec import Shape, Spec

if TYPE_CHECKING:
    from edbatch.graph.expression import Expression


class Operand:
    """`+ - * / ** @`, indexing, slicing, `.T`; the other operand may be a number or an array."""

    __slots__ = ()

    # NumPy must leave `array * operand` to us.
    __array_ufunc__ = None

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

    if TYPE_CHECKING:
        spec: Spec

        def __add__(self, other: Any) -> Expression: ...
        def __radd__(self, other: Any) -> Expression: ...
        def __sub__(self, other: Any) -> Expression: ...
        def __rsub__(self, other: Any) -> Expression: ...
        def __mul__(self, other: Any) -> Expression: ...
        def __rmul__(self, other: Any) -> Expression: ...
        def __truediv__(self, other: Any) -> Expression: ...
        def __rtruediv__(self, other: Any) -> Expression: ...
        def __pow__(self, other: Any) -> Expression: ...
        def __rpow__(self, other: Any) -> Expression: ...
        def __matmul__(self, other: Any) -> Expression: ...
        def __rmatmul__(self, other: Any) -> Expression: ...
        def __neg__(self) -> Expression: ...
        def __abs__(self) -> Expression: ...
        def __getitem__(self, key: Any) -> Expression: ...

        @property
        def T(self) -> Expression:
            """Axes reversed."""
            ...
