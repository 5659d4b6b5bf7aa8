"""Recurrent states and what all builders share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

import edbatch as eb
from edbatch.dynet.checked import integer
from edbatch.dynet.collection import ParameterCollection
from edbatch.dynet.draws import generator
from edbatch.dynet.implicit import DynetError, DynetTypeError, implicit
from edbatch.dynet.parameters import Parameters
from edbatch.errors import shown

Layers = list[Any]


class RNNState:
    """A state of a recurrence, from which any number of next ones are made.

    Args:
        builder: of the recurrence.
        cells: of each layer its memory (None before the first step), for recurrences that have one.
        outputs: of each layer its output; None before the first step.
        prev: the state that this one follows.
    """

    def __init__(self, builder: RNNBuilder, cells: Layers, outputs: Layers, prev: RNNState | None = None) -> None:
        self._builder, self._cells, self._outputs, self._prev = builder, cells, outputs, prev

    def add_input(self, x: Any) -> RNNState:
        """The state after an input."""
        return RNNState(self._builder, *self._builder.step(self._cells, self._outputs, x), prev=self)

    def add_inputs(self, xs: Sequence[Any]) -> list[RNNState]:
        """The states after each of several inputs."""
        states, state = [], self
        for x in xs:
            state = state.add_input(x)
            states.append(state)
        return states

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
        return (*(x for x in self._cells if x is not None), *self.h())

    def prev(self) -> RNNState | None:
        """The state that this one follows."""
        return self._prev

    def b(self) -> RNNBuilder:
        """The builder."""
        return self._builder

    def set_h(self, es: Sequence[Any] | None = None) -> RNNState:
        """The state with other outputs."""
        outputs = list(es) if es is not None else self._outputs
        self._builder.expect_layers(outputs, 1)
        return RNNState(self._builder, self._builder.begun(self._cells), outputs, prev=self)

    def set_s(self, es: Sequence[Any] | None = None) -> RNNState:
        """The state with other memories and outputs."""
        found = (self._cells, self._outputs) if es is None else self._builder.split(list(es), self._outputs)
        return RNNState(self._builder, *found, prev=self)


class _Step:
    """A step of a layer as one node: products with inputs are computed for all steps of a sequence at once."""

    def __init__(self, builder: RNNBuilder, number: int) -> None:
        self._builder, self._weights = builder, builder.weights(number)

    @eb.cell
    def of_both(self, c: Any, h: Any, x: Any) -> tuple[Any, Any]:
        """Memory and output after an input."""
        return self._builder.formula(self._weights, c, h, x)

    @eb.cell
    def of_output(self, h: Any, x: Any) -> Any:
        """The output after an input, of recurrences without a memory."""
        return self._builder.formula(self._weights, None, h, x)[1]


class RNNBuilder:
    """What all recurrences share: their parameters, layer by layer, and dropout.

    Args:
        layers: how many.
        input_dim, hidden_dim: sizes of the input and of each layer's output.
        model: to which a part with the parameters is added.
    """

    part: ClassVar[str]
    has_cells: ClassVar[bool] = True
    in_cells = True

    def __init__(self, layers: int, input_dim: int, hidden_dim: int, model: ParameterCollection) -> None:
        if not isinstance(model, ParameterCollection):
            raise DynetTypeError(f"{self.whoami()}: expected a ParameterCollection, got {shown(model)}")
        self.layers = integer(f"{self.whoami()}: layers", layers, 1)
        self.input_dim = integer(f"{self.whoami()}: input_dim", input_dim, 1)
        self.hidden_dim = integer(f"{self.whoami()}: hidden_dim", hidden_dim, 1)
        self._model = model.add_subcollection(self.part)
        self._parameters = [
            self.added(self.input_dim if layer == 0 else self.hidden_dim, model) for layer in range(self.layers)
        ]
        self._rates, self._updates = (0.0, 0.0), True
        self._steps = [_Step(self, number) for number in range(self.layers)] if self.in_cells else []
        self._version = -1
        self._masks: list[tuple[Any, Any]] | None = None

    def added(self, size: int, model: ParameterCollection) -> list[Parameters]:
        """Add the parameters of a layer with inputs of a size."""
        raise NotImplementedError

    def formula(self, weights: Sequence[Any], c: Any, h: Any, x: Any) -> tuple[Any, Any]:
        """Memory and output of a layer with these weights after an input; c and h are None before the first step."""
        raise NotImplementedError

    def layer(self, number: int, c: Any, h: Any, x: Any) -> tuple[Any, Any]:
        """Memory and output of a layer after an input."""
        x, h = self.masked(number, x, h)
        if self.in_cells and self._updates and len(x.spec.shape) == 1:  # columns broadcast otherwise than vectors
            before = eb.zeros(self.hidden_dim) if h is None else h
            if not self.has_cells and len(before.spec.shape) == 1:
                return None, self._steps[number].of_output(before, x)
            memory = eb.zeros(self.hidden_dim) if c is None else c
            if self.has_cells and len(before.spec.shape) == len(memory.spec.shape) == 1:
                return self._steps[number].of_both(memory, before, x)
        return self.formula(self.weights(number), c, h, x)

    def weights(self, number: int) -> list[Any]:
        """The parameters of a layer, as constants if `initial_state` said so."""
        found = self._parameters[number]
        return found if self._updates else [x.expr(False) for x in found]

    @property
    def spec(self) -> tuple[Any, ...]:
        """What it is made again from, but for its parameters."""
        return self.layers, self.input_dim, self.hidden_dim

    @classmethod
    def from_spec(cls, spec: tuple[Any, ...], model: ParameterCollection) -> Self:
        """A builder like another."""
        layers, input_dim, hidden_dim, *others = spec
        return cls(layers, input_dim, hidden_dim, model, *others)

    def whoami(self) -> str:
        """Its name."""
        return type(self).__name__

    def param_collection(self) -> ParameterCollection:
        """Its parameters."""
        return self._model

    def get_parameters(self) -> list[list[Parameters]]:
        """The parameters of each layer."""
        return [list(of_layer) for of_layer in self._parameters]

    def get_parameter_expressions(self) -> list[list[Any]]:
        """The parameters of each layer as expressions of this graph, in which `initial_state` was called."""
        if self._version != implicit.version:
            raise DynetError(f"{self.whoami()}: call initial_state before parameter expressions are asked for")
        return self.get_parameters()

    def initial_state(self, vecs: Sequence[Any] | None = None, update: bool = True) -> RNNState:
        """The state before the first step; `vecs`: its memories and outputs; `update`: whether trainers change it."""
        self._updates, self._version = update, implicit.version
        self._masks = None
        if any(self._rates):
            self.set_dropout_masks(1)
        if vecs is None or not len(vecs):
            return RNNState(self, [None] * self.layers, [None] * self.layers)
        return RNNState(self, *self.split(list(vecs), [None] * self.layers))

    def initial_state_from_raw_vectors(self, vecs: Sequence[Any], update: bool = True) -> RNNState:
        """`initial_state` of numbers."""
        implicit.recorded_into()
        return self.initial_state([eb.input(np.asarray(vec, np.float32)) for vec in vecs], update)

    def step(self, cells: Layers, outputs: Layers, x: Any) -> tuple[Layers, Layers]:
        """Memories and outputs of all layers after an input."""
        new_cells, new_outputs = [], []
        for number in range(self.layers):
            c, x = self.layer(number, cells[number], outputs[number], x)
            new_cells.append(c)
            new_outputs.append(x)
        return new_cells, new_outputs

    def begun(self, cells: Layers) -> Layers:
        """Memories, of zeros before the first step."""
        return [eb.zeros(self.hidden_dim) if c is None and self.has_cells else c for c in cells]

    def split(self, es: Layers, outputs: Layers) -> tuple[Layers, Layers]:
        """Memories and outputs, of one list of both; of memories alone, if that is as long as there are layers."""
        for x in es:
            if x.spec.shape[:1] != (self.hidden_dim,):
                raise DynetError(f"{self.whoami()}: expected states of {self.hidden_dim} entries, got {x.spec.shape}")
        if not self.has_cells:
            self.expect_layers(es, 1)
            return [None] * self.layers, es
        if len(es) == self.layers:
            return es, outputs
        self.expect_layers(es, 2)
        return es[: self.layers], es[self.layers :]

    def expect_layers(self, es: Layers, times: int) -> None:
        """Check how many expressions there are."""
        if len(es) != times * self.layers:
            raise DynetError(f"{self.whoami()}: expected {times * self.layers} expressions, got {len(es)}")

    def set_dropout(self, f: float) -> None:
        """The dropout rate of inputs and outputs."""
        self.set_dropouts(f, f)

    def set_dropouts(self, d: float, d_r: float) -> None:
        """The dropout rates of inputs and of outputs, whose masks are the same at all steps (Gal 2016)."""
        if not (0 <= d <= 1 and 0 <= d_r <= 1):
            raise DynetError("dropout rate must be a probability (>=0 and <=1)")
        self._rates = (d, d_r)

    def disable_dropout(self) -> None:
        """No dropout."""
        self._rates, self._masks = (0.0, 0.0), None

    def set_dropout_masks(self, batch_size: int = 1) -> None:
        """Draw masks, for each entry of a mini-batch its own; after `initial_state`."""
        sizes = [self.input_dim, *[self.hidden_dim] * (self.layers - 1)]
        self._masks = [
            (_mask(size, self._rates[0], batch_size), _mask(self.hidden_dim, self._rates[1], batch_size))
            for size in sizes
        ]

    def masked(self, number: int, x: Any, h: Any) -> tuple[Any, Any]:
        """What dropout leaves of a layer's input and output."""
        if self._masks is None:
            return x, h
        of_x, of_h = self._masks[number]
        x = x if of_x is None else eb.multiply(x, of_x)
        return x, h if of_h is None or h is None else eb.multiply(h, of_h)


def _mask(size: int, rate: float, batch_size: int) -> Any:
    """Numbers 0 and 1 / (1 - rate); None if all are 1."""
    if not rate:
        return None
    implicit.recorded_into()
    drawn = (generator().random((batch_size, size)) >= rate) / (1 - rate if rate < 1 else 1)
    return eb.array(drawn.astype(np.float32)) if batch_size > 1 else eb.input(drawn[0])
