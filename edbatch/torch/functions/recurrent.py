"""Recurrent layers and their cells."""

# ruff: noqa: D103 (they are PyTorch's)
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import edbatch as eb
from edbatch.torch.functions.index import unbind
from edbatch.torch.functions.layers import dropout
from edbatch.torch.functions.matrices import linear
from edbatch.torch.recording import lift, node, recording, rows_of, stacked
from edbatch.torch.registry import refused, register


def _gates(x: Any, h: Any, W: Any, U: Any, b: Any, c: Any, count: int) -> list[tuple[Any, Any]]:
    """For each gate, what it gets of an input and of a state."""
    of_both = [eb.split(y, count, len(y.spec.shape) - 1) for y in (linear(x, W, b), linear(h, U, c))]
    return list(zip(*of_both, strict=True))


@register(torch.lstm_cell, torch._VF.lstm_cell)
def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    h, c = hx
    y = eb.add(linear(input, w_ih, b_ih), linear(h, w_hh, b_hh))
    i, f, g, o = eb.split(y, 4, len(y.spec.shape) - 1)
    c = eb.sigmoid(f) * lift(c) + eb.sigmoid(i) * eb.tanh(g)
    return eb.sigmoid(o) * eb.tanh(c), c


@register(torch.gru_cell, torch._VF.gru_cell)
def gru_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    (r, r2), (z, z2), (n, n2) = _gates(input, hx, w_ih, w_hh, b_ih, b_hh, 3)
    n = eb.tanh(n + eb.sigmoid(r + r2) * n2)
    return n + eb.sigmoid(z + z2) * (lift(hx) - n)


def _rnn_cell(function: Callable[[Any], Any], *functions: Any) -> Callable[..., Any]:
    def cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        return function(eb.add(linear(input, w_ih, b_ih), linear(hx, w_hh, b_hh)))

    return register(*functions)(cell)


def _step(cell: Callable[..., Any], own: Any, weights: int, x: Any, *state: Any) -> tuple[Any, ...]:
    """What a layer's step makes of a state."""
    made = cell(x, state if len(state) > 1 else state[0], *own[:weights])
    h, *more = made if len(state) > 1 else (made,)
    return (linear(h, own[-1]) if len(own) > weights else h, *more)  # with `proj_size`


def _sequence(input: Any, first: Any) -> Any:
    rows = rows_of(input, bool(first))
    return unbind(input, int(first)) if rows is None else list(rows)


def _vector(x: Any) -> Any:
    return eb.squeeze(x, 0) if len(x.spec.shape) > 1 else x


def _layers(name: str, cell: Callable[..., Any]) -> None:
    """Layers over a sequence, perhaps both ways: [length, n, size], or [n, length, size] with `batch_first`."""

    def over(
        input: Any, hx: Any, params: Any, biases: Any, layers: Any, p: Any, train: Any, both: Any, first: Any
    ) -> Any:
        ways = 1 + both
        each = len(params) // (layers * ways)
        starts, ends = [unbind(one) for one in (hx if name == "lstm" else (hx,))], []
        xs, alone = _sequence(input, first), input.shape[int(not first)] == 1
        if alone:  # steps are of vectors
            xs, starts = [_vector(x) for x in xs], [[_vector(x) for x in of] for of in starts]
        for layer in range(layers):
            found = []
            for way in range(ways):
                at = layer * ways + way
                own = params[at * each : (at + 1) * each]
                state, outputs = [one[at] for one in starts], []
                step = recording().cells.step(_step, cell, tuple(own), 2 + 2 * biases)
                for x in xs[:: 1 - 2 * way]:
                    state = step(x, *state)
                    outputs.append(state[0])
                ends.append(state)
                found.append(outputs[:: 1 - 2 * way])
            last = len(xs[0].spec.shape) - 1
            xs = [eb.concatenate(pair, last) for pair in zip(*found, strict=True)] if both else found[0]
            if layer < layers - 1:
                xs = [dropout(x, p, train) for x in xs]
        if not alone:
            return (eb.stack(xs, int(first)), *map(eb.stack, zip(*ends, strict=True)))
        y = stacked(xs) if first else stacked([eb.unsqueeze(x, 0) for x in xs])
        y = torch.unsqueeze(y, 0) if first else y
        return (y, *(eb.unsqueeze(eb.stack(one), 1) for one in zip(*ends, strict=True)))

    def handler(*given: Any) -> Any:
        data, sizes, *more = given
        if getattr(sizes, "dtype", None) is not torch.int64:
            return over(*given)
        expect_one(len(data), sizes)  # of a packed sequence
        y, *ends = over(*[torch.unsqueeze(data, 0), *more, True])  # which may be known by its rows
        return (torch.squeeze(y, 0), *ends)

    register(getattr(torch, name), getattr(torch._VF, name))(handler)


_layers("lstm", lstm_cell)
_layers("gru", gru_cell)
_layers("rnn_tanh", _rnn_cell(eb.tanh, torch.rnn_tanh_cell, torch._VF.rnn_tanh_cell))
_layers("rnn_relu", _rnn_cell(eb.relu, torch.rnn_relu_cell, torch._VF.rnn_relu_cell))


# --- packed and padded sequences


def expect_one(length: int, sizes: Any) -> None:
    """Refuse packed sequences of several samples."""
    if len(sizes) != length:
        raise refused("a packed sequence of several", "expected that of one sample, or the sequence itself")


@register(torch._VF._pack_padded_sequence)
def pack(input: Any, lengths: Any, batch_first: bool = False) -> Any:
    expect_one(1, lengths)
    x, length = input[0] if batch_first else input[:, 0], int(lengths[0])
    return x if length == len(x) else x[:length], torch.ones(length, dtype=torch.int64)


@register(torch._VF._pad_packed_sequence)
def unpack(data: Any, batch_sizes: Any, batch_first: bool, padding_value: float, total_length: int) -> Any:
    expect_one(len(data), batch_sizes)
    if total_length == len(data):
        return torch.unsqueeze(data, int(not batch_first)), torch.tensor([total_length])
    return pad_sequence([data], batch_first, padding_value, total=total_length), torch.tensor([len(data)])


@register(torch._C._nn.pad_sequence)
def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right", total: int = 0
) -> Any:
    if padding_side not in ("left", "right"):
        raise refused(f"padding_side={padding_side!r}")
    longest, xs = max(total, *map(len, sequences)), []
    for x in map(node, sequences):
        more = longest - x.spec.shape[0]
        pairs = [(0, more) if padding_side == "right" else (more, 0), *[(0, 0)] * (len(x.spec.shape) - 1)]
        xs.append(eb.pad(x, pairs, padding_value))
    return eb.stack(xs, int(not batch_first))
