"""Recurrences forth and back over a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from edbatch.dynet.collection import ParameterCollection
from edbatch.dynet.shape import concatenate


class BiRNNBuilder:
    """Layers of two recurrences, one forth and one back, whose outputs are concatenated.

    Args:
        num_layers: how many.
        input_dim: size of the inputs.
        hidden_dim: size of the outputs, half of it from each direction.
        model: to which a part with the parameters is added.
        rnn_builder_factory: class of the recurrences.
        builder_layers: pairs of recurrences, if they are there already.
    """

    def __init__(
        self, num_layers: int, input_dim: int, hidden_dim: int, model: ParameterCollection, rnn_builder_factory: Any,
        builder_layers: list[Any] | None = None,
    ) -> None:  # fmt: skip
        if num_layers < 1 or hidden_dim % 2:
            raise AssertionError(f"BiRNN hidden dimension must be even: {hidden_dim}, of {num_layers} layers")
        self.spec = num_layers, input_dim, hidden_dim, rnn_builder_factory, builder_layers
        self._model = model.add_subcollection("birnn")
        self.builder_layers = builder_layers or [
            tuple(
                rnn_builder_factory(1, input_dim if not layer else hidden_dim, hidden_dim // 2, self._model)
                for _ in range(2)
            )
            for layer in range(num_layers)
        ]

    def whoami(self) -> str:
        """Its name."""
        return "BiRNNBuilder"

    def param_collection(self) -> ParameterCollection:
        """Its parameters."""
        return self._model

    @classmethod
    def from_spec(cls, spec: tuple[Any, ...], model: ParameterCollection) -> Self:
        """A builder like another."""
        num_layers, input_dim, hidden_dim, factory, layers = spec
        return cls(num_layers, input_dim, hidden_dim, model, factory, layers)

    def set_dropout(self, p: float) -> None:
        """As of each recurrence."""
        for pair in self.builder_layers:
            for builder in pair:
                builder.set_dropout(p)

    def disable_dropout(self) -> None:
        """As of each recurrence."""
        for pair in self.builder_layers:
            for builder in pair:
                builder.disable_dropout()

    def add_inputs(self, es: Sequence[Any]) -> list[tuple[Any, Any]]:
        """For each input the states of both directions of the last layer."""
        es = list(es)
        for forth, back in self.builder_layers[:-1]:
            es = _both(forth, back, es)
        forth, back = self.builder_layers[-1]
        backwards = back.initial_state().add_inputs(es[::-1])
        return list(zip(forth.initial_state().add_inputs(es), backwards[::-1], strict=True))

    def transduce(self, es: Sequence[Any]) -> list[Any]:
        """For each input the outputs of both directions, concatenated."""
        es = list(es)
        for forth, back in self.builder_layers:
            es = _both(forth, back, es)
        return es


def _both(forth: Any, back: Any, es: list[Any]) -> list[Any]:
    first, second = forth.initial_state().transduce(es), back.initial_state().transduce(es[::-1])
    return [concatenate([f, b]) for f, b in zip(first, reversed(second), strict=True)]


class StackedRNNState:
    """States of several recurrences, one over the other.

    Args:
        states: of each.
        prev: the stack that this one follows.
    """

    def __init__(self, states: Sequence[Any], prev: StackedRNNState | None = None) -> None:
        self.states, self._prev = list(states), prev

    def add_input(self, x: Any) -> StackedRNNState:
        """The stack after an input."""
        states = []
        for state in self.states:
            states.append(state.add_input(x))
            x = states[-1].output()
        return StackedRNNState(states, self)

    def add_inputs(self, xs: Sequence[Any]) -> list[StackedRNNState]:
        """The stacks after each of several inputs."""
        found, state = [], self
        for x in xs:
            state = state.add_input(x)
            found.append(state)
        return found

    def output(self) -> Any:
        """The output of the last."""
        return self.states[-1].output()

    def prev(self) -> StackedRNNState | None:
        """The stack that this one follows."""
        return self._prev

    def h(self) -> list[Any]:
        """The outputs of each."""
        return [x for state in self.states for x in state.h()]

    def s(self) -> list[Any]:
        """Memories and outputs of each."""
        return [x for state in self.states for x in state.s()]
