"""What was recorded, ready to be appended to any graph."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from itertools import count
from typing import Any, ClassVar, NamedTuple

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.array_graph import array_graph
from edbatch.graph.columns import Columns, Pieces, Placed, nodes_of, pack_row
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.node_type import parameter_of
from edbatch.graph.op import Op
from edbatch.graph.record import constant_node, number, parameter_node
from edbatch.graph.replay.nesting import Form
from edbatch.graph.replay.recorder import DRAWN, Recorder
from edbatch.graph.sources import INPUT
from edbatch.graph.spec import ParameterSpec, Spec
from edbatch.graph.views import NODE_BITS, NODE_MASK, VIEWS, look

# What is added to an integer: nothing, the id of the first node, or one of the numbers that are found for each call:
# how many inputs there are, the first integer that is drawn, and the ids of constants and arguments.
NOTHING, FIRST, INPUTS, DRAWS, OTHERS = range(5)

_numbers = count(1)
_known: dict[bytes, int] = {}  # from the digest of a structure to its number
MOST_KNOWN = 1 << 14
OVERHEAD = 2500  # bytes of a recording and what finds it, without what is in it


class Leaf(NamedTuple):
    """An expression that is returned: what is added to its id is found as for a node's integers."""

    code: Any
    value: Any
    spec: Spec


class Recording:
    """Nodes, with what each of their integers is relative to.

    Attributes:
        n: how many nodes.
        row: where it lies, for the loop that appends it, and the number of its structure.
        types: of the nodes; kinds: each once.
        lines: where they were recorded, if that was noted.
        inputs: arrays of the input nodes.
        drawn: how many integers a call draws.
        constants: what finds each in a graph.
        arguments: of those that are read, the number of the argument, and the view that it is seen through.
        leaves, form: what is returned.
        plain: whether nothing has to be found for a call.
        single: of one expression that is returned and nothing else, its id and spec.
        bases: of one that stands for itself in a graph: nothing has to be found.
    """

    bases: ClassVar[tuple[int, ...]] = ()

    __slots__ = (
        "_given", "_returns_arrays", "_small", "arguments", "constants", "drawn", "form", "inputs", "kinds", "leaves",
        "lines", "n", "plain", "row", "single", "types",
    )  # fmt: skip

    def __init__(self, recorder: Recorder, leaves: list[Expression], form: Form) -> None:
        places = _Places(recorder)
        arrays = [(x, x.ids) if x.__class__ is ExpressionArray else (x, None) for x in leaves]
        taken = recorder.take()  # after what waited in arrays
        types, operands, integers, lines = recorder.joined(taken, 0) if isinstance(taken, Pieces) else taken
        if len(types) != recorder.n:
            raise EdBatchError(f"{recorder.place}: recording was interrupted")
        places.renumber(*(x if isinstance(x, list) else x.tolist() for x in (types, operands, integers)))
        self.n = len(places.types)
        self.lines = places.lines(lines)
        self.form = form
        self.leaves = [places.leaf(x, ids) for x, ids in arrays]
        self._returns_arrays = any(ids is not None for _, ids in arrays)
        self._given = np.array(places.operands + places.integers, np.int64)
        self._small = np.array([*places.types, *places.codes, *places.integer_codes], np.int32)
        self.types, self.kinds = self._small[: len(places.types)], frozenset(places.types)
        self.inputs = recorder.inputs
        self.drawn = recorder.drawn
        self.constants = [_finder(key) for key in places.constants]
        self.arguments = list(places.seen)
        self.plain = not (self.inputs or self.drawn or self.constants or self.arguments)
        leaf = self.leaves[0] if form.make is None else None
        is_one = leaf is not None and leaf.code.__class__ is int and leaf.code == FIRST
        self.single = (leaf.value, leaf.spec) if leaf is not None and is_one else None
        bases = 0 if self.plain else 2 + len(self.constants) + len(self.arguments)
        addresses = self._given.ctypes.data, self._small.ctypes.data
        number = _number_of(self._small.tobytes() + self._given[: len(places.operands)].tobytes())
        self.row = pack_row(self.n, len(places.operands), len(places.integers), bases, number, *addresses)

    @property
    def bytes(self) -> int:
        """That it takes, about."""
        return OVERHEAD + self._given.nbytes + self._small.nbytes + sum(x.nbytes + 100 for x in self.inputs)

    def is_like(self, other: Recording) -> bool:
        """Whether both record the same."""
        return (
            self._given.tobytes() == other._given.tobytes()
            and self._small.tobytes() == other._small.tobytes()
            and self.arguments == other.arguments
            and [(str(x.code), str(x.value), x.spec) for x in self.leaves]
            == [(str(x.code), str(x.value), x.spec) for x in other.leaves]
            and [x.tobytes() for x in self.inputs] == [x.tobytes() for x in other.inputs]
        )

    def append(self, graph: Columns, arguments: list[Expression]) -> Any:
        """Append the nodes to a graph, and return what the function did.

        Args:
            arguments: expressions of this graph.
        """
        bases: list[int] = []
        if self.plain and self.single is not None:
            value, spec = self.single
            first = graph.n
            graph.append(self)
            return graph.handle(graph, first + value, spec)
        if not self.plain:
            seen = [_seen(arguments[at], view) for at, view in self.arguments]  # which may record copies
            constants = [find(graph) for find in self.constants]
            bases = [len(graph.inputs), graph.take_draws(self.drawn)[0] if self.drawn else 0, *constants, *seen]
            graph.inputs.extend(self.inputs)
        first = graph.n
        if self.n:
            graph.append(Placed(self, tuple(bases)) if bases else self)
        return self.form.build(iter(self._returned(graph, [0, first, *bases])))

    def _returned(self, graph: Columns, bases: list[int]) -> list[Expression]:
        handle = graph.handle
        if self._returns_arrays:
            return [_leaf_in(graph, bases, leaf) for leaf in self.leaves]
        return [handle(graph, value + bases[code], spec) for code, value, spec in self.leaves]


def _leaf_in(graph: Columns, bases: list[int], leaf: Leaf) -> Expression:
    """An expression that is returned, or an array of them."""
    code, value, spec = leaf
    if isinstance(value, int):
        return graph.handle(graph, value + bases[code], spec)
    ids = value + np.array(bases, np.int64)[code]
    return array_graph(graph, len(ids)).leaf(ids, spec)


def _seen(x: Expression, view: int) -> int:
    """The id of an argument seen through a view."""
    if not view or x.id <= NODE_MASK:
        return x.id + (view << NODE_BITS)
    steps: Any = VIEWS[view]
    for op, attributes in steps.steps:
        x = look(x, op, attributes)
    return x.id


def _finder(key: Any) -> Callable[[Columns], int]:
    """What finds a constant in a graph, by the key under which one has it."""
    if isinstance(key, tuple) and isinstance(key[0], Parameter):
        return partial(_parameter, key[0].spec, key[2])
    if isinstance(key, tuple) and isinstance(key[0], Op):

        def find(graph: Columns) -> int:
            found = graph.constants.get(key)
            return constant_node(graph, *key).id if found is None else found[0]

        return find
    value = key if isinstance(key, float) else struct.unpack("<d", key[1])[0]
    return lambda graph: number(graph, value).id


def _parameter(spec: ParameterSpec, held: bool, graph: Columns) -> int:
    return parameter_node(graph, parameter_of(spec), held).id


def _number_of(structure: bytes) -> int:
    """A number that no other structure has."""
    digest = blake2b(structure, digest_size=16).digest()
    if len(_known) >= MOST_KNOWN:
        _known.clear()
    return _known.setdefault(digest, next(_numbers))


class _Places:
    """The numbering of a recording, from that of the recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.constants = list(recorder.constants)
        self.types: list[int] = []
        self.operands: list[int] = []
        self.integers: list[int] = []
        self.codes: list[int] = []  # per operand what is added to it
        self.integer_codes: list[int] = []
        self.seen: dict[tuple[int, int], int] = {}  # arguments and views, with their numbers
        self._kept: list[int] = []
        self._is_same = False  # all nodes are kept
        self._place: list[tuple[int, int]] = []  # per node what is added, and to what

    def renumber(self, types: list[int], operands: list[int], integers: list[int]) -> None:
        """Number the nodes that are kept, and find out what is added to each operand and integer of theirs."""
        recorder = self._recorder
        self._is_same = not (recorder.arguments or recorder.constants or recorder.drawn)
        arguments = {id: at for at, id in enumerate(recorder.arguments)}
        constants = {id: at for at, (id, _) in enumerate(recorder.constants.values())}
        for node, (type, read, given) in enumerate(nodes_of(types, operands, integers)):
            if node in arguments:
                self._place.append((-1, arguments[node]))
                continue
            if node in constants:
                self._place.append((OTHERS + constants[node], 0))
                continue
            self._place.append((FIRST, len(self._kept)))
            self._kept.append(node)
            self.types.append(type.id)
            if type.n_operands < 0:
                self.operands.append(len(read))
                self.codes.append(NOTHING)
            if self._is_same:
                self.operands += read
                self.codes += [FIRST] * len(read)
            else:
                for code, value in map(self._of, read):
                    self.codes.append(code)
                    self.operands.append(value)
            for x in given:
                self.integer_codes.append(INPUTS if type.op is INPUT else DRAWS if x >= DRAWN else NOTHING)
                self.integers.append(x - DRAWN if x >= DRAWN else x)

    def lines(self, lines: list[str]) -> list[str]:
        """Those of the nodes that are kept."""
        return lines if self._is_same else [lines[node] for node in self._kept] if lines else []

    def leaf(self, x: Expression, ids: np.ndarray | None) -> Leaf:
        """An expression that is returned, or an array of them with their ids."""
        if ids is None:
            return Leaf(*self._of(x.id), x.spec)
        pairs = np.array([self._of(id) for id in ids.tolist()], np.int64).reshape(-1, 2)
        return Leaf(pairs[:, 0], pairs[:, 1].copy(), x.spec)

    def _of(self, id: int) -> tuple[int, int]:
        """What is added, and to what, for an id of the recorder."""
        if self._is_same:
            return FIRST, id
        code, value = self._place[id & NODE_MASK]
        if code >= 0:
            return code, value + (id & ~NODE_MASK)
        seen = self.seen.setdefault((value, id >> NODE_BITS), len(self.seen))
        return OTHERS + len(self.constants) + seen, 0
