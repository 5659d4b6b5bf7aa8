"""TreeLSTMs of DyNet's C++ library, which its Python has no names for: nodes are added one by one, children first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import edbatch as eb
from edbatch.dynet.collection import ParameterCollection
from edbatch.dynet.implicit import DynetError
from edbatch.dynet.linear import affine_transform
from edbatch.dynet.parameters import LookupParameters, Parameters, lookup_row
from edbatch.dynet.recurrent import VanillaLSTMBuilder
from edbatch.dynet.shape import concatenate


class TreeLSTMBuilder:
    """Outputs of the nodes of trees, each of an input and of the node's children; the base of all.

    Args:
        model: to which a part with the parameters is added.

    Example:
        >>> from edbatch import dynet as dy
        >>> builder = dy.NaryTreeLSTMBuilder(2, 1, 3, 4, dy.ParameterCollection())
        >>> builder.start_new_sequence()
        >>> leaves = [builder.add_input(leaf, [], dy.ones(3)) for leaf in (0, 1)]
        >>> builder.add_input(2, [0, 1], dy.zeros(3)).dim()
        ((4,), 1)
        >>> dy.close_cg()
    """

    part: ClassVar[str]

    def __init__(self, model: ParameterCollection) -> None:
        self._model = model.add_subcollection(self.part)

    def param_collection(self) -> ParameterCollection:
        """Its parameters."""
        return self._model

    @property
    def spec(self) -> tuple[int, ...]:
        """What it is made again from, but for its parameters."""
        raise NotImplementedError

    @classmethod
    def from_spec(cls, spec: tuple[Any, ...], model: ParameterCollection) -> Self:
        """A builder like another."""
        make: Any = cls
        found: Self = make(*spec, model)
        return found

    def whoami(self) -> str:
        """Its name."""
        return type(self).__name__

    def start_new_sequence(self, vecs: Sequence[Any] = (), update: bool = True) -> None:
        """Forget all nodes; once in each graph at least.

        Args:
            vecs: memories and outputs that the recurrences of a node begin with.
            update: whether trainers change the parameters.
        """
        raise NotImplementedError

    def add_input(self, id: int, children: Sequence[int], x: Any) -> Any:
        """The output of a node.

        Args:
            id: number of the node, by which its parent will name it.
            children: their numbers; each was added before.
            x: input of the node.
        """
        raise NotImplementedError


def _found(nodes: dict[int, Any], children: Sequence[int]) -> list[Any]:
    """What was kept of the children of a node."""
    missing = [child for child in children if child not in nodes]
    if missing:
        raise DynetError(f"add_input: children {missing} were not added before; expected children first")
    return [nodes[child] for child in children]


class NaryTreeLSTMBuilder(TreeLSTMBuilder):
    """Every child has weights of its own (Tai, Socher and Manning 2015, section 3.2); gates see the memories, too.

    Args:
        N: how many children have weights of their own; further ones share those of the last.
        layers: how many.
        input_dim, hidden_dim: sizes of the inputs and of each layer's output.
        model: to which a part with the parameters is added.
    """

    part = "nary-tree-lstm-builder"

    def __init__(self, N: int, layers: int, input_dim: int, hidden_dim: int, model: ParameterCollection) -> None:
        super().__init__(model)
        self.N, self.layers, self.input_dim, self.hidden_dim = int(N), int(layers), int(input_dim), int(hidden_dim)
        self._parameters = [self._added(self.hidden_dim if layer else self.input_dim) for layer in range(self.layers)]
        self._nodes: dict[int, tuple[list[Any], list[Any]]] = {}
        self._updates = True

    @property
    def spec(self) -> tuple[int, ...]:
        """What it is made again from, but for its parameters."""
        return self.N, self.layers, self.input_dim, self.hidden_dim

    def _added(self, size: int) -> dict[str, tuple[Parameters, list[LookupParameters], Parameters]]:
        """By gate the weights of the input, of each child's output and memory, and the bias."""
        n, made = self.hidden_dim, {}
        for gate in "ifoc":
            rows = self.N**2 if gate == "f" else self.N
            of_input = self._model.add_parameters((n, size))
            seen = ("h",) if gate == "c" else ("h", "c")
            tables = [self._model.add_lookup_parameters((rows, n, n)) for _ in seen]
            made[gate] = of_input, tables, self._model.add_parameters(n, init=0.0)
        return made

    def start_new_sequence(self, vecs: Sequence[Any] = (), update: bool = True) -> None:
        """Forget all nodes; `vecs`: none, as nodes without children have nothing before them."""
        if len(vecs):
            raise DynetError("NaryTreeLSTMBuilder: expected no vectors to begin with")
        self._nodes, self._updates = {}, update

    def add_input(self, id: int, children: Sequence[int], x: Any) -> Any:
        """The output of a node, see `TreeLSTMBuilder`."""
        below = _found(self._nodes, children)
        cells, outputs = [], []
        for number in range(self.layers):
            c, x = self._layer(number, [(hs[number], cs[number]) for cs, hs in below], x)
            cells.append(c)
            outputs.append(x)
        self._nodes[id] = cells, outputs
        return x

    def _layer(self, number: int, below: list[tuple[Any, Any]], x: Any) -> tuple[Any, Any]:
        """Memory and output of a layer, of those of the children and an input."""
        places = [min(at, self.N - 1) for at in range(len(below))]

        def sums(gate: str, rows: list[int]) -> Any:
            of_input, tables, bias = self._parameters[number][gate]
            listed = [bias.expr(self._updates), of_input.expr(self._updates), x]
            for row, states in zip(rows, below, strict=True):
                for table, state in zip(tables, states, strict=False):
                    weight = lookup_row(table, row)
                    listed += [weight if self._updates else eb.stop_gradient(weight), state]
            return affine_transform(listed)

        c = eb.multiply(eb.sigmoid(sums("i", places)), eb.tanh(sums("c", places)))
        for own, (_, memory) in zip(places, below, strict=True):
            kept = sums("f", [other * self.N + own for other in places])
            c = eb.add(c, eb.multiply(eb.sigmoid(eb.add(kept, 1.0)), memory))
        return c, eb.multiply(eb.sigmoid(sums("o", places)), eb.tanh(c))


class UnidirectionalTreeLSTMBuilder(TreeLSTMBuilder):
    """A node is an LSTM's last output over its input and the outputs of its children.

    Args:
        layers: of the LSTM.
        input_dim, hidden_dim: sizes of inputs and outputs, the same: outputs of children are inputs.
        model: to which a part with the parameters is added.
    """

    part = "unidirectional-tree-lstm-builder"
    directions = 1

    def __init__(self, layers: int, input_dim: int, hidden_dim: int, model: ParameterCollection) -> None:
        super().__init__(model)
        if hidden_dim % self.directions:
            raise DynetError(f"{self.whoami()}: expected an even hidden_dim, got {hidden_dim}")
        self.layers, self.input_dim, self.hidden_dim = int(layers), int(input_dim), int(hidden_dim)
        self._lstms = [
            VanillaLSTMBuilder(layers, input_dim, hidden_dim // self.directions, self._model)
            for _ in range(self.directions)
        ]
        self._states: list[Any] = []
        self._nodes: dict[int, Any] = {}

    @property
    def spec(self) -> tuple[int, ...]:
        """What it is made again from, but for its parameters."""
        return self.layers, self.input_dim, self.hidden_dim

    def start_new_sequence(self, vecs: Sequence[Any] = (), update: bool = True) -> None:
        """Forget all nodes, see `TreeLSTMBuilder`."""
        self._nodes, self._states = {}, [lstm.initial_state(vecs, update) for lstm in self._lstms]

    def add_input(self, id: int, children: Sequence[int], x: Any) -> Any:
        """The output of a node, see `TreeLSTMBuilder`."""
        below = _found(self._nodes, children)
        if not self._states:
            raise DynetError(f"{self.whoami()}: expected a call of start_new_sequence in this graph before")
        outputs = [state.transduce([x, *hs])[-1] for state, hs in zip(self._states, (below, below[::-1]), strict=False)]
        self._nodes[id] = outputs[0] if len(outputs) == 1 else concatenate(outputs)
        return self._nodes[id]


class BidirectionalTreeLSTMBuilder(UnidirectionalTreeLSTMBuilder):
    """`UnidirectionalTreeLSTMBuilder` of two LSTMs, each of half the size: the second takes the children backwards."""

    part = "bidirectional-tree-lstm-builder"
    directions = 2
