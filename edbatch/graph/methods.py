"""Functions of `edbatch` as methods of expressions and parameters, by the names NumPy and PyTorch give them.

Every method calls the function that does it; axes are NumPy's (`axis=`, of one sample's value).
"""

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

    def sum(self, axis: Axis = None, keepdims: bool = False) -> Expression:
        """Sum over all or some axes; see `edbatch.sum`."""
        return ops.sum(self, axis, keepdims)

    def mean(self, axis: Axis = None, keepdims: bool = False) -> Expression:
        """Mean over all or some axes; see `edbatch.mean`."""
        return ops.mean(self, axis, keepdims)

    def std(self, axis: Axis = None, keepdims: bool = False) -> Expression:
        """Standard deviation over all or some axes, divided by n as NumPy's; see `edbatch.std`."""
        return ops.std(self, axis, keepdims)

    def max(self, axis: Axis = None, keepdims: bool = False) -> Expression:
        """Largest entry over all or some axes; see `edbatch.max`."""
        return ops.max(self, axis, keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False) -> Expression:
        """Smallest entry over all or some axes; see `edbatch.min`."""
        return ops.min(self, axis, keepdims)

    def logsumexp(self, axis: Axis = None, keepdims: bool = False) -> Expression:
        """log Σ eˣ over all or some axes; see `edbatch.logsumexp`."""
        return ops.logsumexp(self, axis, keepdims)

    def norm(self, *order: Any, axis: Axis = None, keepdims: bool = False) -> Expression:
        """Euclidean norm over all or some axes, which are given by name; see `edbatch.norm`.

        Raises:
            EdBatchError: an `order` is given, as to PyTorch's method of this name, or an axis as one.
        """
        if order:
            raise EdBatchError(
                f"norm({', '.join(map(shown, order))}): expected axis=...; this is the Euclidean norm, others are "
                "eb.sum(eb.abs(x)), eb.max(eb.abs(x)), and sums of comparisons or powers of eb.abs(x)"
            )
        return ops.norm(self, axis, keepdims)

    def softmax(self, axis: int = -1) -> Expression:
        """See `edbatch.softmax`."""
        return ops.softmax(self, axis)

    def log_softmax(self, axis: int = -1) -> Expression:
        """See `edbatch.log_softmax`."""
        return ops.log_softmax(self, axis)

    def abs(self) -> Expression:
        """|x|, entry by entry."""
        return ops.abs(self)

    def exp(self) -> Expression:
        """eˣ, entry by entry."""
        return ops.exp(self)

    def log(self) -> Expression:
        """Natural logarithm, entry by entry."""
        return ops.log(self)

    def sqrt(self) -> Expression:
        """√x, entry by entry."""
        return ops.sqrt(self)

    def square(self) -> Expression:
        """x², entry by entry."""
        return ops.square(self)

    def sin(self) -> Expression:
        """Sine, entry by entry."""
        return ops.sin(self)

    def cos(self) -> Expression:
        """Cosine, entry by entry."""
        return ops.cos(self)

    def erf(self) -> Expression:
        """Error function, entry by entry."""
        return ops.erf(self)

    def tanh(self) -> Expression:
        """Hyperbolic tangent, entry by entry."""
        return ops.tanh(self)

    def sigmoid(self) -> Expression:
        """1 / (1 + e⁻ˣ), entry by entry."""
        return ops.sigmoid(self)

    def relu(self) -> Expression:
        """max(x, 0), entry by entry."""
        return ops.relu(self)

    def clip(self, low: float | None = None, high: float | None = None) -> Expression:
        """Entries limited to [low, high]; see `edbatch.clip`."""
        return ops.clip(self, low, high)

    def clamp(self, min: float | None = None, max: float | None = None) -> Expression:
        """`clip` by PyTorch's name."""
        return ops.clip(self, min, max)

    def pow(self, exponent: Any) -> Expression:
        """`x ** exponent`."""
        return ops.power(self, exponent)

    def dot(self, other: Any) -> Expression:
        """Inner product of two vectors; see `edbatch.dot`."""
        return ops.dot(self, other)

    def matmul(self, other: Any) -> Expression:
        """`x @ other`."""
        return ops.matmul(self, other)

    def reshape(self, *shape: Any) -> Expression:
        """The same entries in another shape, `x.reshape(2, -1)` or `x.reshape((2, -1))`; see `edbatch.reshape`."""
        return ops.reshape(self, _listed(shape))

    view = reshape

    def flatten(self) -> Expression:
        """All entries as a vector."""
        return ops.reshape(self, -1)

    def squeeze(self, axis: int | None = None) -> Expression:
        """Without an axis of size 1, or without all of them."""
        return ops.squeeze(self, axis)

    def unsqueeze(self, axis: int) -> Expression:
        """With a new axis of size 1 before `axis` (of the result)."""
        return ops.unsqueeze(self, axis)

    def t(self) -> Expression:
        """Axes reversed."""
        return ops.transpose(self)

    def transpose(self, *axes: Any) -> Expression:
        """Axes reversed, or in the order given by one tuple; see `edbatch.transpose`.

        Raises:
            EdBatchError: axes that are not in a tuple: NumPy means their order, PyTorch two that change places.
        """
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

    def swapaxes(self, first: int, second: int) -> Expression:
        """Two axes change places."""
        return ops.swapaxes(self, first, second)

    def flip(self, axis: int = 0) -> Expression:
        """Entries along an axis in reverse order; see `edbatch.flip`."""
        return ops.flip(self, axis)

    def chunk(self, parts: int, axis: int = 0) -> list[Expression]:
        """A number of equal parts along an axis; see `edbatch.split`."""
        return ops.split(self, parts, axis)

    def detach(self) -> Expression:
        """The same value, through which no gradient flows; see `edbatch.stop_gradient`."""
        return ops.stop_gradient(self)


def _listed(given: tuple[Any, ...]) -> Any:
    """`f(2, 3)` and `f((2, 3))` alike."""
    return given[0] if len(given) == 1 else given
