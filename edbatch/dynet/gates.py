"""The parts of an LSTM's step that DyNet has as functions of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import edbatch as eb
from edbatch.dynet.arithmetic import add, multiply, product
from edbatch.dynet.draws import generator
from edbatch.dynet.numeric import node
from edbatch.dynet.shape import concatenate


def _gates(sums: Any, std: float) -> Any:
    """Sigmoids of i, f + 1 and o, tanh of the candidate, of their sums."""
    if std:
        sums = eb.add(sums, generator().normal(0, std, sums.spec.shape))
    i, f, o, g = eb.split(sums, 4)
    return eb.concatenate([eb.sigmoid(i), eb.sigmoid(eb.add(f, 1.0)), eb.sigmoid(o), eb.tanh(g)])


def vanilla_lstm_gates(x_t: Any, h_tm1: Any, Wx: Any, Wh: Any, b: Any, weightnoise_std: float = 0.0) -> Any:
    """The gates [i, f, o, candidate] of an LSTM whose forget gate has a bias of 1."""
    return _gates(add(add(product(Wx, x_t), product(Wh, h_tm1)), b), weightnoise_std)


def vanilla_lstm_gates_concat(
    x_t: Sequence[Any], h_tm1: Any, Wx: Any, Wh: Any, b: Any, weightnoise_std: float = 0.0
) -> Any:
    """`vanilla_lstm_gates` of an input in parts."""
    return vanilla_lstm_gates(concatenate(list(x_t)), h_tm1, Wx, Wh, b, weightnoise_std)


def _constant(mask: Any) -> Any:
    return eb.stop_gradient(node(mask))


def vanilla_lstm_gates_dropout(
    x_t: Any, h_tm1: Any, Wx: Any, Wh: Any, b: Any, dropout_mask_x: Any, dropout_mask_h: Any,
    weightnoise_std: float = 0.0,
) -> Any:  # fmt: skip
    """`vanilla_lstm_gates` of what masks leave of the input and the state."""
    x, h = multiply(x_t, _constant(dropout_mask_x)), multiply(h_tm1, _constant(dropout_mask_h))
    return vanilla_lstm_gates(x, h, Wx, Wh, b, weightnoise_std)


def vanilla_lstm_gates_dropout_concat(
    x_t: Sequence[Any], h_tm1: Any, Wx: Any, Wh: Any, b: Any, dropout_mask_x: Any, dropout_mask_h: Any,
    weightnoise_std: float = 0.0,
) -> Any:  # fmt: skip
    """`vanilla_lstm_gates_dropout` of an input in parts."""
    x = concatenate(list(x_t))
    return vanilla_lstm_gates_dropout(x, h_tm1, Wx, Wh, b, dropout_mask_x, dropout_mask_h, weightnoise_std)


def _part(gates_t: Any, number: int) -> Any:
    return eb.split(node(gates_t), 4)[number]


def vanilla_lstm_c(c_tm1: Any, gates_t: Any) -> Any:
    """The next memory: f c + i g."""
    return eb.add(eb.multiply(_part(gates_t, 1), c_tm1), eb.multiply(_part(gates_t, 0), _part(gates_t, 3)))


def vanilla_lstm_h(c_t: Any, gates_t: Any) -> Any:
    """The next output: o tanh(c)."""
    return eb.multiply(_part(gates_t, 2), eb.tanh(c_t))
