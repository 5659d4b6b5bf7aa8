"""Weights of PyTorch modules in EdBatch's layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.base.locking import lock, signals_deferred
from edbatch.errors import shown
from edbatch.graph.model.exchange import cast
from edbatch.models.gru import GRU, SimpleRNN
from edbatch.models.lstm import LSTM
from edbatch.models.recurrent import Bidirectional, Recurrent, Stacked

# Which of PyTorch's gates are ours: i, f, g, o -> input, forget, output, update; r, z, n -> update, reset, new.
GATES: dict[type[Recurrent], tuple[int, ...]] = {LSTM: (0, 1, 3, 2), GRU: (1, 0, 2), SimpleRNN: (0,)}

Level = Recurrent | Bidirectional
Target = eb.Parameter | tuple[eb.Parameter, eb.Parameter] | Level | Stacked | Sequence[Level]


def from_torch(target: Target, state: Mapping[str, Any], prefix: str = "") -> None:
    """Give parameters the values of a PyTorch module.

    A matrix W or a pair (W, b) is an `nn.Linear`, a look-up table an `nn.Embedding`, and an `LSTM`, `GRU` or
    `SimpleRNN` an `nn.LSTM`, `nn.GRU` or `nn.RNN` (tanh) of one layer. `Stacked` is one with `num_layers`,
    `Bidirectional` one with `bidirectional=True`, and a list of `Bidirectional`, the lowest first, one with both.

    Layers without bias get zeros for it. PyTorch has two biases where one would do; ours is their sum, except for the
    new state of a GRU, where the second one is scaled by the reset gate in both libraries.

    Args:
        target: parameters or layers to load into.
        state: names to tensors (on the CPU) or arrays; of any float dtype that NumPy has.
        prefix: only names that begin with it count, without it: "encoder.lstm.", say, of a larger module.

    Raises:
        EdBatchError: `state` is no state dict; a name is missing or is not used, a shape differs, a number is too large
            for the parameter's dtype, or there is no equivalent (projections; a stack each way, where PyTorch joins the
            directions after every layer). Nothing has been changed.

    Example:
        >>> import edbatch as eb, numpy as np
        >>> from edbatch.models import from_torch
        >>> model = eb.ParameterCollection()
        >>> W, b = model.add_parameters((2, 3)), model.add_parameters(2)
        >>> from_torch((W, b), {"head.weight": np.ones((2, 3)), "head.bias": np.zeros(2)}, prefix="head.")
        >>> W.value().sum()
        np.float32(6.0)
    """
    if not isinstance(state, Mapping):
        what = "a module: expected its state_dict()" if hasattr(state, "state_dict") else shown(state)
        raise eb.EdBatchError(f"from_torch: expected names to tensors, as of module.state_dict(), got {what}")
    given = {name: value for name, value in state.items() if name.startswith(prefix)}

    def take(parameter: eb.Parameter, name: str, default: Any = None) -> np.ndarray:
        name = prefix + name
        found = given.pop(name, default)
        if found is None:
            raise eb.EdBatchError(f"from_torch: {name}: missing")
        array = cast(eb.from_dlpack(found, f"from_torch: {name}"), parameter.dtype, f"from_torch: {name}")
        if array.shape != parameter.shape:
            raise eb.EdBatchError(f"from_torch: {name}: shape {array.shape} in the state, {parameter.shape} here")
        return array

    found = list(_values(target, take))
    if given:
        raise eb.EdBatchError(f"from_torch: unexpected entries: {', '.join(given)}")
    with lock, signals_deferred():
        for parameter, value in found:
            parameter.set_value(value)


def _values(target: Target, take: Any) -> Iterator[tuple[eb.Parameter, np.ndarray]]:
    """The parameters of a target with their values."""
    parameters = target if isinstance(target, tuple) else (target,)
    if all(isinstance(one, eb.Parameter) for one in parameters):
        yield from ((one, take(one, name)) for one, name in zip(parameters, ("weight", "bias"), strict=False))
        return
    levels = target.layers if isinstance(target, Stacked) else target if isinstance(target, list) else [target]
    for number, level in enumerate(levels):
        both = isinstance(level, Bidirectional)
        yield from _recurrent(level.forward if both else level, f"l{number}", take)
        if both:
            yield from _recurrent(level.backward, f"l{number}_reverse", take)


def _recurrent(layer: Any, end: str, take: Any) -> Iterator[tuple[eb.Parameter, np.ndarray]]:
    if type(layer) not in GATES:
        expected = "a parameter, a pair (W, b), LSTM, GRU, SimpleRNN, Stacked, Bidirectional, or a list of those"
        raise eb.EdBatchError(f"from_torch: {shown(layer)} has no equivalent in PyTorch; expected {expected}")

    def ordered(value: np.ndarray) -> np.ndarray:
        parts = np.split(value, layer.gates)
        return np.concatenate([parts[gate] for gate in GATES[type(layer)]])

    yield layer.W, ordered(take(layer.W, f"weight_ih_{end}"))
    yield layer.U, ordered(take(layer.U, f"weight_hh_{end}"))
    of_input, of_state = (take(layer.b, f"bias_{of}_{end}", np.zeros(layer.b.shape)) for of in ("ih", "hh"))
    if isinstance(layer, GRU):
        begin = 2 * layer.dim
        yield layer.b_n, of_state[begin:]
        of_state = np.concatenate([of_state[:begin], np.zeros_like(of_state[begin:])])
    yield layer.b, ordered(of_input + of_state)
