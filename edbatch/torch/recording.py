"""The function mode under which a module's code is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, ClassVar

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

import edbatch as eb
from edbatch.errors import EdBatchError
from edbatch.torch.inputs import Inputs
from edbatch.torch.registry import HANDLERS, VIEWS, WRITTEN, Unlike, another_of, name_of, refused
from edbatch.torch.weights import Weight

#: Functions that make the same tensor of the same numbers: in a cell, a constant, as is what is computed of constants.
_CONSTANTS = frozenset({torch.zeros, torch.ones, torch.full, torch.eye, torch.arange, torch.linspace, torch.tensor})

#: Functions of tensors that give numbers to Python, and that write to tensors (besides those with one `_` at the end).
_READING = frozenset((
    "item", "tolist", "numpy", "__bool__", "__float__", "__int__", "__index__", "__complex__", "__array__",
    "__contains__", "__format__", "is_nonzero", "equal", "allclose", "__dlpack__",
))  # fmt: skip
_WRITING = frozenset((
    "__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ipow__", "__imod__", "__iand__", "__ior__",
))  # fmt: skip


class Recording(TorchFunctionMode):
    """What one call of a module records; as a mode, it has functions of PyTorch record that are given a parameter.

    Args:
        weights: the parameters.
        inputs: the tensors that are met besides.
        cells: see `edbatch.torch.cells.Cells`.

    Attributes:
        parameters: EdBatch's, by the `id` of PyTorch's.
        callers: what is called instead of the module's parts, see `edbatch.torch.submodules`.
        grad: whether gradients are computed at all.
        is_kept: whether what is recorded is kept, and appended again to other graphs.
        origins: in a cell that is traced, of each view the id of what it is a view of; None: no cell is traced.
        graph: the graph of the samples.
        views: ids of its values that are views of others or have some.
        lazy, rows: the classes of lazy tensors, and of those that are known by their rows.
        theirs: see `functions.theirs`.
    """

    theirs: ClassVar[Any]
    lazy: ClassVar[Any]
    rows: ClassVar[Any]
    graph: eb.Graph

    def __init__(self, weights: Sequence[Weight], inputs: Inputs, cells: Any, callers: dict[Any, Any]) -> None:
        super().__init__()
        self.cells, self.callers = cells, callers
        self.grad = torch.is_grad_enabled()
        self.is_kept = False
        self.origins: dict[int, int] | None = None
        self.views: set[int] = set()
        self.parameters = {id(weight.theirs): weight.ours for weight in weights}
        self._inputs = inputs
        self._dtype = torch.float32 if inputs.dtype == np.float32 else torch.float64
        self._constants: dict[int, torch.Tensor] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call ours or theirs."""
        if func in _CONSTANTS and self.origins is None:
            return func(*args, **kwargs) if kwargs else func(*args)
        if current.get(None) is not self:  # which an interrupt has left on PyTorch's stack
            return func(*args, **(kwargs or {}))
        handler = HANDLERS.get(func)
        if types:
            if self.rows in types:
                return self.rows.__torch_function__(func, types, args, kwargs)
            if handler is not None and self.lazy in types:
                return called(func, handler, args, kwargs)
            for kind in types:
                if hasattr(kind, "is_lazy"):
                    return kind.__torch_function__(func, types, args, kwargs)
        kwargs = kwargs or {}
        if handler is not None and self._has_parameter(args, kwargs):
            if args and isinstance(args[0], torch.Tensor) and not args[0].numel():  # nor has the result entries
                with torch.no_grad():
                    return func(*args, **kwargs)
            return called(func, handler, args, kwargs)
        name = func.__name__
        is_writing = name in _WRITING or (name[-1] == "_" and name[-2] != "_")
        if self.origins is not None and is_writing and not self._is_constant_write(args):
            raise EdBatchError(
                f"edbatch.torch.cell: {name} writes to a tensor in a cell, which would happen only when it is "
                "traced; write to it outside, or use functions that make another tensor"
            )
        if name in _READING and args and (self.origins is not None or self.is_kept):
            self._expect_readable(args[0], name)
        found = func(*args, **kwargs)
        if self.is_kept and isinstance(found, torch.Tensor) and self._has_parameter(args, kwargs):
            raise self._changing(name_of(func))
        if self.origins is not None and isinstance(found, torch.Tensor) and not found.requires_grad:
            tensors = [x for x in args if isinstance(x, torch.Tensor)]
            if func in _CONSTANTS or (tensors and all(map(self._is_constant, tensors))):
                self._constants[id(found)] = found
        return found

    def _expect_readable(self, x: Any, name: str) -> None:
        """Refuse to read numbers that are others when what is recorded is used again."""
        if id(x) in self.parameters or (isinstance(x, torch.Tensor) and x.requires_grad):
            raise self._changing(name)
        if isinstance(x, torch.Tensor):
            self.expect_constant(x)

    def _changing(self, name: str) -> EdBatchError:
        where = "a cell" if self.origins is not None else "edbatch.torch.Batched(..., replay=True)"
        return EdBatchError(
            f"edbatch.torch: {name} of a parameter in {where}: its numbers change, and what is recorded is used again; "
            "expected functions that are recorded (docs/torch-functions.md), or neither"
        )

    def keep(self, function: Any, args: Any, named: Any) -> Any:
        """Call a function in a graph that is kept."""
        graph: Any = eb.current_graph()
        before, self.graph, self.views, self.is_kept = (self.graph, self.views), graph, set(), True
        try:
            with self:
                return function(*args, **named)
        finally:
            (self.graph, self.views), self.is_kept = before, False

    def _has_parameter(self, args: Any, kwargs: Any) -> bool:
        own = self.parameters
        for x in args:
            if id(x) in own or (x.__class__ in (list, tuple) and any(id(part) in own for part in x)):
                return True
        return any(id(x) in own for x in kwargs.values()) if kwargs else False

    def lifted(self, tensor: torch.Tensor) -> Any:
        """A tensor of PyTorch as an operand of EdBatch's functions."""
        ours = self.parameters.get(id(tensor))
        if ours is not None:
            return ours
        if self.origins is None and not self.is_kept:
            return self._inputs.of(self.promoted(tensor))
        self.expect_constant(tensor)
        if tensor.requires_grad and self.grad:
            raise EdBatchError(
                "edbatch.torch.Batched(..., replay=True): a tensor that requires a gradient is used in a sample, which "
                "is kept with its present numbers; write tensor.detach(), or leave out replay=True"
            )
        return eb.input(self.promoted(tensor).detach().numpy().copy())

    def is_of_sample(self, tensor: Any) -> bool:
        """Whether a tensor is one of a sample's, to which no gradient flows."""
        is_own = self.origins is None and id(tensor) not in self.parameters
        return is_own and not tensor.requires_grad and tensor.is_floating_point() and bool(tensor.numel())

    def expect_constant(self, tensor: Any) -> None:
        """Refuse a tensor in a cell that may be another one when the cell is called again."""
        if self.origins is not None and not self._is_constant(tensor):
            raise EdBatchError(
                "edbatch.torch.cell: a tensor that is neither an argument nor a parameter is used in a cell, where it "
                "would be a constant; pass it as an argument"
            )

    def _is_constant(self, tensor: Any) -> bool:
        """Whether a tensor is the same in all calls of the cell that is traced."""
        return self._constants.get(id(tensor)) is tensor or bool(self.cells.is_buffer(tensor))

    def _is_constant_write(self, args: Any) -> bool:
        """Whether a tensor that the traced cell has made is written to, with what is the same in all calls."""
        tensors = [x for x in tree_leaves(args) if isinstance(x, torch.Tensor)]
        return all(map(self._is_constant, tensors)) and not self.cells.is_buffer(args[0])

    def promoted(self, tensor: torch.Tensor) -> Any:
        """The tensor with the dtype that PyTorch gives what is computed of it and of values of the graph's."""
        if not tensor.is_floating_point() or tensor.dtype is self._dtype:
            return tensor
        if not tensor.ndim or tensor.dtype.itemsize < self._dtype.itemsize:
            return tensor.to(self._dtype)
        return tensor  # which inputs refuse

    def note_views(self, x: Any, views: Any) -> None:
        """Remember that writing to one may change the others."""
        if self.origins is None:
            kind, graph, noted = eb.Expression, self.graph, self.views
            for one in (x, *views):
                if isinstance(one, eb.ExpressionArray):
                    noted.update(one.ids.tolist())
                elif isinstance(one, kind) and one.graph is graph:
                    noted.add(one.id)
        elif isinstance(x, eb.Expression):
            ids = [one.id for one in views if isinstance(one, eb.Expression)]
            self.origins.update(dict.fromkeys(ids, self.origins.get(x.id, x.id)))


#: That of the module that runs.
current: ContextVar[Recording] = ContextVar("edbatch_torch_recording")


def recording() -> Recording:
    """That of the module that runs.

    Raises:
        EdBatchError: none does.
    """
    found = current.get(None)
    if found is None:
        raise EdBatchError("edbatch.torch: a lazy tensor is used outside of its module's call; return it instead")
    return found


def lift(x: Any) -> Any:
    """Convert a tensor, a parameter or a number to an operand of EdBatch's functions."""
    if isinstance(x, eb.Expression):  # mostly
        return x
    if isinstance(x, torch.Tensor):
        return recording().lifted(x)
    return getattr(x, "unread", x)


def node(x: Any) -> Any:
    """The same as an expression."""
    if isinstance(x, eb.Expression):
        return x
    found = lift(x)
    if isinstance(found, eb.Parameter):
        return eb.parameter(found)
    return found if isinstance(found, eb.Expression) else eb.input(found)


def stacked(parts: Any) -> Any:
    """A lazy tensor of rows, a list of expressions or an array of them."""
    if len(parts) == 1:
        return eb.unsqueeze(parts[0], 0)
    return Recording.rows(parts) if recording().origins is None else eb.stack(parts)  # in a cell there is one shape


def rows_of(x: Any, in_front: bool = False) -> Any:
    """The rows of a lazy tensor [n, ...], or [1, n, ...], as an array of expressions; None: they are not at hand."""
    return x.rows if x.__class__ is Recording.rows and x.parts is not None and x.in_front is in_front else None


def whole_of(x: Any) -> Any:
    """A result as it is returned: a lazy tensor that is known by its rows as a whole."""
    return x.unread if x.__class__ is Recording.rows else x


def called(func: Any, handler: Any, args: Any, kwargs: Any) -> Any:
    """Call our function with the arguments of theirs, or theirs, where ours has no such arguments."""
    try:
        result = handler(*args, **kwargs) if kwargs else handler(*args)
    except (TypeError, Unlike) as error:
        if isinstance(error, EdBatchError):
            raise
        result = Recording.theirs(func, args, kwargs or {})
    if handler in VIEWS:
        recording().note_views(
            args[0] if args else kwargs.get("input"), result if result.__class__ is tuple else (result,)
        )
    return result if torch.is_grad_enabled() else without_gradient(result)


def without_gradient(result: Any) -> Any:
    """A result that was computed in a block of `torch.no_grad()` in the module."""
    if not recording().grad:
        return result
    if isinstance(result, tuple | list):
        made = [without_gradient(one) for one in result]
        return getattr(type(result), "_make", type(result))(made)  # of classes with names, too
    if result.__class__ is Recording.rows:
        return Recording.rows(eb.stop_gradient(result.rows), result.in_front)
    return eb.stop_gradient(result) if isinstance(result, eb.Expression) else result


def written(x: Any, result: Any, name: str) -> Any:
    """Have a lazy tensor be another value from now on, wherever it is known.

    Raises:
        EdBatchError: another tensor would have to change with it, or there is another shape.
    """
    graph = eb.current_graph()
    if not isinstance(x, eb.Expression) or graph is not x.graph or recording().origins is not None:
        raise refused(name, f"{another_of(name)} (tensors from outside cannot be written to, parameters between calls)")
    if recording().grad and not torch.is_grad_enabled():
        raise refused(f"{name} in torch.no_grad()", WRITTEN)
    if x.id in recording().views:
        raise refused(f"{name} where the tensor has views, or is one, or is of a cell,", WRITTEN)
    result = whole_of(result)
    if not isinstance(result, eb.Expression):
        raise refused(name, "a tensor of truth values is another")
    if result.spec is not x.spec:
        raise EdBatchError(
            f"edbatch.torch: {name}: expected a result of shape {list(x.shape)}, got {list(result.shape)}"
        )
    x.id = result.id
    return x
