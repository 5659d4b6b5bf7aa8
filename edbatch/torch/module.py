"""A function of one sample, written with EdBatch, as a module of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch import nn

import edbatch as eb
from edbatch.errors import EdBatchError, checked_flag, shown
from edbatch.torch.boundary import Batch, drawn_seed, samples_of
from edbatch.torch.inputs import Inputs, current
from edbatch.torch.weights import Weight


class Module(nn.Module):
    """An `nn.Module` of n samples, made of a function of one sample and the parameters that it computes with.

    `module(samples)` calls the function with each sample, runs what all of them have recorded in batches, and returns a
    list with the result of each: ordinary tensors, with gradients. Of a function of several arguments,
    `module(xs, mask=masks)` takes a list for each. The module's parameters are those of the collection, under their
    names, and share their memory: whatever trains, saves, loads, clips or freezes parameters of PyTorch does so here.

    What a sample holds is given to the function as it is; but a tensor, also in a tuple, list or dictionary that is an
    argument, becomes an expression, to which gradients flow, one of integers becomes an array of NumPy or a number.
    Deeper inside, `edbatch.torch.input(tensor)` makes an expression.

    In `eval()` dropout is off. Its masks follow from `torch.manual_seed`. Gradients of look-up tables are sparse with
    `sparse=True`, as `torch.optim.SparseAdam` takes them.

    Args:
        function: of one sample; it returns an expression, or tuples, lists and dictionaries of some. To copy or pickle
            the module it has to be a method of an object that has the parameters, or such an object.
        collection: its parameters, before a cell has been called with them.
        stack: whether results of one shape are returned as one tensor [n, *shape] instead of a list.
        sparse: see above.
        policy: see `edbatch.Graph`.

    Attributes:
        last: the graph of the last call; `module.last.report()` tells what has run in which batches.

    Raises:
        EdBatchError: `function` is no function, `collection` none of parameters, or they lie where cells have put them.
            When called: lists of several lengths, tensors on a GPU, a parameter that has another shape or dtype now.

    Example:
        >>> import torch, edbatch as eb, edbatch.torch
        >>> model = eb.ParameterCollection(seed=0)
        >>> table, W = model.add_lookup_parameters((10, 4), "table"), model.add_parameters((2, 4), "W")
        >>> def scores(words):
        ...     return W @ eb.sum([eb.lookup(table, word) for word in words])
        >>> module = edbatch.torch.Module(scores, model, stack=True)
        >>> optimizer = torch.optim.Adam(module.parameters())
        >>> y = module([[3, 7, 9], [1], [4, 4]])
        >>> loss = torch.nn.functional.cross_entropy(y, torch.tensor([0, 1, 1]))
        >>> loss.backward()
        >>> optimizer.step()
        >>> y.shape, [name for name, _ in module.named_parameters()]
        (torch.Size([3, 2]), ['table', 'W'])
    """

    last: eb.Graph | None

    def __init__(
        self,
        function: Callable[..., Any],
        collection: eb.ParameterCollection,
        *,
        stack: bool = False,
        sparse: bool = False,
        policy: Any = None,
    ) -> None:
        super().__init__()
        if not callable(function) or isinstance(function, type):
            raise EdBatchError(f"edbatch.torch.Module: expected a function of a sample, got {shown(function)}")
        if not isinstance(collection, eb.ParameterCollection):
            raise EdBatchError(f"edbatch.torch.Module: expected an eb.ParameterCollection, got {shown(collection)}")
        self.function = function
        self.collection = collection
        self.stack = checked_flag("edbatch.torch.Module: stack", stack)
        self.sparse = checked_flag("edbatch.torch.Module: sparse", sparse)
        self.policy = policy
        self.last = None
        for ours in collection:
            *path, name = ours.name.split(".")
            place: nn.Module = self
            for part in path:
                if part not in place._modules:
                    place.add_module(part, nn.Module())
                place = place._modules[part]
            value = torch.from_numpy(np.array(ours.value(), order="C"))
            place.register_parameter(name, nn.Parameter(value, requires_grad=not ours.frozen))
        self._bind()

    def _bind(self) -> None:
        weights = []
        for ours in self.collection:
            path, _, name = ours.name.rpartition(".")
            weights.append(Weight(ours, self.get_submodule(path), name))
            weights[-1].follow()
        self.__dict__["_weights"] = weights

    def forward(self, *lists: Any, **named: Any) -> Any:
        """The results of n samples; see the class."""
        place = "edbatch.torch.Module"
        self.last = None  # whose memory this call takes
        for weight in self._weights:
            weight.follow()
        inputs = Inputs(self.collection.dtype, self)
        token = current.set(inputs)
        try:
            with (
                eb.options(training=self.training),
                eb.Graph(self.policy, self.collection.dtype, seed=drawn_seed()) as graph,
            ):
                samples = samples_of(place, lists, named)
                results = [
                    self.function(*map(inputs.lifted, args), **{name: inputs.lifted(x) for name, x in more.items()})
                    for args, more in samples
                ]
            if not results:
                return []
            self.last = graph
            ours = {id(weight.theirs) for weight in self._weights}
            others = [x for x in self.parameters() if id(x) not in ours]  # of modules that are ops of the function
            return Batch(place, graph, self._weights, others, inputs, self.sparse).results(results, self.stack)
        finally:
            current.reset(token)

    def __getstate__(self) -> dict[str, Any]:
        if isinstance(self.function, FunctionType):
            raise EdBatchError(
                f"edbatch.torch.Module of {self.function.__qualname__}: a copy of a function computes with the "
                "parameters of the original; expected a method of an object that has the parameters, "
                "Module(network.loss, network.model), or an object that is called"
            )
        state = self.__dict__.copy()
        del state["_weights"]
        state["last"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._bind()
