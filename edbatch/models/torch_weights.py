"""Weights of PyTorch modules in EdBatch's layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.base.exclusive import Whole, lock
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
        EdBatchError: `state` is no state dict; a name is missing or is not used, a shape differs, or there is no
            equivalent (projections; a stack each way, where PyTorch joins the directions after every layer). All is
            said at once, and nothing has been changed.

    Example:
        >>> import edbatch as eb, numpy as np
        >>> from edbatch.models import from_torch
        >>> model = eb.ParameterCollection()
        >>> W, b = model.add_parameters((2, 3)), model.add_parameters(2)
        >>> from_torch((W, b), {"head.weight": np.ones((2, 3)), "head.bias": np.zeros(2)}, prefix="head.")
        >>> W.value().sum()
        np.float32(6.0)
    """
    if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
        what = "a module: expected its state_dict()" if hasattr(state, "state_dict") else shown(state)
        raise eb.EdBatchError(f"from_torch: expected names to tensors, as of module.state_dict(), got {what}")
    if not isinstance(prefix, str):
        raise eb.EdBatchError(f"from_torch: expected a prefix of names, got {shown(prefix)}")
    given = {name: value for name, value in state.items() if name.startswith(prefix)}
    wrong: list[str] = []

    def take(name: str, optional: bool = False) -> np.ndarray | None:
        if prefix + name in given:
            return eb.from_dlpack(given.pop(prefix + name), f"from_torch: {prefix + name}")
        wrong.extend([] if optional else [f"{prefix + name}: missing"])
        return None

    found = [(parameter, value) for parameter, value in _values(target, take) if value is not None]
    wrong += [f"{name}: not used by {_name(target)}" for name in given]
    wrong += [reason for parameter, value in found if (reason := _misfit(parameter, value))]
    if wrong:
        raise eb.EdBatchError(f"from_torch: nothing was loaded: {'; '.join(wrong)}")
    with lock, Whole():
        for parameter, value in found:
            parameter.set_value(value)


def _misfit(parameter: eb.Parameter, value: np.ndarray) -> str:
    """Why a parameter cannot have a value; empty if it can."""
    if value.shape != parameter.shape:
        return f"{parameter.name}: shape {value.shape} in the state, {parameter.shape} here"
    try:
        cast(value, parameter.dtype, parameter.name)
    except eb.EdBatchError as error:
        return str(error)
    return ""


def _values(target: Target, take: Any) -> Iterator[tuple[eb.Parameter, np.ndarray | None]]:
    """The parameters of a target with their values; None where the state lacks what it takes."""
    if isinstance(target, eb.Parameter):
        yield target, take("weight")
    elif isinstance(target, tuple) and len(target) == 2 and all(isinstance(part, eb.Parameter) for part in target):
        yield target[0], take("weight")  # type: ignore[misc]
        yield target[1], take("bias")  # type: ignore[misc]
    else:
        levels = target.layers if isinstance(target, Stacked) else target if isinstance(target, list) else [target]
        if not levels:
            raise eb.EdBatchError("from_torch: expected a layer to load into, got an empty list")
        for number, level in enumerate(levels):
            both = isinstance(level, Bidirectional)
            yield from _recurrent(level.forward if both else level, f"l{number}", take)
            if both:
                yield from _recurrent(level.backward, f"l{number}_reverse", take)


def _recurrent(layer: Any, end: str, take: Any) -> Iterator[tuple[eb.Parameter, np.ndarray | None]]:
    if type(layer) not in GATES:
        raise eb.EdBatchError(
            f"from_torch: {_name(layer)} has no equivalent in PyTorch; expected a parameter, a pair (W, b), "
            f"{', '.join(kind.__name__ for kind in GATES)}, Stacked, Bidirectional, or a list of those"
        )
    gates = GATES[type(layer)]

    def ordered(value: np.ndarray | None) -> np.ndarray | None:
        if value is None or len(value) % len(gates):
            return value  # its shape will be refused
        parts = np.split(value, len(gates))
        return np.concatenate([parts[gate] for gate in gates])

    yield layer.W, ordered(take(f"weight_ih_{end}"))
    yield layer.U, ordered(take(f"weight_hh_{end}"))
    of_input = take(f"bias_ih_{end}", optional=True)
    of_state = take(f"bias_hh_{end}", optional=of_input is None)
    if of_input is None:
        of_input = of_state = np.zeros(layer.b.shape)
    elif of_state is None or of_input.shape != of_state.shape:
        of_state = np.zeros(of_input.shape)
    if isinstance(layer, GRU):
        begin = len(of_state) - len(of_state) // 3
        yield layer.b_n, of_state[begin:]
        of_state = np.concatenate([of_state[:begin], np.zeros_like(of_state[begin:])])
    yield layer.b, ordered(of_input + of_state)


def _name(target: Any) -> str:
    if isinstance(target, tuple | list):
        return f"({', '.join(map(_name, target))})"
    return repr(target) if isinstance(target, eb.Parameter) else type(target).__name__
