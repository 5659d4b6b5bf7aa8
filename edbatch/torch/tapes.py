"""Calls of a module for batches of nodes; their tapes, kept with the graph; and gradients by these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from functools import cache
from inspect import Parameter as Argument
from inspect import Signature
from math import prod
from typing import Any
from weakref import ref

import numpy as np
import torch
from torch.utils._pytree import tree_flatten

import edbatch as eb
from edbatch.base.context_stack import contextmanager
from edbatch.errors import EdBatchError, shown
from edbatch.torch.recording import current as recording


class Gathered(dict[torch.Tensor, torch.Tensor]):
    """Gradients of PyTorch's parameters, summed over the batches of one backward pass.

    Args:
        only: the parameters that may get one; None: any.
    """

    def __init__(self, only: Iterable[torch.Tensor] | None = None) -> None:
        super().__init__()
        self._only = None if only is None else set(only)

    def add(self, parameter: torch.Tensor, gradient: torch.Tensor) -> None:
        """Add a gradient."""
        if self._only is not None and parameter not in self._only:
            raise EdBatchError(
                f"it computes with a parameter of shape {tuple(parameter.shape)} that edbatch.torch.Module does not "
                "have, so that it would get no gradient; expected it in a submodule there"
            )
        self[parameter] = self[parameter] + gradient if parameter in self else gradient

    def __call__(self) -> None:
        """Add them to `.grad`, through hooks, as PyTorch does."""
        torch.autograd.backward(list(self), list(self.values()))


#: Where a backward pass gathers gradients that are returned; those of any other are added to `.grad`.
gathering: ContextVar[Gathered | None] = ContextVar("edbatch_torch_gathering", default=None)


@cache
def _anchor(dtype: np.dtype) -> eb.Parameter:
    """A parameter that every op reads: a backward pass leads to ops that have nothing with a gradient below, too."""
    with eb.device("cpu"):
        return eb.ParameterCollection(dtype=dtype).add_parameters((), "edbatch.torch.op runs on the CPU")


class Calls:
    """Calls of an op's module for operands of some shapes.

    A row of the result is what the module returns, side by side, and two numbers: of the call in its graph, and of the
    row in the call. By these the gradient finds the tape.

    Args:
        op: see `edbatch.torch.ops.Op`.
        specs: of the operands.

    Attributes:
        tree, shapes: of what the module returns.
        sizes: of the parts of a row.
        record: the foreign op, whose last operand is the anchor.
    """

    def __init__(self, op: Any, specs: Sequence[Any]) -> None:
        self._op = ref(op)  # types, and what they call, live as long as the process
        self._numpy = specs[0].dtype
        self._dtype = torch.from_numpy(np.empty(0, self._numpy)).dtype
        self.anchor = _anchor(self._numpy)
        try:
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                rows = [op.example(at, (2, *spec.shape), self._dtype) for at, spec in enumerate(specs)]
                found = op.run(rows, op.buffers())
            ys, self.tree = tree_flatten(found)
            self.shapes = self._shapes_of(ys, 2)
        except Exception as error:
            text = str(error) if isinstance(error, EdBatchError) else f"{type(error).__name__}: {error}"
            raise EdBatchError(f"op {op.__name__}: {text}") from error
        self.sizes = (*map(prod, self.shapes), 2)

        def forward(*arrays: Any) -> np.ndarray:
            return self._forward(arrays[:-1])

        names = [f"x{at}" for at in range(len(specs))]
        arguments = [Argument(name, Argument.POSITIONAL_OR_KEYWORD) for name in (*names, "anchor")]
        forward.__name__, forward.__signature__ = op.__name__, Signature(arguments)  # type: ignore[attr-defined]
        self.record = eb.foreign((sum(self.sizes),))(forward)
        self.record.gradient(lambda gradient, *arrays: [*self._backward(gradient, arrays[-1]), None])

    def _shapes_of(self, ys: Sequence[Any], n: int) -> list[tuple[int, ...]]:
        """The shapes of the results for a row, of those for n."""
        for y in ys:
            expected = f"expected a tensor [{n}, ...] of {self._dtype} on the CPU for {n} rows"
            if not isinstance(y, torch.Tensor):
                raise EdBatchError(f"{expected}, got {shown(y)}")
            if y.dtype != self._dtype or y.device.type != "cpu" or not y.numel() or not y.ndim or len(y) != n:
                raise EdBatchError(f"{expected}, got {list(y.shape)} of {y.dtype} on {y.device}")
        if not ys:
            raise EdBatchError("expected a tensor, or several, got none")
        return [tuple(y.shape[1:]) for y in ys]

    def _parts(self, rows: np.ndarray) -> list[np.ndarray]:
        """The results in rows, as views [n, *shape]."""
        ends = np.cumsum(self.sizes)
        return [
            rows[:, end - size : end].reshape(len(rows), *shape)
            for end, size, shape in zip(ends, self.sizes, self.shapes, strict=False)
        ]

    def _forward(self, arrays: Sequence[Any]) -> np.ndarray:
        op, n = self._op(), len(arrays[0])
        if op is None:
            raise EdBatchError("the op was deleted; keep a reference to it while graphs that call it run")
        sample: Any = recording.get(None)
        keeps = torch.is_grad_enabled() if sample is None else sample.grad  # whatever reads a value
        with torch.set_grad_enabled(keeps):
            xs = [torch.from_numpy(x).requires_grad_(keeps) for x in arrays]
            ys, tree = tree_flatten(op.run(xs))
        if self._shapes_of(ys, n) != self.shapes or tree != self.tree:
            raise EdBatchError(f"expected results of shapes {self.shapes} for each row, as for rows of zeros")
        tapes = eb.foreign_run().kept.setdefault(Calls, [])
        rows = np.empty((n, sum(self.sizes)), self._numpy)
        rows[:, -2], rows[:, -1] = len(tapes) if keeps else -1, np.arange(n)
        for part, y in zip(self._parts(rows), ys, strict=True):
            part[...] = y.detach().numpy()
        if keeps:
            tapes.append((xs, ys))
        return rows

    def _backward(self, gradient: np.ndarray, result: np.ndarray) -> list[np.ndarray | None]:
        """The gradients of the operands; those of parameters are gathered."""
        run = eb.foreign_run()
        number, rows = int(result[0, -2]), result[:, -1].astype(np.int64)
        if number < 0:
            raise EdBatchError("no gradient flows through what ran under torch.no_grad()")
        xs, ys = run.kept[Calls][number]
        whole = np.zeros((len(xs[0]), gradient.shape[1]), gradient.dtype)
        whole[rows] = gradient  # none flows to the others
        pairs = [(y, torch.from_numpy(part)) for y, part in zip(ys, self._parts(whole), strict=True) if y.requires_grad]
        if not pairs:
            return [None] * len(xs)
        outputs, given = zip(*pairs, strict=True)
        leaves = _leaves([y.grad_fn for y in outputs if y.grad_fn is not None], xs)
        with _without_hooks(leaves):
            found = torch.autograd.grad(outputs, [*xs, *leaves], given, retain_graph=True, allow_unused=True)
        gathered: Any = gathering.get()
        if gathered is None:
            gathered = run.at_end.setdefault(Gathered, Gathered())
        for leaf, one in zip(leaves, found[len(xs) :], strict=True):
            if one is not None:
                gathered.add(leaf, one)
        return [None if x is None else x.numpy(force=True)[rows] for x in found[: len(xs)]]


def _leaves(nodes: list[Any], xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors that a tape leads to, without its operands."""
    seen, found = set(nodes), []
    while nodes:
        node = nodes.pop()
        leaf = getattr(node, "variable", None)
        if leaf is not None and leaf.requires_grad and all(leaf is not x for x in xs):
            found.append(leaf)
        more = {below for below, _ in node.next_functions if below is not None} - seen
        seen |= more
        nodes += more
    return found


@contextmanager
def _without_hooks(leaves: Sequence[torch.Tensor]) -> Iterator[None]:
    """Have no hooks of tensors run: they are given the whole gradient, not that of each batch."""
    held = [(hooks, dict(hooks)) for leaf in leaves if (hooks := leaf._backward_hooks)]
    try:
        for hooks, _ in held:
            hooks.clear()
        yield
    finally:
        for hooks, known in held:
            hooks.update(known)
