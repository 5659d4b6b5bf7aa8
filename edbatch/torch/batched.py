"""A module of PyTorch's whose `forward` is of one sample, as a module of n samples."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import update_wrapper
from inspect import iscoroutine
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.parametrize import ParametrizationList
from torch.utils._pytree import tree_map

import edbatch as eb
import edbatch.torch.functions.by_rows
from edbatch.errors import EdBatchError, checked_flag, shown
from edbatch.torch.boundary import Batch, drawn_seed, samples_of
from edbatch.torch.cells import STATES, Cells
from edbatch.torch.inputs import Inputs
from edbatch.torch.lazy import LazyTensor
from edbatch.torch.recording import Recording, current
from edbatch.torch.state import changed, holder_of_lazy, is_users, state_of
from edbatch.torch.submodules import installed, note_callers
from edbatch.torch.unread import Kept
from edbatch.torch.weights import Computed, Weight


class _Bound:
    """The parameters of a module as EdBatch's, and its cells."""

    def __init__(self, places: list[Any]) -> None:
        self.places = places
        self.computed: dict[nn.Module, Callable[..., Any]] = {}  # for parts that compute weights
        self.cells: dict[Any, Any] = {}  # see `Cells`
        self.replays: dict[Any, Callable[..., Any]] = {}  # by the model's state
        self.weights: list[Weight] = []
        self.sparse = any(place[-1] for place in places)
        dtypes = {place[-2] for place in places} or {torch.float32}
        if not dtypes <= {torch.float32, torch.float64} or len(dtypes) > 1:
            raise EdBatchError(
                f"edbatch.torch.Batched: parameters of {', '.join(sorted(map(str, dtypes)))}: expected one of "
                "float32 and float64 for all, as model.float() gives them"
            )
        self.dtype = np.dtype(str(dtypes.pop()).removeprefix("torch."))
        collection = eb.ParameterCollection(dtype=self.dtype, device="cpu")
        for module, name, path, shape, _, is_table in places:
            if name:
                ours = collection.share(np.empty(shape, self.dtype), path, lookup=is_table)  # see `follow`
                self.weights.append(Weight(ours, module, name))
            else:
                weight = Computed(collection, module, path)
                self.computed[module] = lambda weight=weight: weight.theirs
                self.weights.append(weight)
        self.callers = self.computed.copy()


def _recorded(
    recording: Recording, call: Callable[..., Any], samples: list[tuple[Any, Any]], replays: bool
) -> list[Any]:
    """What samples return; coroutines run side by side."""
    with nullcontext() if replays else recording:  # it is on where a sample is recorded, not where it is compared
        results = [call(*args, **named) for args, named in samples]
        if not results or not all(map(iscoroutine, results)):
            return results
        try:
            return eb.run(results)
        finally:
            for one in results:  # of those that have not begun, where another has failed
                one.close()


class Batched(nn.Module):
    """An `nn.Module` of n samples, made of one whose `forward` is of ONE sample, which stays as it is.

    `Batched(model)(samples)` calls the model with each sample and computes what all of them have recorded in batches;
    it returns a list with the result of each: ordinary tensors, with gradients. Of a `forward` of several arguments,
    `batched(xs, mask=masks)` takes a list for each. Parameters are the model's own.

    In `forward`, what is computed of parameters is a lazy tensor: it has shape and dtype, and functions, methods and
    operators of tensors have PyTorch's meaning for it, or say that they are not supported. Reading one (`item()`,
    `if h.sum() > 0`, a comparison as an index) computes what all samples so far have recorded, and breaks the batch; in
    an `async def forward` samples wait for one another: `if await (h.sum() > 0)`.
    What is computed of tensors alone stays PyTorch's, and so do tensors that samples hold; gradients flow to them.

    In `eval()` dropout is off. Its masks follow from `torch.manual_seed`. Gradients of `nn.Embedding(sparse=True)`
    are sparse.

    Args:
        model: its parameters are on the CPU, of one dtype.
        stack: whether results of one shape are returned as one tensor [n, *shape] instead of a list.
        cells: "auto": submodules that are given tensors only are cells, where they can be, and what
            `edbatch.torch.cell` marks; "marked": the latter.
        replay: what a sample records is kept, and used again when the same sample comes again; see `edbatch.replay`.
        policy: see `edbatch.Graph`.

    Attributes:
        last: the graph of the last call; `batched.last.report()` tells what has run in which batches.

    Raises:
        EdBatchError: `model` is no module. When called: lists of several lengths, something is not supported.

    Example:
        >>> import torch, edbatch.torch
        >>> from torch import nn
        >>> class Reader(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.embed, self.cell = nn.Embedding(10, 4), nn.GRUCell(4, 4)
        ...         self.classify = nn.Linear(4, 2)
        ...     def forward(self, words):
        ...         h = torch.zeros(4)
        ...         for word in words:
        ...             h = self.cell(self.embed(torch.tensor(word)), h)
        ...         return self.classify(h)
        >>> model = Reader()
        >>> batched = edbatch.torch.Batched(model, stack=True)
        >>> y = batched([[3, 7, 9], [1], [4, 4]])
        >>> nn.functional.cross_entropy(y, torch.tensor([0, 1, 1])).backward()
        >>> y.shape, model.embed.weight.grad.shape
        (torch.Size([3, 2]), torch.Size([10, 4]))
    """

    last: eb.Graph | None

    def __init__(
        self, model: nn.Module, *, stack: bool = False, cells: str = "auto", replay: bool = False, policy: Any = None
    ) -> None:  # fmt: skip
        super().__init__()
        if not isinstance(model, nn.Module):
            raise EdBatchError(f"edbatch.torch.Batched: expected an nn.Module of one sample, got {shown(model)}")
        self.model = model
        self.stack = checked_flag("edbatch.torch.Batched: stack", stack)
        if cells not in ("auto", "marked"):
            raise EdBatchError(f"edbatch.torch.Batched: cells: expected 'auto' or 'marked', got {shown(cells)}")
        self.cells = cells
        self.replay = checked_flag("edbatch.torch.Batched: replay", replay)
        self.policy = policy
        self.last = None
        self.__dict__["_bound"] = None

    def forward(self, *lists: Any, **named: Any) -> Any:
        """The results of n samples; see the class."""
        place = "edbatch.torch.Batched"
        if current.get(None) is not None:
            raise EdBatchError(f"{place}: called inside the forward of another Batched; call the wrapped model instead")
        if torch.is_autocast_enabled("cpu"):
            raise EdBatchError(
                f"{place}: torch.autocast is not supported; call it under torch.autocast('cpu', enabled=False)"
            )
        self.last = None  # whose memory this call takes
        bound = self._followed()
        inputs = Inputs(bound.dtype, self)
        cells = Cells(bound.cells, self.model, self.cells == "auto")
        note_callers(self.model, bound.callers)
        hooked = nn.modules.module._has_any_global_hook()  # each call of a part runs them
        recording = Recording(bound.weights, inputs, cells, bound.computed if hooked else bound.callers)
        token = current.set(recording)
        try:
            with (
                eb.options(training=True),
                eb.Graph(self.policy, bound.dtype, seed=drawn_seed(), expression_class=LazyTensor) as graph,
            ):
                recording.graph = graph
                state: Any = state_of(self.model, False) if self.replay else None
                call = self._replayed(bound, state) if self.replay else self.model
                with installed():
                    try:
                        results = _recorded(recording, call, samples_of(place, lists, named), self.replay)
                    except EdBatchError as error:
                        if "of another graph" in str(error):
                            raise EdBatchError(f"{place}: {holder_of_lazy(self.model)}") from error
                        raise
                cells.expect_unchanged()
                if self.replay and (found := changed(self.model, self.model, state, True)):
                    raise EdBatchError(
                        f"{place}(..., replay=True): forward changes {found}, but a replayed forward does not run; "
                        "change it outside of forward, or leave out replay=True"
                    )
            if not results:
                return []
            self.last = graph
            for weight in bound.weights:
                if weight.is_changed():
                    raise EdBatchError(
                        f"{place}: {weight} was written to, or replaced, while samples were recorded; do "
                        "it between two calls"
                    )
            return Batch(place, graph, bound.weights, (), inputs, bound.sparse).results(results, self.stack)
        finally:
            current.reset(token)

    def _replayed(self, bound: _Bound, state: Any) -> Callable[..., Any]:
        """The same for samples that come again."""
        users = [part.forward for part in self.model.modules() if is_users(type(part))]
        state = state, torch.is_grad_enabled(), tuple([getattr(one, "__func__", one) for one in users])
        kept = bound.replays
        if state not in kept:

            def recorded(*args: Any, **named: Any) -> Any:
                return tree_map(Kept.of, current.get().keep(self.model, args, named))

            kept[state] = eb.replay(update_wrapper(recorded, self.model.forward))
            # It depends on what these read, too, which no name leads to: PyTorch finds a module's parts itself.
            recorded.__wrapped__ = users  # type: ignore[attr-defined]
            while len(kept) > STATES:
                kept.pop(next(iter(kept)), None)
        return kept[state]

    def _followed(self) -> _Bound:
        """The model's parameters as they are now."""
        places: list[Any] = []
        seen = set()
        for path, module in self.model.named_modules():
            if isinstance(module, ParametrizationList) and module._parameters:
                shapes = tuple([tuple(x.shape) for x in module.parameters()])
                dtypes = {x.dtype for x in module.parameters()}
                places += [(module, "", path.replace("parametrizations.", ""), shapes, *dtypes, False)]
            sparse = getattr(module, "sparse", False) is True
            for name, theirs in module._parameters.items():
                if theirs is not None and id(theirs) not in seen:
                    seen.add(id(theirs))
                    place = f"{path}.{name}" if path else name
                    places.append((module, name, place, tuple(theirs.shape), theirs.dtype, sparse))
        bound = self.__dict__["_bound"]
        if bound is None or bound.places != places:
            bound = self.__dict__["_bound"] = _Bound(places)
        for weight in bound.weights:
            weight.follow()
        return bound

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_bound": None, "last": None}
