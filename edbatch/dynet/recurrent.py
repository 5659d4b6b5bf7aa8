"""Recurrences: LSTMs (coupled and fast ones), GRUs, simple and bidirectional networks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import edbatch as eb
from edbatch.dynet.collection import Builder, ParameterCollection
from edbatch.dynet.implicit import DynetError
from edbatch.dynet.linear import affine_transform
from edbatch.dynet.shape import concatenate
from edbatch.dynet.states import RNNBuilder

Shapes = list[tuple[int, ...]]


def _gate(b: Any, Wx: Any, x: Any, Wh: Any, h: Any, *more: Any) -> Any:
    return eb.sigmoid(affine_transform([b, Wx, x, Wh, h, *more]))


class VanillaLSTMBuilder(RNNBuilder):
    """LSTM: gates i, f, o and the candidate are rows of one matrix; a layer's parameters are Wx, Wh, b."""

    part = "vanilla-lstm-builder"

    def __init__(
        self, layers: int, input_dim: int, hidden_dim: int, model: ParameterCollection, ln_lstm: bool = False,
        forget_bias: float = 1.0,
    ) -> None:  # fmt: skip
        if ln_lstm:
            raise DynetError("VanillaLSTMBuilder: ln_lstm=True is not supported; write the cell with dy.layer_norm")
        self.forget_bias = forget_bias
        super().__init__(layers, input_dim, hidden_dim, model)

    @property
    def spec(self) -> tuple[Any, ...]:
        """What it is made again from, but for its parameters."""
        return (*super().spec, False, self.forget_bias)

    def _shapes(self, size: int, n: int) -> Shapes:
        return [(4 * n, size), (4 * n, n), (4 * n,)]

    def _formula(self, weights: Sequence[Any], c: Any, h: Any, x: Any) -> tuple[Any, Any]:
        Wx, Wh, b = weights
        i, f, o, g = eb.split(affine_transform([b, Wx, x, Wh, h]), 4)
        kept = eb.multiply(eb.sigmoid(eb.add(f, self.forget_bias)), c)
        new = eb.add(kept, eb.multiply(eb.sigmoid(i), eb.tanh(g)))
        return new, eb.multiply(eb.sigmoid(o), eb.tanh(new))


LSTMBuilder = CompactVanillaLSTMBuilder = VanillaLSTMBuilder


class CoupledLSTMBuilder(RNNBuilder):
    """LSTM whose forget gate is what the input gate leaves, and whose gates see the memory.

    A layer's parameters are of the gates i and o each Wx, Wh, Wc, b; of the candidate Wx, Wh, b.
    """

    part = "lstm-builder"
    sees_memory = True

    def _shapes(self, size: int, n: int) -> Shapes:
        gate: Shapes = [(n, size), (n, n), (n, n if self.sees_memory else 1), (n,)]
        return [*gate, *gate, (n, size), (n, n), (n,)]

    def _formula(self, weights: Sequence[Any], c: Any, h: Any, x: Any) -> tuple[Any, Any]:
        Wix, Wih, Wic, bi, Wox, Woh, Woc, bo, Wcx, Wch, bc = weights
        i = _gate(bi, Wix, x, Wih, h, *((Wic, c) if self.sees_memory else ()))
        g = eb.tanh(affine_transform([bc, Wcx, x, Wch, h]))
        new = eb.add(eb.multiply(c, eb.subtract(1.0, i)), eb.multiply(i, g))
        o = _gate(bo, Wox, x, Woh, h, *((Woc, new) if self.sees_memory else ()))
        return new, eb.multiply(o, eb.tanh(new))


class FastLSTMBuilder(CoupledLSTMBuilder):
    """`CoupledLSTMBuilder` whose gates do not see the memory; the parameters for that are there, as in DyNet."""

    part = "fast-lstm-builder"
    sees_memory = False


class GRUBuilder(RNNBuilder):
    """Gated recurrent unit: h' = (1 - z) h + z tanh(...); parameters are of z, r and the candidate each Wx, Wh, b."""

    part = "gru-builder"
    has_cells = False

    def _shapes(self, size: int, n: int) -> Shapes:
        return [(n, size), (n, n), (n,)] * 3

    def _formula(self, weights: Sequence[Any], c: Any, h: Any, x: Any) -> tuple[Any, Any]:
        Wzx, Wzh, bz, Wrx, Wrh, br, Whx, Whh, bh = weights
        z, r = _gate(bz, Wzx, x, Wzh, h), _gate(br, Wrx, x, Wrh, h)
        new = eb.tanh(affine_transform([bh, Whx, x, Whh, eb.multiply(r, h)]))
        return None, eb.add(eb.multiply(eb.subtract(1.0, z), h), eb.multiply(z, new))


class SimpleRNNBuilder(RNNBuilder):
    """h' = tanh(Wx x + Wh h + b)."""

    part = "simple-rnn-builder"
    has_cells = False

    def _shapes(self, size: int, n: int) -> Shapes:
        return [(n, size), (n, n), (n,)]

    def _formula(self, weights: Sequence[Any], c: Any, h: Any, x: Any) -> tuple[Any, Any]:
        Wx, Wh, b = weights
        return None, eb.tanh(affine_transform([b, Wx, x, Wh, h]))


class BiRNNBuilder(Builder):
    """Layers of two recurrences, one forth and one back, whose outputs, of half of `hidden_dim`, are concatenated."""

    part = "birnn"

    def __init__(
        self, num_layers: int, input_dim: int, hidden_dim: int, model: ParameterCollection, rnn_builder_factory: Any,
        builder_layers: list[Any] | None = None,
    ) -> None:  # fmt: skip
        if num_layers < 1 or hidden_dim % 2:
            raise AssertionError(f"BiRNN hidden dimension must be even: {hidden_dim}, of {num_layers} layers")
        self.spec = num_layers, input_dim, hidden_dim, rnn_builder_factory, builder_layers
        super().__init__(model)
        sizes = [input_dim, *[hidden_dim] * (num_layers - 1)]
        self.builder_layers = builder_layers or [
            tuple(rnn_builder_factory(1, size, hidden_dim // 2, self._model) for _ in range(2)) for size in sizes
        ]

    def set_dropout(self, p: float) -> None:
        """As of each recurrence."""
        for builder in chain(*self.builder_layers):
            builder.set_dropout(p)

    def disable_dropout(self) -> None:
        """As of each recurrence."""
        for builder in chain(*self.builder_layers):
            builder.disable_dropout()

    def add_inputs(self, es: Sequence[Any]) -> list[tuple[Any, Any]]:
        """For each input the states of both directions of the last layer."""
        es = _transduced(self.builder_layers[:-1], es)
        forth, back = self.builder_layers[-1]
        backwards = back.initial_state().add_inputs(es[::-1])
        return list(zip(forth.initial_state().add_inputs(es), backwards[::-1], strict=True))

    def transduce(self, es: Sequence[Any]) -> list[Any]:
        """For each input the outputs of both directions, concatenated."""
        return _transduced(self.builder_layers, es)


def _transduced(layers: Sequence[tuple[Any, Any]], es: Sequence[Any]) -> list[Any]:
    """What layers make of a sequence, one after the other."""
    es = list(es)
    for forth, back in layers:
        first, second = forth.initial_state().transduce(es), back.initial_state().transduce(es[::-1])
        es = [concatenate([f, b]) for f, b in zip(first, reversed(second), strict=True)]
    return es
