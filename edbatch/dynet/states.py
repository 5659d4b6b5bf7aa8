"""Recurrent states and what all builders share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

import edbatch as eb
from edbatch.dynet.checked import integer
from edbatch.dynet.collection import Builder, ParameterCollection
from edbatch.dynet.implicit import DynetError, implicit
from edbatch.dynet.inputs import kept
from edbatch.dynet.parameters import Parameters

Layers = list[Any]


class RNNState:
    """A state of a recurrence, of each layer its memory and its output; both are None before the first step."""

    def __init__(self, builder: RNNBuilder, cells: Layers, outputs: Layers, prev: RNNState | None = None) -> None:
        self._builder, self._cells, self._outputs, self._prev = builder, cells, outputs, prev

    def add_input(self, x: Any) -> RNNState:
        """The state after an input."""
        return RNNState(self._builder, *self._builder.step(self._cells, self._outputs, x), prev=self)

    def add_inputs(self, xs: Sequence[Any]) -> list[RNNState]:
        """The states after each of several inputs."""
        states = [self]
        for x in xs:
            states.append(states[-1].add_input(x))
        return states[1:]

    def transduce(self, xs: Sequence[Any]) -> list[Any]:
        """The outputs after each of several inputs."""
        outputs, cells, states = [], self._cells, self._outputs
        step = self._builder.step
        for x in xs:
            cells, states = step(cells, states, x)
            outputs.append(states[-1])
        return outputs

    def output(self) -> Any:
        """The output of the last layer; None before the first step."""
        return self._outputs[-1]

    def h(self) -> tuple[Any, ...]:
        """The outputs of all layers; none before the first step."""
        return tuple(x for x in self._outputs if x is not None)

    def s(self) -> tuple[Any, ...]:
        """The memories of all layers, if there are any, and their outputs."""
        return tuple(x for x in (*self._cells, *self._outputs) if x is not None)

    def prev(self) -> RNNState | None:
        """The state that this one follows."""
        return self._prev

    def set_h(self, es: Sequence[Any]) -> RNNState:
        """The state with other outputs."""
        return RNNState(self._builder, self._cells, self._builder.expected(es, 1), prev=self)

    def set_s(self, es: Sequence[Any]) -> RNNState:
        """The state with other memories and outputs."""
        return RNNState(self._builder, *self._builder.split(es, self._outputs), prev=self)


class _Step:
    """A step of a layer as one node: products with inputs are computed for all steps of a sequence at once."""

    def __init__(self, builder: RNNBuilder, number: int) -> None:
        self._formula, self._weights = builder._formula, builder._weights(number)

    @eb.cell
    def of_both(self, c: Any, h: Any, x: Any) -> tuple[Any, Any]:
        """Memory and output after an input."""
        return self._formula(self._weights, c, h, x)

    @eb.cell
    def of_output(self, h: Any, x: Any) -> Any:
        """The output after an input, of recurrences without a memory."""
        return self._formula(self._weights, None, h, x)[1]


class RNNBuilder(Builder):
    """What all recurrences share: their parameters, layer by layer, and dropout.

    A recurrence says of which shapes the parameters of a layer are (vectors are biases, which begin as 0), and what
    memory and output follow from them.
    """

    has_cells: ClassVar[bool] = True

    def __init__(self, layers: int, input_dim: int, hidden_dim: int, model: ParameterCollection) -> None:
        self.layers = integer("layers", layers, 1)
        self.input_dim, self.hidden_dim = integer("input_dim", input_dim, 1), integer("hidden_dim", hidden_dim, 1)
        super().__init__(model)
        self._sizes = [self.input_dim, *[self.hidden_dim] * (self.layers - 1)]
        add, shapes = self._model.add_parameters, [self._shapes(size, self.hidden_dim) for size in self._sizes]
        self._parameters = [[add(one, init=0.0 if len(one) == 1 else None) for one in of_layer] for of_layer in shapes]
        self._rate, self._updates, self._version = 0.0, True, -1
        self._steps = [_Step(self, number) for number in range(self.layers)]
        self._masks: list[list[Any]] = []  # of input and output of each layer, if there is dropout

    def _shapes(self, size: int, n: int) -> list[tuple[int, ...]]:
        raise NotImplementedError

    def _formula(self, weights: Sequence[Any], c: Any, h: Any, x: Any) -> tuple[Any, Any]:
        raise NotImplementedError

    def _weights(self, number: int) -> list[Any]:
        """The parameters of a layer, as constants if `initial_state` said so."""
        found = self._parameters[number]
        return found if self._updates else [x.expr(False) for x in found]

    def _layer(self, number: int, c: Any, h: Any, x: Any) -> tuple[Any, Any]:
        """Memory and output of a layer after an input; both are None before the first step."""
        begin = eb.zeros((self.hidden_dim, *x.spec.shape[1:])) if c is None or h is None else None
        h = begin if h is None else h
        c = begin if c is None and self.has_cells else c
        if self._masks:
            of_x, of_h = self._masks[number]
            x, h = eb.multiply(x, of_x), eb.multiply(h, of_h)
        # Columns broadcast otherwise than vectors.
        if self._updates and len(x.spec.shape) == len(h.spec.shape) == 1:
            if c is None:
                return None, self._steps[number].of_output(h, x)
            if len(c.spec.shape) == 1:
                return self._steps[number].of_both(c, h, x)
        return self._formula(self._weights(number), c, h, x)

    @property
    def spec(self) -> tuple[Any, ...]:
        """What it is made again from, but for its parameters."""
        return self.layers, self.input_dim, self.hidden_dim

    def get_parameters(self) -> list[list[Parameters]]:
        """The parameters of each layer."""
        return [list(of_layer) for of_layer in self._parameters]

    def get_parameter_expressions(self) -> list[list[Any]]:
        """The parameters of each layer as expressions of this graph, in which `initial_state` was called."""
        if self._version != implicit.version:
            raise DynetError(f"{type(self).__name__}: call initial_state before parameter expressions are asked for")
        return self.get_parameters()

    def initial_state(self, vecs: Sequence[Any] | None = None, update: bool = True) -> RNNState:
        """The state before the first step; `vecs`: its memories and outputs; `update`: whether trainers change it."""
        self._updates, self._version = update, implicit.version
        self.set_dropout_masks()
        nothing = [None] * self.layers
        if vecs is None or not len(vecs):
            return RNNState(self, nothing, nothing)
        return RNNState(self, *self.split(vecs, nothing))

    def step(self, cells: Layers, outputs: Layers, x: Any) -> tuple[Layers, Layers]:
        """Memories and outputs of all layers after an input."""
        new_cells, new_outputs = [], []
        for number in range(self.layers):
            c, x = self._layer(number, cells[number], outputs[number], x)
            new_cells.append(c)
            new_outputs.append(x)
        return new_cells, new_outputs

    def split(self, es: Sequence[Any], outputs: Layers) -> tuple[Layers, Layers]:
        """Memories and outputs, of one list of both; of memories alone, if that is as long as there are layers."""
        if self.has_cells and len(es) == self.layers:
            return self.expected(es, 1), outputs
        found = self.expected(es, 1 + self.has_cells)
        return (found[: self.layers], found[self.layers :]) if self.has_cells else ([None] * self.layers, found)

    def expected(self, es: Sequence[Any], times: int) -> Layers:
        """States, as many as there are layers or twice as many, each of `hidden_dim` entries."""
        shapes = [x.spec.shape for x in es]
        if len(shapes) != times * self.layers or any(shape[:1] != (self.hidden_dim,) for shape in shapes):
            raise DynetError(f"expected {times * self.layers} states of {self.hidden_dim} entries, got {shapes}")
        return list(es)

    def set_dropout(self, f: float) -> None:
        """The dropout rate of inputs and outputs, whose masks are the same at all steps (Gal 2016)."""
        self._rate = f

    def disable_dropout(self) -> None:
        """No dropout."""
        self._rate, self._masks = 0.0, []

    def set_dropout_masks(self, batch_size: int = 1) -> None:
        """Draw masks, for each entry of a mini-batch its own; after `initial_state`."""
        self._masks = []
        if self._rate:
            implicit.recorded_into()
            self._masks = [[self._mask(n, batch_size) for n in (size, self.hidden_dim)] for size in self._sizes]

    def _mask(self, size: int, batch_size: int) -> Any:
        drawn = kept((batch_size, size), self._rate).astype(np.float32)
        return eb.array(drawn) if batch_size > 1 else eb.input(drawn[0])
