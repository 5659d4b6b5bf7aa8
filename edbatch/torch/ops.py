"""Modules of PyTorch as ops of graphs: each is called once for each batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils._pytree import tree_unflatten

import edbatch as eb
from edbatch.errors import EdBatchError, checked_flag, shown
from edbatch.torch.inputs import current, input
from edbatch.torch.tapes import Calls


class Op:
    """A module, or a function of tensors, as an op of graphs; `op` makes it.

    Attributes:
        module: what it calls.
    """

    def __init__(self, module: Callable[..., Any], vmap: bool, name: str) -> None:
        self.module, self._vmap, self.__name__ = module, vmap, name
        owner = getattr(module, "__self__", module)
        self._owner = owner if isinstance(owner, nn.Module) else None
        self._calls: dict[Any, Calls] = {}

    def __call__(self, *operands: Any) -> Any:
        """Record a call on expressions, parameters, arrays or tensors.

        Returns:
            What the module returns, with expressions for tensors.
        """
        if not operands:
            raise EdBatchError(f"op {self.__name__}: expected at least one operand")
        xs = [x if isinstance(x, eb.Expression) else _lifted(x) for x in operands]
        specs = tuple([x.spec for x in xs])
        calls = self._calls.get(specs)
        if calls is None:
            calls = self._calls.setdefault(specs, Calls(self, specs))
        *parts, _ = eb.split(calls.record(*xs, calls.anchor), calls.sizes)
        found = [x if len(shape) == 1 else eb.reshape(x, shape) for x, shape in zip(parts, calls.shapes, strict=True)]
        return found[0] if calls.tree.is_leaf() else tree_unflatten(found, calls.tree)

    def run(self, xs: list[torch.Tensor], buffers: dict[str, torch.Tensor] | None = None) -> Any:
        """Call the module on a batch; `buffers`: that it computes with instead of its own."""
        if self._owner is not None:
            self._check(self._owner)
        call: Any = self.module
        if buffers is not None and isinstance(call, nn.Module):
            module, own = call, buffers
            call = lambda *xs: torch.func.functional_call(module, own, xs)  # noqa: E731
        return (torch.func.vmap(call, randomness="different") if self._vmap else call)(*xs)

    def example(self, at: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Rows by which the shapes of the results are found, for the operand of this number."""
        return torch.zeros(shape, dtype=dtype)

    def buffers(self) -> dict[str, torch.Tensor]:
        """Copies of the module's buffers, by name."""
        return {name: buffer.clone() for name, buffer in self._owner.named_buffers()} if self._owner else {}

    def _check(self, owner: nn.Module) -> None:
        """Refuse what would mix samples, or not belong to the module whose function calls it."""
        for part in owner.modules():
            if isinstance(part, _BatchNorm) and (part.training or part.running_mean is None):
                raise EdBatchError(
                    f"{type(part).__name__} in training mixes the rows of a batch, which here are whatever nodes run "
                    "together; expected eval(), or LayerNorm or GroupNorm"
                )
        inputs = current.get()
        if inputs is not None and owner not in inputs.modules:
            raise EdBatchError(
                f"its {type(owner).__name__} is not a submodule of the edbatch.torch.Module whose function "
                "calls it; assign it, `module.NAME = ...`, before you make the optimizer"
            )

    def __repr__(self) -> str:
        return f"<op {self.__name__}>"

    def __reduce__(self) -> Any:
        return Op, (self.module, self._vmap, self.__name__)


def _lifted(operand: Any) -> Any:
    if isinstance(operand, torch.Tensor):
        return input(operand)
    return eb.parameter(operand) if isinstance(operand, eb.Parameter) else eb.input(operand)


def op(module: Callable[..., Any], *, vmap: bool = False, name: str | None = None) -> Op:
    """Make an op of a module, or of a function of tensors, that graphs call like any op of EdBatch's.

    A call on expressions records one node. All nodes of a batch, whatever samples they are of, are ONE call of the
    module, with tensors [n, *shape]; it returns tensors [n, *shape of a result], in tuples, lists or dictionaries if
    they are several. Its gradient is PyTorch's: the tape of each call is kept with the graph, so that the masks of
    dropout are those of the call. Under `torch.no_grad()` nothing is kept. The shapes of the results are found at the
    first call with operands of these shapes: the module is called with two rows of zeros, which leaves its buffers and
    PyTorch's random numbers alone.

    After `backward()` of an expression, gradients have been added to the `.grad` of the module's parameters. In the
    function of an `edbatch.torch.Module` the module has to be a submodule of that, `module.score = layers`; its
    gradients then come by `loss.backward()` in PyTorch, with all others.

    Make an op once, as a layer, and hold it: graphs do not.

    Args:
        module: it treats each row by itself, on the CPU, and returns tensors of the graph's dtype.
        vmap: whether it knows no batch axis: it is mapped over the rows by `torch.func.vmap`.
        name: in reports and errors; by default its own.

    Raises:
        EdBatchError: it is no function. At the first call with operands of some shapes, if the module raises an
            exception, is BatchNorm in training, or returns anything else than such tensors. When the graph runs: the
            same, and of a module that is no submodule (see above).

    Example:
        >>> import torch, edbatch as eb, edbatch.torch
        >>> layers = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.GELU(), torch.nn.Linear(3, 1))
        >>> score = edbatch.torch.op(layers, name="score")
        >>> with eb.Graph() as graph:
        ...     loss = eb.sum([score(eb.input([1.0, n]))[0] for n in range(100)])
        >>> loss.backward()
        >>> graph.report().batches, layers[2].bias.grad
        (2, tensor([100.]))
    """
    if not callable(module) or isinstance(module, type):
        raise EdBatchError(f"edbatch.torch.op: expected a module or a function of tensors, got {shown(module)}")
    own: str = getattr(module, "__name__", type(module).__name__)
    return Op(module, checked_flag("edbatch.torch.op: vmap", vmap), own if name is None else name)
