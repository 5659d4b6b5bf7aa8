"""Recurrent layers: states that take one input after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import edbatch as eb
from edbatch.models.arguments import checked


class Layer:
    """A layer with a state of vectors [dim].

    Args:
        input_dim, dim: sizes of input and state.
        name: prefix of its parameters' names; one that is free by default.
        recurrent_dropout: rate at which the new values are dropped that go into a state, in training. What is in the
            state stays: it is not lost over long sequences (Semeniuta et al. 2016).
    """

    prefix: str

    @checked
    def __init__(
        self, model: eb.ParameterCollection, input_dim: int, dim: int, name: str | None = None,
        *, recurrent_dropout: float = 0.0,
    ) -> None:  # fmt: skip
        self.dim, self.recurrent_dropout = dim, recurrent_dropout
        self._add_parameters(model, input_dim, name or model.free_name(self.prefix))

    def _add_parameters(self, model: eb.ParameterCollection, input_dim: int, name: str) -> None:
        raise NotImplementedError


class Recurrent(Layer):
    """A recurrent layer, of which `step` is a cell of an input [input_dim] and `states` vectors, the first of them its
    output. Arguments as of `Layer`.

    The products with the input do not wait for the state: those of all inputs run first, in one batch, and only what
    needs the state runs step by step (see `eb.cell`).
    """

    prefix = "recurrent"
    states = 1
    gates = 1  # vectors of size `dim` that a step computes from input and state
    step: Any

    def _add_parameters(self, model: eb.ParameterCollection, input_dim: int, name: str) -> None:
        self.W = model.add_parameters((self.gates * self.dim, input_dim), name=f"{name}.W")
        self.U = model.add_parameters((self.gates * self.dim, self.dim), name=f"{name}.U")
        self.b = model.add_parameters((self.gates * self.dim,), name=f"{name}.b")

    def initial_state(self, *vectors: eb.Expression) -> State:
        """A state to start from: zeros, or the given vectors (one per state vector, each [dim])."""
        return State(self, vectors or (eb.zeros(self.dim),) * self.states)


@dataclass(frozen=True)
class State:
    """The state vectors [dim] of a layer after some inputs; another input gives a new state and leaves this as it is.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models import GRU
        >>> gru = GRU(eb.ParameterCollection(seed=0), input_dim=3, dim=2)
        >>> with eb.Graph() as graph:
        ...     xs = [eb.input([1.0, 0.0, 0.0]), eb.input([0.0, 1.0, 0.0])]
        ...     state = gru.initial_state().add_input(xs[0]).add_input(xs[1])
        ...     outputs = gru.initial_state().transduce(xs)
        >>> bool((outputs[-1].value() == state.output().value()).all())
        True
    """

    layer: Recurrent
    vectors: tuple[eb.Expression, ...]

    def add_input(self, x: eb.Expression) -> State:
        """The state after one more input [input_dim]."""
        stepped = self.layer.step(x, *self.vectors)
        return State(self.layer, stepped if isinstance(stepped, tuple) else (stepped,))

    def transduce(self, xs: Iterable[eb.Expression]) -> list[eb.Expression]:
        """The outputs [dim] after each of the inputs."""
        return self.read(xs)[0]

    def read(self, xs: Iterable[eb.Expression]) -> tuple[list[eb.Expression], State]:
        """The outputs [dim] after each of the inputs, and the state after the last."""
        step, vectors, outputs = self.layer.step, self.vectors, []
        if len(vectors) == 2:  # a tuple, let alone a `State`, after each would take half as long as the step to record
            h, c = vectors
            for x in xs:
                h, c = step(x, h, c)
                outputs.append(h)
            return outputs, State(self.layer, (h, c))
        for x in xs:
            stepped = step(x, *vectors)
            vectors = stepped if isinstance(stepped, tuple) else (stepped,)
            outputs.append(vectors[0])
        return outputs, State(self.layer, vectors)

    def output(self) -> eb.Expression:
        """The output [dim]: the first state vector."""
        return self.vectors[0]


@dataclass(frozen=True)
class StackedState:
    """The states of layers on top of one another, from below; used like a `State`."""

    states: tuple[State, ...]
    dropout: float = 0.0

    def add_input(self, x: eb.Expression) -> StackedState:
        """The state after one more input of the lowest layer."""
        above: list[State] = []
        for state in self.states:
            after = state.add_input(eb.dropout(x, self.dropout) if above else x)
            above.append(after)
            x = after.output()
        return StackedState(tuple(above), self.dropout)

    def transduce(self, xs: Iterable[eb.Expression]) -> list[eb.Expression]:
        """The highest layer's outputs after each of the inputs."""
        lowest, *others = self.states
        outputs = lowest.transduce(xs)
        for state in others:
            outputs = state.transduce([eb.dropout(x, self.dropout) for x in outputs] if self.dropout else outputs)
        return outputs

    def output(self) -> eb.Expression:
        """The highest layer's output."""
        return self.states[-1].output()


class Stacked:
    """Layers on top of one another, from below: each takes the output of the one below.

    `dropout` is the rate at which outputs are dropped on their way from one layer to the next, in training (as of
    PyTorch's layers): anew at every step.
    """

    @checked
    def __init__(self, layers: Sequence[Recurrent], dropout: float = 0.0) -> None:
        self.layers, self.dropout = tuple(layers), dropout
        if not self.layers:
            raise eb.EdBatchError("Stacked: expected at least one layer, got none")

    def initial_state(self) -> StackedState:
        """Zeros for every layer."""
        return StackedState(tuple(layer.initial_state() for layer in self.layers), self.dropout)


class Bidirectional:
    """A layer (or stack) that reads from left to right beside one that reads from right to left.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models import LSTM
        >>> model = eb.ParameterCollection(seed=0)
        >>> both = Bidirectional(LSTM(model, 3, 4, name="right"), LSTM(model, 3, 4, name="left"))
        >>> with eb.Graph():
        ...     outputs = both.transduce([eb.zeros(3), eb.ones(3)])
        >>> [y.shape for y in outputs]
        [(8,), (8,)]
    """

    @checked
    def __init__(self, forward: Recurrent | Stacked, backward: Recurrent | Stacked) -> None:
        self.forward, self.backward = forward, backward

    def transduce(self, xs: Sequence[eb.Expression]) -> list[eb.Expression]:
        """Per input the output of reading up to it from the left beside that of reading up to it from the right."""
        right = self.forward.initial_state().transduce(xs)
        left = self.backward.initial_state().transduce(xs[::-1])[::-1]
        return [eb.concatenate([a, b]) for a, b in zip(right, left, strict=True)]
