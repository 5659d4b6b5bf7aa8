"""Recurrent layers and their cells."""

# ruff: noqa: D103 (they are PyTorch's)
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import edbatch as eb
from edbatch.torch.functions.layers import dropout
from edbatch.torch.functions.matrices import linear
from edbatch.torch.recording import lift, node
from edbatch.torch.registry import refused, register


def _parts(x: Any, count: int) -> Any:
    return eb.split(x, count, len(x.spec.shape) - 1)


@register(torch.lstm_cell, torch._VF.lstm_cell)
def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    h, c = hx
    i, f, g, o = _parts(eb.add(linear(input, w_ih, b_ih), linear(h, w_hh, b_hh)), 4)
    c = eb.sigmoid(f) * lift(c) + eb.sigmoid(i) * eb.tanh(g)
    return eb.sigmoid(o) * eb.tanh(c), c


@register(torch.gru_cell, torch._VF.gru_cell)
def gru_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    r, z, n = _parts(linear(input, w_ih, b_ih), 3)
    r2, z2, n2 = _parts(linear(hx, w_hh, b_hh), 3)
    z, n = eb.sigmoid(z + z2), eb.tanh(n + eb.sigmoid(r + r2) * n2)
    return n + z * (lift(hx) - n)


def _rnn_cell(function: Callable[[Any], Any], *functions: Any) -> Callable[..., Any]:
    def cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        return function(eb.add(linear(input, w_ih, b_ih), linear(hx, w_hh, b_hh)))

    return register(*functions)(cell)


_tanh_cell = _rnn_cell(eb.tanh, torch.rnn_tanh_cell, torch._VF.rnn_tanh_cell)
_relu_cell = _rnn_cell(eb.relu, torch.rnn_relu_cell, torch._VF.rnn_relu_cell)


def _layers(name: str, cell: Callable[..., Any], is_lstm: bool = False) -> None:
    """Layers over a sequence, perhaps both ways: [length, n, size], or [n, length, size] with `batch_first`."""

    def handler(
        input: Any,
        hx: Any,
        params: Any,
        has_biases: bool,
        num_layers: int,
        dropout_p: float,
        train: bool,
        bidirectional: bool,
        batch_first: Any = None,
    ) -> Any:
        if not isinstance(has_biases, bool) or batch_first is None:
            raise refused(f"{name} of packed sequences", "expected the sequence of one sample")
        ways = 1 + bidirectional
        each = len(params) // (num_layers * ways)
        if each not in (2, 4):
            raise refused(f"{name} with proj_size")
        states = [_unstacked(one) for one in (hx if is_lstm else (hx,))]
        xs = _unstacked(input, int(batch_first))
        ends: list[Any] = []
        for layer in range(num_layers):
            found = []
            for way in range(ways):
                at = layer * ways + way
                weights = params[at * each : (at + 1) * each]
                state: Any = [one[at] for one in states]
                outputs = []
                for x in reversed(xs) if way else xs:
                    state = cell(x, state, *weights) if is_lstm else [cell(x, state[0], *weights)]
                    outputs.append(state[0])
                ends.append(state)
                found.append(outputs[::-1] if way else outputs)
            xs = [eb.concatenate(both, 1) for both in zip(*found, strict=True)] if bidirectional else found[0]
            if layer < num_layers - 1:
                xs = [dropout(x, dropout_p, train) for x in xs]
        return (eb.stack(xs, int(batch_first)), *map(eb.stack, zip(*ends, strict=True)))

    register(getattr(torch, name), getattr(torch._VF, name))(handler)


def _unstacked(x: Any, axis: int = 0) -> list[Any]:
    found = node(x)
    before = (slice(None),) * axis
    return [eb.Expression.__getitem__(found, (*before, i)) for i in range(found.spec.shape[axis])]


_layers("lstm", lstm_cell, is_lstm=True)
_layers("gru", gru_cell)
_layers("rnn_tanh", _tanh_cell)
_layers("rnn_relu", _relu_cell)
