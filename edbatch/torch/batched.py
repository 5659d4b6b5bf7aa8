"""A module of PyTorch's whose `forward` is of one sample, as a module of n samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

import edbatch as eb
from edbatch.errors import EdBatchError, checked_flag, shown
from edbatch.torch.boundary import Batch, drawn_seed, in_place, outputs_of, samples_of
from edbatch.torch.inputs import Inputs
from edbatch.torch.lazy import LazyTensor
from edbatch.torch.recording import Recording, current
from edbatch.torch.weights import Weight

#: Modes of a module (see `_Bound.cells`) of which cells are kept at a time.
_MODES = 4


class _Bound:
    """The parameters of a module as EdBatch's.

    Attributes:
        cells: by what they depend on besides their arguments - modes and numbers of modules - the cells that were made.
    """

    def __init__(self, places: list[Any]) -> None:
        self.places = places
        self.cells: dict[Any, dict[Any, Callable[..., Any]]] = {}
        self.weights: list[Weight] = []
        self.sparse = any(place[-1] for place in places)
        dtypes = {place[-2] for place in places} or {torch.float32}
        if not dtypes <= {torch.float32, torch.float64} or len(dtypes) > 1:
            raise EdBatchError(
                f"edbatch.torch.Batched: parameters of {', '.join(map(str, dtypes))}: expected one of "
                "float32 and float64 for all"
            )
        self.dtype = np.dtype(str(dtypes.pop()).removeprefix("torch."))
        collection = eb.ParameterCollection(dtype=self.dtype, device="cpu")
        for number, (module, name, _, _, is_table) in enumerate(places):
            theirs = module._parameters[name]
            if theirs.device.type != "cpu":
                raise EdBatchError(f"edbatch.torch: parameter {name!r} is on {theirs.device}: expected it on the CPU")
            with torch.no_grad():
                if not theirs.is_contiguous():
                    theirs.data = theirs.data.contiguous()
            ours = collection.share(theirs.detach().numpy(), f"{name}_{number}", lookup=is_table)
            self.weights.append(Weight(ours, module, name))


class Batched(nn.Module):
    """An `nn.Module` of n samples, made of one whose `forward` is of ONE sample, which stays as it is.

    `Batched(model)(samples)` calls the model with each sample and computes what all of them have recorded in batches;
    it returns a list with the result of each: ordinary tensors, with gradients. Of a `forward` of several arguments,
    `batched(xs, ys)` takes a list for each. Parameters are the model's own.

    In `forward`, what is computed of parameters is a lazy tensor: it has shape and dtype, and functions, methods and
    operators of tensors have PyTorch's meaning for it, or say that they are not supported. Reading one (`item()`,
    `if h.sum() > 0`, a comparison as an index) computes what all samples so far have recorded, and breaks the batch.
    What is computed of tensors alone stays PyTorch's, and so do tensors that samples hold; gradients flow to them.

    In `eval()` dropout is off. Its masks follow from `torch.manual_seed`. Gradients of `nn.Embedding(sparse=True)`
    are sparse.

    Args:
        model: its parameters are on the CPU, of one dtype.
        stack: whether results of one shape are returned as one tensor [n, *shape] instead of a list.
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

    def __init__(self, model: nn.Module, *, stack: bool = False, policy: Any = None) -> None:
        super().__init__()
        if not isinstance(model, nn.Module):
            raise EdBatchError(f"edbatch.torch.Batched: expected an nn.Module of one sample, got {shown(model)}")
        self.model = model
        self.stack = checked_flag("edbatch.torch.Batched: stack", stack)
        self.policy = policy
        self.last = None
        self.__dict__["_bound"] = None

    def forward(self, *lists: Any) -> Any:
        """The results of n samples; see the class."""
        place = "edbatch.torch.Batched"
        if current.get(None) is not None or torch.is_autocast_enabled("cpu"):
            raise EdBatchError(f"{place}: expected no call inside of another's module, and no torch.autocast")
        self.last = None  # whose memory this call takes
        bound, state = self._followed()
        inputs = Inputs(bound.dtype, self)
        recording = Recording(bound.weights, inputs, bound.cells.setdefault(state, {}))
        while len(bound.cells) > _MODES:
            del bound.cells[next(iter(bound.cells))]
        token = current.set(recording)
        try:
            with (
                eb.options(training=True),
                eb.Graph(self.policy, bound.dtype, seed=drawn_seed(), expression_class=LazyTensor) as graph,
            ):
                recording.graph = graph
                with recording:
                    results = [self.model(*one) for one in samples_of(place, lists)]
                if not results:
                    return []
                outputs, returned = outputs_of(place, results)
            self.last = graph
            if any(weight.is_changed() for weight in bound.weights):
                raise EdBatchError(f"{place}: a parameter was written to while samples were recorded")
            tensors = Batch(graph, outputs, bound.weights, (), inputs, bound.sparse).tensors() if outputs else ()
        finally:
            current.reset(token)
        if self.stack and len(tensors) == 1 and returned[1] is None:
            return tensors[0]
        return in_place(returned, tensors)

    def _followed(self) -> tuple[_Bound, Any]:
        """The model's parameters as they are now, and all else that a cell may depend on."""
        places, state, seen = [], [], set()
        for module in self.model.modules():
            sparse = getattr(module, "sparse", False) is True
            for name, theirs in module._parameters.items():
                if theirs is not None and id(theirs) not in seen:
                    seen.add(id(theirs))
                    places.append((module, name, tuple(theirs.shape), theirs.dtype, sparse))
            state.append((module, *(_compared(name, value) for name, value in vars(module).items())))
        bound = self.__dict__["_bound"]
        if bound is None or bound.places != places:
            bound = self.__dict__["_bound"] = _Bound(places)
        for weight in bound.weights:
            weight.follow()
        return bound, tuple(state)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_bound": None, "last": None}


_ATOMS = (int, float, str, bool, type(None))


def _is_left(value: Any) -> bool:
    """Whether a call has left its tensors there, which no cell may use: another call leaves others."""
    if isinstance(value, list | tuple):
        return bool(value) and all(map(_is_left, value))
    return isinstance(value, torch.Tensor | eb.Expression)


def _compared(name: str, value: Any) -> Any:
    """A key that changes with an attribute of a module."""
    if isinstance(value, _ATOMS) or (isinstance(value, tuple) and all(isinstance(x, _ATOMS) for x in value)):
        return name, type(value), value
    if name in ("_modules", "_buffers", "_parameters"):
        return name, tuple([(key, id(part)) for key, part in value.items()]) if name != "_parameters" else None
    if _is_left(value):
        return name, type(value)
    if isinstance(value, list | dict) and len(value) <= 64:
        return name, repr(value) if all(isinstance(x, _ATOMS) for x in value) else id(value)
    return name, id(value)
