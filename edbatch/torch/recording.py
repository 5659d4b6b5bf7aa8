"""The function mode under which a module's code is recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

import edbatch as eb
from edbatch.errors import EdBatchError
from edbatch.torch.inputs import Inputs
from edbatch.torch.registry import HANDLERS, VIEWS, name_of, refused
from edbatch.torch.weights import Weight

#: Functions that make the same tensor of the same arguments; what they make in a cell is a constant of it.
_CONSTANTS = frozenset({torch.zeros, torch.ones, torch.full, torch.eye, torch.arange, torch.linspace, torch.tensor})


class Recording(TorchFunctionMode):
    """Has functions of PyTorch record where they meet lazy tensors or parameters of the module.

    Args:
        weights: the parameters.
        inputs: the tensors that are met besides.
        cells: see `edbatch.torch.cells`.

    Attributes:
        grad: whether gradients are computed at all.
        graph: the graph of the samples.
        views: ids of its values that are views of others or have some.
        lazy: the class of lazy tensors.
    """

    lazy: ClassVar[type]
    graph: eb.Graph

    def __init__(self, weights: Sequence[Weight], inputs: Inputs, cells: dict[Any, Callable[..., Any]]) -> None:
        super().__init__()
        self.cells = cells
        self.grad = torch.is_grad_enabled()
        self.views: set[int] = set()
        self._parameters = {id(weight.theirs): weight.ours for weight in weights}
        self._inputs = inputs
        self._dtype = torch.float32 if inputs.dtype == np.float32 else torch.float64
        self._constants: dict[int, torch.Tensor] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call ours or theirs."""
        handler = HANDLERS.get(func)
        if handler is not None and self.lazy in types:
            return called(func, handler, args, kwargs)
        for kind in types:
            if hasattr(kind, "is_lazy"):
                return kind.__torch_function__(func, types, args, kwargs)
        kwargs = kwargs or {}
        if handler is not None and self._has_parameter(args, kwargs):
            return called(func, handler, args, kwargs)
        found = func(*args, **kwargs)
        if func in _CONSTANTS and _in_trace() and not found.requires_grad:
            self._constants[id(found)] = found
        elif self._constants and args and func.__name__.endswith("_"):  # written to
            self._constants.pop(id(args[0]), None)
        return found

    def _has_parameter(self, args: Any, kwargs: Any) -> bool:
        own = self._parameters
        for x in args:
            if id(x) in own:
                return True
        return any(id(x) in own for x in kwargs.values()) if kwargs else False

    def lifted(self, tensor: torch.Tensor) -> Any:
        """A tensor of PyTorch as an operand of EdBatch's functions."""
        ours = self._parameters.get(id(tensor))
        if ours is not None:
            return ours
        if not _in_trace():
            return self._inputs.of(self._promoted(tensor))
        self.expect_constant(tensor)
        return eb.input(tensor.numpy())

    def expect_constant(self, tensor: Any) -> None:
        """Refuse a tensor in a cell that may be another one when the cell is called again."""
        if _in_trace() and self._constants.get(id(tensor)) is not tensor:
            raise EdBatchError(
                "edbatch.torch.cell: a tensor that is neither an argument nor a parameter is used in a cell, where it "
                "would be a constant; expected it as an argument"
            )

    def _promoted(self, tensor: torch.Tensor) -> Any:
        """The tensor with the dtype that PyTorch gives what is computed of it and of values of the graph's."""
        if not tensor.is_floating_point() or tensor.dtype is self._dtype:
            return tensor
        if not tensor.ndim or tensor.dtype.itemsize < self._dtype.itemsize:
            return tensor.to(self._dtype)
        return tensor  # which inputs refuse

    def note_views(self, *xs: Any) -> None:
        """Remember that writing to one may change the others."""
        self.views.update([x.id for x in xs if isinstance(x, eb.Expression) and x.graph is self.graph])

    def note_view(self, x: Any, result: Any) -> None:
        """The same of one or several views of one, fast."""
        kind: Any = self.lazy
        graph, views = self.graph, self.views
        if x.__class__ is kind and x.graph is graph:
            views.add(x.id)
        for one in result if result.__class__ is tuple else (result,):
            if one.__class__ is kind and one.graph is graph:
                views.add(one.id)


#: That of the module that runs.
current: ContextVar[Recording] = ContextVar("edbatch_torch_recording")


def _in_trace() -> bool:
    graph = eb.current_graph()
    return graph is not None and graph.is_trace


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


def called(func: Any, handler: Any, args: Any, kwargs: Any) -> Any:
    """Call our function with the arguments of theirs.

    Raises:
        EdBatchError: it has no such arguments.
    """
    try:
        result = handler(*args, **kwargs) if kwargs else handler(*args)
    except TypeError as error:
        if isinstance(error, EdBatchError):
            raise
        raise refused(name_of(func), f"{error}") from error
    if handler in VIEWS:
        recording().note_view(args[0] if args else kwargs.get("input"), result)
    return result if torch.is_grad_enabled() else without_gradient(result)


def without_gradient(result: Any) -> Any:
    """A result that was computed in a block of `torch.no_grad()` in the module."""
    if not recording().grad:
        return result
    if isinstance(result, tuple | list):
        made = [without_gradient(one) for one in result]
        return getattr(type(result), "_make", type(result))(made)  # of classes with names, too
    return eb.stop_gradient(result) if isinstance(result, eb.Expression) else result


#: What to do where a tensor is written to.
WRITTEN = "write x = f(x), which makes another"


def written(x: Any, result: Any, name: str) -> Any:
    """Have a lazy tensor be another value from now on, wherever it is known.

    Raises:
        EdBatchError: another tensor would have to change with it, or there is another shape.
    """
    graph = eb.current_graph()
    if not isinstance(x, eb.Expression) or graph is not x.graph or graph.is_trace:
        raise refused(name, f"{WRITTEN} (tensors from outside cannot be written to)")
    if not torch.is_grad_enabled():
        raise refused(f"{name} in torch.no_grad()", WRITTEN)
    if x.id in recording().views:
        raise refused(f"{name} where the tensor has views, or is one, or is of a cell,", WRITTEN)
    if result.spec is not x.spec:
        raise EdBatchError(
            f"edbatch.torch: {name}: expected a result of shape {list(x.shape)}, got {list(result.shape)}"
        )
    x.id = result.id
    return x
