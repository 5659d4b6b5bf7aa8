"""The boundary between PyTorch's tape and a graph of EdBatch: a mini-batch is one node of the tape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

import edbatch as eb
from edbatch.errors import EdBatchError, shown
from edbatch.torch.inputs import Inputs
from edbatch.torch.recording import whole_of
from edbatch.torch.tapes import Gathered, gathering
from edbatch.torch.unread import Kept, Unread
from edbatch.torch.weights import Weight


class Batch:
    """What n samples have recorded in a graph.

    Args:
        place: for errors.
        weights, inputs: what it computes with; others: parameters that ops compute with, see `edbatch.torch.op`.
        sparse: whether gradients of tables are sparse tensors.
    """

    def __init__(
        self, place: str, graph: eb.Graph, weights: Sequence[Weight], others: Sequence[torch.Tensor], inputs: Inputs,
        sparse: bool,
    ) -> None:  # fmt: skip
        self.place, self._graph, self._weights, self._inputs, self._sparse = place, graph, weights, inputs, sparse
        self._tensors = [*inputs.tensors, *(weight.theirs for weight in weights), *others]
        self._outputs: list[Any] = []

    def results(self, recorded: list[Any], stack: bool) -> Any:
        """What the samples return, with tensors that take part in autograd; `stack`: as one, if they are of one shape.

        Raises:
            EdBatchError: a sample has returned something else.
        """
        alone = (eb.Expression, torch.Tensor, Kept)
        is_flat = all(isinstance(x, alone) or hasattr(x, "is_lazy") for x in recorded)
        leaves, tree = (recorded, None) if is_flat else tree_flatten(recorded)
        found = [x.result() if x.__class__ is Kept else whole_of(x) for x in leaves]
        groups: dict[Any, list[int]] = {}
        for at, leaf in enumerate(found):
            if isinstance(leaf, eb.Expression) and not isinstance(leaf, eb.ExpressionArray):
                groups.setdefault(leaf.spec, []).append(at)
            elif leaf is not None and not isinstance(leaf, bool | int | float | str | torch.Tensor | Unread):
                raise EdBatchError(
                    f"{self.place}: a sample gave {shown(leaf)}; expected tensors, expressions, numbers and texts, "
                    "also in tuples, lists and dictionaries"
                )
        self._outputs = [eb.array([found[at] for at in places]) for places in groups.values()]
        tensors = self._run() if groups else ()
        if stack and is_flat and [len(found)] == list(map(len, groups.values())):
            return tensors[0]
        for places, tensor in zip(groups.values(), tensors, strict=True):
            for at, one in zip(places, tensor.unbind(0), strict=True):
                found[at] = one
        found = [leaf.tensor if isinstance(leaf, Unread) else leaf for leaf in found]
        if stack and is_flat and len({(x.shape, x.dtype) for x in found}) == 1:
            return torch.stack(found)
        return found if tree is None else tree_unflatten(found, tree)

    def _run(self) -> tuple[torch.Tensor, ...]:
        needs = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in self._tensors)
        with torch.set_grad_enabled(needs):  # for ops
            self._graph.run(saving=needs)
        if not needs:
            return self.values()
        found: tuple[torch.Tensor, ...] = _Node.apply(self, *self._tensors)
        return found

    def values(self) -> tuple[torch.Tensor, ...]:
        """The values as tensors of their own."""
        return tuple(torch.from_numpy(output.value()) for output in self._outputs)

    def gradients(self, given: Sequence[torch.Tensor | None], needed: Sequence[bool]) -> list[torch.Tensor | None]:
        """Gradients of the tensors that need some, given those of the outputs."""
        pairs = [(x, g.numpy()) for x, g in zip(self._outputs, given, strict=True) if g is not None]
        all_of = [*self._inputs.expressions, *(weight.ours for weight in self._weights)]
        found: list[torch.Tensor | None] = [None] * len(self._tensors)
        places = [at for at, need in enumerate(needed[: len(all_of)]) if need]
        if pairs and any(needed):
            outputs, gradients = zip(*pairs, strict=True)
            wanted = [all_of[at] for at in places]
            token = gathering.set(gathered := Gathered(self._tensors))
            try:
                of, sparse = list(gradients), self._sparse
                returned = eb.gradients(list(outputs), wanted, of, sparse=sparse, unused_as_none=True)
            finally:
                gathering.reset(token)
            for at, x, gradient in zip(places, wanted, returned, strict=True):
                found[at] = None if gradient is None else _as_tensor(x, gradient)
            for at, tensor in enumerate(self._tensors):
                if needed[at] and (more := gathered.pop(tensor, None)) is not None:
                    found[at] = more if (other := found[at]) is None else other + more
        return found


def _as_tensor(x: Any, gradient: Any) -> torch.Tensor:
    if isinstance(gradient, tuple):
        rows, values = map(torch.from_numpy, gradient)
        return torch.sparse_coo_tensor(rows[None], values, x.shape, is_coalesced=True, check_invariants=False)
    return torch.from_numpy(np.asarray(gradient))


class _Node(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, batch: Batch, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        carrier: Any = torch.empty(0)
        carrier.batch = batch  # freed when PyTorch frees what it has saved, though the loss is still held
        ctx.save_for_backward(carrier, *tensors)  # it sees writes to them, and a second backward pass
        ctx.set_materialize_grads(False)
        return batch.values()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        batch = ctx.saved_tensors[0].batch
        if torch.is_grad_enabled():
            raise EdBatchError(f"{batch.place}: create_graph=True, gradients of gradients, is not supported")
        return None, *batch.gradients(gradients, ctx.needs_input_grad[1:])


def samples_of(
    place: str, lists: tuple[Any, ...], named: dict[str, Any]
) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The arguments of each call of a function of one sample, by place and by name."""
    found = []
    for name, one in (*enumerate(lists, 1), *named.items()):
        try:
            if isinstance(one, str | bytes | dict | set):  # whose parts are no samples
                raise TypeError
            found.append(list(one))
        except TypeError:
            raise EdBatchError(
                f"{place}: argument {name}: expected a list of samples, got {shown(one)}; to pass one "
                "value for all, use [x] * n"
            ) from None
    if len(set(map(len, found))) != 1:
        raise EdBatchError(f"{place}: expected lists of equal lengths, got {[len(x) for x in found]}")
    n = len(lists)
    return [(one[:n], dict(zip(named, one[n:], strict=True))) for one in zip(*found, strict=True)]


def drawn_seed() -> int:
    """A seed for dropout that follows from `torch.manual_seed`."""
    return int(torch.empty((), dtype=torch.int64).random_())
