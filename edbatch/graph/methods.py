"""Functions of `edbatch` as methods of expressions and parameters, by the names NumPy and PyTorch give them.

Most are the function itself, which `edbatch.graph.ops` sets; axes are NumPy's (`axis=`, of one sample's value).
"""

# ruff: noqa: D102 (of functions that are methods, types alone are here)
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from edbatch.errors import EdBatchError, shown

if TYPE_CHECKING:
    from edbatch.graph import ops
    from edbatch.graph.expression import Expression

    Axis = int | Sequence[int] | None
else:
    ops: Any = None  # set by `edbatch.graph.ops`, which is made of expressions and comes after them


class Methods:
    """What can be asked of a value with a dot."""

    __slots__ = ()  # and no `__getattr__`: recording reads attributes, which would take half as long again

    if TYPE_CHECKING:  # functions whose first operand is the value

        def sum(self, axis: Axis = None, keepdims: bool = False) -> Expression: ...

        mean = std = max = min = logsumexp = sum

        def softmax(self, axis: int = -1) -> Expression: ...

        log_softmax = softmax

        def abs(self) -> Expression: ...

        exp = log = sqrt = square = sin = cos = erf = tanh = sigmoid = relu = detach = abs

        def dot(self, other: Any) -> Expression: ...

        matmul = pow = dot

        def clip(self, low: float | None = None, high: float | None = None) -> Expression: ...
        def squeeze(self, axis: int | None = None) -> Expression: ...
        def unsqueeze(self, axis: int) -> Expression: ...
        def swapaxes(self, first: int, second: int) -> Expression: ...
        def flip(self, axis: int = 0) -> Expression: ...
        def chunk(self, parts: int | Sequence[int], axis: int = 0) -> list[Expression]: ...

    def norm(self, *order: Any, axis: Axis = None, keepdims: bool = False) -> Expression:
        """Euclidean norm over all or some axes, which are given by name; an `order`, or an axis as one, is an error."""
        if order:
            raise EdBatchError(
                f"norm({', '.join(map(shown, order))}): expected axis=...; this is the Euclidean norm, others are "
                "eb.sum(eb.abs(x)), eb.max(eb.abs(x)), and sums of comparisons or powers of eb.abs(x)"
            )
        return ops.norm(self, axis, keepdims)

    def clamp(self, min: float | None = None, max: float | None = None) -> Expression:
        """`clip` by PyTorch's name."""
        return ops.clip(self, min, max)

    def reshape(self, *shape: Any) -> Expression:
        """The same entries in another shape, `x.reshape(2, -1)` or `x.reshape((2, -1))`; see `edbatch.reshape`."""
        return ops.reshape(self, _listed(shape))

    view = reshape

    def flatten(self) -> Expression:
        """All entries as a vector."""
        return ops.reshape(self, -1)

    def t(self) -> Expression:
        """Axes reversed."""
        return ops.transpose(self)

    def transpose(self, *axes: Any) -> Expression:
        """Axes reversed, or in the order given by one tuple; several arguments, which PyTorch swaps, are an error."""
        if len(axes) > 1:
            shown = ", ".join(map(str, axes))
            raise EdBatchError(
                f"transpose({shown}): expected one tuple; .permute({shown}) puts the axes in this order, "
                f".swapaxes({shown}) makes two axes change places"
            )
        return ops.transpose(self, *axes)

    def permute(self, *axes: Any) -> Expression:
        """Axes in another order; see `edbatch.transpose`."""
        return ops.transpose(self, _listed(axes))


def _listed(given: tuple[Any, ...]) -> Any:
    """`f(2, 3)` and `f((2, 3))` alike."""
    return given[0] if len(given) == 1 else given
