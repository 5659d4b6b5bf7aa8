"""Expressions: handles on the nodes of a lazy graph."""

from __future__ import annotations

from collections.abc import Generator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from edbatch.errors import EdBatchError, MissingOperatorError
from edbatch.graph.hints import EXPRESSION, FUNCTIONS, explaining, has_function, with_hints
from edbatch.graph.operand import Operand
from edbatch.graph.recorder import Handle
from edbatch.graph.spec import Spec

if TYPE_CHECKING:
    from edbatch.graph.columns import Columns


#: Whether what runs is a program of `edbatch.run`, which answers what is awaited.
driven: ContextVar[bool] = ContextVar("edbatch_driven", default=False)


@with_hints(EXPRESSION)
class Expression(Handle, Operand):
    """One value of a graph: known by shape and dtype now, computed when a value is read.

    Expressions are made by the functions of `edbatch` and by operators (`+ - * / ** @`, indexing, slicing), never
    by hand.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     y = eb.input([[1.0, 2.0], [3.0, 4.0]]).T[0] * 2
        >>> y.shape, y.value()
        ((2,), array([2., 6.], dtype=float32))
    """

    if TYPE_CHECKING:
        graph: Columns
        id: int  # node, and above it the view it is seen through: see graph.views
        spec: Spec

    __slots__ = ()

    #: The class of arrays of expressions of this class, see `Columns.expression_class`.
    of_arrays: ClassVar[type[Any]]

    def value(self) -> Any:
        """The value: an array of `shape` that is the caller's own, or a NumPy scalar; runs what is pending, once.

        Raises:
            EdBatchError: the graph was left by an exception, or a kernel failed.
        """
        return self.graph.value(self)

    def __float__(self) -> float:
        found = self.item()
        self.graph.note_read(found)
        return found

    def __await__(self) -> Generator[Expression, Any, Any]:
        """`await x` is the value of x; in programs of `edbatch.run`, what all of them wait for is computed at once."""
        value = (yield self) if driven.get() else self.graph.value(self)
        return value

    @explaining
    def backward(self, gradient: Any = None) -> None:
        """Compute the gradients of this expression, and add them to those of the parameters it depends on.

        Gradients add up over calls until an update applies and forgets them, or `zero_grad()` of the trainer, of the
        collection or of the parameter does. A trainer's update forgets those of its own parameters: others that this
        expression depends on, as the discriminator's where it is the generator's loss, keep theirs.

        Runs what is pending. The graph may go on growing; every call goes back through the whole graph. A run that it
        starts saves what going back reads; what ran before is partly computed again, which takes that its parameters
        are what they were. A warning says if it leads to no parameter though the graph has some (frozen ones count), or
        if what `float(x)` or a function of `math` has read of the graph is a constant of it.

        Args:
            gradient: of this expression, an array of its shape; 1 by default, for a scalar only.

        Raises:
            EdBatchError: this is no scalar and there is no `gradient`, or it has another shape; the graph has no
                values; a NaN was computed in a graph that checks for it; a parameter whose values going back needs has
                changed since what is gone back through ran. Parameters then have the gradients they had.

        Example:
            >>> import edbatch as eb
            >>> W = eb.ParameterCollection().add_parameters(2, init=1.0)
            >>> with eb.Graph():
            ...     eb.dot(W, eb.input([3.0, 4.0])).backward()
            >>> W.grad()
            array([3., 4.], dtype=float32)
        """
        self.graph.backward(self, gradient)

    def gradient(self) -> Any:
        """The gradient of what `backward` was last called on with respect to this expression, of its shape.

        It counts every use of the expression between it and what `backward` was called on; uses inside of cells, too.
        An expression that is a view of another (a slice, a transposition, another shape, what `stop_gradient` gives) is
        the other: it has that part of the other's gradient, from uses of the other too. Equal computations are
        different expressions, each with the gradient of its own uses; but `eb.zeros` of one shape, `eb.ones` of one
        and `eb.parameter` of one are one expression, whoever calls them. Constants and what depends on no input have
        gradients, too.

        Gradients of inputs are not computed by `backward`, but by a second backward pass at the first call for one:
        call it before parameters are changed. `eb.gradients` computes those that it is asked for in one.

        Returns:
            An array of the caller's own (or a NumPy scalar), on the host.

        Raises:
            EdBatchError: `backward` was not called on an expression of this graph; parameters whose values are needed
                have changed since.

        Example:
            >>> import edbatch as eb
            >>> with eb.Graph():
            ...     h = eb.exp(eb.scalar(0.0))
            ...     eb.sum([h, h]).backward()
            >>> h.gradient()
            np.float32(2.0)
        """
        return self.graph.gradient(self)

    @classmethod
    def __torch_function__(cls, function: Any, *_: Any) -> Any:
        name = function.__name__
        instead = f"eb.{name}" if has_function(name) else FUNCTIONS.get(name, "a function of eb")
        raise MissingOperatorError(
            f"torch.{name} of an expression: expected {instead}; edbatch.torch.Batched runs modules of PyTorch"
        )

    def __eq__(self, other: object) -> NoReturn:
        raise EdBatchError(
            "== of an expression: its value is not known before it runs; compare .value(), or use `is`; "
            "eb.equal(a, b) is 1 where entries are equal"
        )

    __ne__ = __eq__
    __hash__ = object.__hash__

    def __copy__(self) -> Expression:
        return type(self)(self.graph, self.id, self.spec)

    def __reduce__(self) -> NoReturn:
        self.graph.__reduce__()
        raise AssertionError("a graph refuses to be copied")

    def __repr__(self) -> str:
        try:
            return f"Expression({self.graph.type_of(self)}, shape={self.shape})"
        except EdBatchError:  # of a graph that has forgotten
            return f"Expression(shape={self.shape})"
