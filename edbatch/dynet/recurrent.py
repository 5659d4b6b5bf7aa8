"""Recurrences: LSTMs (coupled, fast, sparse ones), GRUs and simple networks, their parameters in DyNet's order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.dynet.arithmetic import add, multiply, product
from edbatch.dynet.collection import ParameterCollection
from edbatch.dynet.gates import vanilla_lstm_c, vanilla_lstm_gates, vanilla_lstm_h
from edbatch.dynet.linear import affine_transform
from edbatch.dynet.losses import layer_norm
from edbatch.dynet.parameters import Parameters
from edbatch.dynet.states import RNNBuilder


def _sums(b: Any, Wx: Any, x: Any, Wh: Any, h: Any) -> Any:
    """b + Wx x + Wh h, without h before the first step."""
    return affine_transform([b, Wx, x] if h is None else [b, Wx, x, Wh, h])


class VanillaLSTMBuilder(RNNBuilder):
    """LSTM: gates i, f, o and the candidate are rows of one matrix.

    Args:
        ln_lstm: whether sums are normalised layer by layer.
        forget_bias: added to the sum of the forget gate.
    """

    part = "vanilla-lstm-builder"

    def __init__(
        self, layers: int, input_dim: int, hidden_dim: int, model: ParameterCollection, ln_lstm: bool = False,
        forget_bias: float = 1.0,
    ) -> None:  # fmt: skip
        self.ln_lstm, self.forget_bias = ln_lstm, forget_bias
        self.in_cells = self.in_cells and not ln_lstm  # an output of zeros, before the first step, has no norm
        self._norms: list[list[Parameters]] = []
        super().__init__(layers, input_dim, hidden_dim, model)

    @property
    def spec(self) -> tuple[Any, ...]:
        """What it is made again from, but for its parameters."""
        return (*super().spec, self.ln_lstm, self.forget_bias)

    def added(self, size: int, model: ParameterCollection) -> list[Parameters]:
        """Wx, Wh, b."""
        n, add = self.hidden_dim, self._model.add_parameters
        made = [add((4 * n, size)), add((4 * n, n)), add(4 * n, init=0.0)]
        if self.ln_lstm:
            sizes = (4 * n, 4 * n, n)
            self._norms.append([model.add_parameters(one, init=init) for one in sizes for init in (1.0, 0.0)])
        return made

    def weights(self, number: int) -> list[Any]:
        """Wx, Wh, b of a layer, and gains and biases of its norms."""
        return [*super().weights(number), *(self._norms[number] if self.ln_lstm else ())]

    def formula(self, weights: Sequence[Any], c: Any, h: Any, x: Any) -> tuple[Any, Any]:
        """Memory and output of a layer after an input."""
        Wx, Wh, b, *norms = weights
        if self.ln_lstm:
            gain_h, bias_h, gain_x, bias_x, gain_c, bias_c = norms
            sums = add(layer_norm(product(Wx, x), gain_x, bias_x), b)
            sums = sums if h is None else add(sums, layer_norm(product(Wh, h), gain_h, bias_h))
        else:
            sums = _sums(b, Wx, x, Wh, h)
        i, f, o, g = eb.split(sums, 4)
        new = eb.multiply(eb.sigmoid(i), eb.tanh(g))
        if c is not None:
            new = eb.add(eb.multiply(eb.sigmoid(eb.add(f, self.forget_bias)), c), new)
        shown = layer_norm(new, gain_c, bias_c) if self.ln_lstm else new
        return new, eb.multiply(eb.sigmoid(o), eb.tanh(shown))


LSTMBuilder = VanillaLSTMBuilder


class SparseLSTMBuilder(VanillaLSTMBuilder):
    """`VanillaLSTMBuilder` some of whose smallest weights are masked, see `set_sparsity`."""

    in_cells = False  # what is masked is masked once, not at each step

    def added(self, size: int, model: ParameterCollection) -> list[Parameters]:
        """Wx, Wh, b, and the masks of both matrices."""
        n = self.hidden_dim
        add = self._model.add_parameters
        Wx, Wh = add((4 * n, size)), add((4 * n, n))
        masks = [add((4 * n, size), init=1.0), add((4 * n, n), init=1.0)]
        for mask in masks:
            mask.set_updated(False)
        return [Wx, Wh, add(4 * n, init=0.0), *masks]

    def weights(self, number: int) -> list[Any]:
        """Wx, Wh, b of a layer; what is masked is 0."""
        Wx, Wh, b, _, _ = super().weights(number)
        mask_x, mask_h = self._parameters[number][3:]
        return [multiply(Wx, mask_x.expr(False)), multiply(Wh, mask_h.expr(False)), b]

    def set_sparsity(self, percent: float) -> None:
        """Mask so large a part (0 to 1) of the weights of each layer, the smallest."""
        for Wx, Wh, _, mask_x, mask_h in self._parameters:
            sizes = [np.abs(weight.as_array()) for weight in (Wx, Wh)]
            least = np.quantile(np.concatenate([x.reshape(-1) for x in sizes]), min(max(percent, 0.0), 1.0))
            for size, mask in zip(sizes, (mask_x, mask_h), strict=True):
                mask.set_value(size >= least)


class CompactVanillaLSTMBuilder(RNNBuilder):
    """LSTM by the functions `vanilla_lstm_gates`, `vanilla_lstm_c` and `vanilla_lstm_h`."""

    part = "compact-vanilla-lstm-builder"
    _noise = 0.0

    def added(self, size: int, model: ParameterCollection) -> list[Parameters]:
        """Wx, Wh, b."""
        n, add = self.hidden_dim, self._model.add_parameters
        return [add((4 * n, size)), add((4 * n, n)), add(4 * n, init=0.0)]

    def formula(self, weights: Sequence[Any], c: Any, h: Any, x: Any) -> tuple[Any, Any]:
        """Memory and output of a layer after an input."""
        h = eb.zeros(self.hidden_dim) if h is None else h
        c = eb.zeros(self.hidden_dim) if c is None else c
        Wx, Wh, b = weights
        gates = vanilla_lstm_gates(x, h, Wx, Wh, b, self._noise)
        c = vanilla_lstm_c(c, gates)
        return c, vanilla_lstm_h(c, gates)

    def set_weightnoise(self, std: float) -> None:
        """Add Gaussian numbers to the sums of the gates."""
        self._noise, self.in_cells = std, not std


class CoupledLSTMBuilder(RNNBuilder):
    """LSTM whose forget gate is what the input gate leaves, and whose gates see the memory."""

    part = "lstm-builder"
    sees_memory = True

    def added(self, size: int, model: ParameterCollection) -> list[Parameters]:
        """Of the gates i and o each Wx, Wh, Wc, b; of the candidate Wx, Wh, b."""
        n, add = self.hidden_dim, self._model.add_parameters
        of_c = (n, n) if self.sees_memory else (n, 1)
        made = []
        for _ in range(2):
            made += [add((n, size)), add((n, n)), add(of_c), add(n, init=0.0)]
        return [*made, add((n, size)), add((n, n)), add(n, init=0.0)]

    def _seen(self, sums: Any, W: Any, c: Any) -> Any:
        """Sums plus what a gate sees of the memory."""
        return sums if c is None or not self.sees_memory else add(sums, product(W, c))

    def formula(self, weights: Sequence[Any], c: Any, h: Any, x: Any) -> tuple[Any, Any]:
        """Memory and output of a layer after an input."""
        Wix, Wih, Wic, bi, Wox, Woh, Woc, bo, Wcx, Wch, bc = weights
        i = eb.sigmoid(self._seen(_sums(bi, Wix, x, Wih, h), Wic, c))
        g = eb.multiply(i, eb.tanh(_sums(bc, Wcx, x, Wch, h)))
        new = g if c is None else eb.add(eb.multiply(c, eb.subtract(1.0, i)), g)
        o = eb.sigmoid(self._seen(_sums(bo, Wox, x, Woh, h), Woc, new))
        return new, eb.multiply(o, eb.tanh(new))


class FastLSTMBuilder(CoupledLSTMBuilder):
    """`CoupledLSTMBuilder` whose gates do not see the memory; the parameters for that are there, as in DyNet."""

    part = "fast-lstm-builder"
    sees_memory = False


class GRUBuilder(RNNBuilder):
    """Gated recurrent unit: h' = (1 - z) h + z tanh(...)."""

    part = "gru-builder"
    has_cells = False

    def added(self, size: int, model: ParameterCollection) -> list[Parameters]:
        """Of z, r and the candidate each Wx, Wh, b."""
        n, add = self.hidden_dim, self._model.add_parameters
        made = []
        for _ in range(3):
            made += [add((n, size)), add((n, n)), add(n, init=0.0)]
        return made

    def formula(self, weights: Sequence[Any], c: Any, h: Any, x: Any) -> tuple[Any, Any]:
        """None, and the output of a layer after an input."""
        Wzx, Wzh, bz, Wrx, Wrh, br, Whx, Whh, bh = weights
        z = eb.sigmoid(_sums(bz, Wzx, x, Wzh, h))
        if h is None:
            return None, eb.multiply(z, eb.tanh(_sums(bh, Whx, x, Whh, None)))
        r = eb.sigmoid(_sums(br, Wrx, x, Wrh, h))
        new = eb.tanh(_sums(bh, Whx, x, Whh, eb.multiply(r, h)))
        return None, eb.add(eb.multiply(eb.subtract(1.0, z), h), eb.multiply(z, new))


class SimpleRNNBuilder(RNNBuilder):
    """h' = tanh(Wx x + Wh h + b)."""

    part = "simple-rnn-builder"
    has_cells = False

    def added(self, size: int, model: ParameterCollection) -> list[Parameters]:
        """Wx, Wh, b."""
        n, add = self.hidden_dim, self._model.add_parameters
        return [add((n, size)), add((n, n)), add(n, init=0.0)]

    def formula(self, weights: Sequence[Any], c: Any, h: Any, x: Any) -> tuple[Any, Any]:
        """None, and the output of a layer after an input."""
        Wx, Wh, b = weights
        return None, eb.tanh(_sums(b, Wx, x, Wh, h))
