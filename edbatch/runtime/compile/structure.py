"""Types that differ only in sizes: their structure, and the sizes that it leaves open.

A structure says which sizes are equal, which are 0 or 1, and which divide which. So passes, which ask for just that,
find the same in all types of one structure.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cache
from itertools import combinations, count
from math import comb, prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from edbatch.base.exact import exact
from edbatch.base.forms import Form, Same, form_of, made_of, taken_apart_as
from edbatch.errors import EdBatchError
from edbatch.graph.cell.body import Node, Value
from edbatch.graph.cell.entry import CellOp
from edbatch.graph.node_type import Attributes, NodeType
from edbatch.graph.op import Kind, Op
from edbatch.graph.shape_rules import checked_result, is_ours
from edbatch.graph.spec import ParameterSpec, Spec, spec_of
from edbatch.graph.views import VIEWS, View, view_of

MOST = 2048  # structures; then all are forgotten
MOST_FACTORS = 512  # sizes, and products of them, of a structure; a type with more has its own
MOST_ENTRIES = 1 << 24  # of a value of a type that nobody has recorded: some passes look at each

# Attributes that say sizes. What else is an integer, as an axis, belongs to the structure.
SIZES = frozenset({"shape_to", "index", "size"})


class Structure:
    """What types have in common that differ in sizes alone.

    Args:
        form, pattern: of the types: for each integer which of the sizes it is, or (it,) if it is below 2.

    Attributes:
        families, of_backends: what is made of the types, see `runtime.compile.families`; what is another for each.
        is_open: whether what the types are made of is known of one of them, and the others can be opened, too.
        is_ours: whether all ops in it are written here. What others write may ask of a size whatever they like.
    """

    def __init__(self, op: Op, form: Form, pattern: Sequence[int | tuple[int]], is_ours: bool) -> None:
        self._op, self._form, self._pattern, self.is_ours = op, form, pattern, is_ours
        self.families: dict[Any, Any] = {}
        self.is_open = False
        self.of_backends: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()

    def type(self, sizes: Sequence[int]) -> NodeType | None:
        """A type of this structure and these sizes, that nobody recorded; None: there is none, or it is a cell's."""
        if isinstance(self._op, CellOp) or self._op.kind is not Kind.COMPUTE:
            return None
        integers = np.array([sizes[x] if isinstance(x, int) else x[0] for x in self._pattern], np.int64)
        try:
            op, attributes, operands, out = made_of(self._form, integers)
            shape = checked_result(op, [x.shape for x in operands], dict(attributes))
            made = NodeType(-1, op, attributes, operands, out)
        except Exception:  # a shape rule, of whoever declared the op, may raise anything
            return None
        if shape != out.shape or max(x.size for x in (*operands, out)) > MOST_ENTRIES:
            return None
        return made if structure_of(made)[0] is self else None


def structure_of(type: NodeType) -> tuple[Structure, tuple[int, ...]]:
    """The structure of a type, and its sizes."""
    if type.sizes is None:
        number, integers, fixed = _taken_apart(type)
        numbers: dict[int, int] = {}
        pattern = tuple([numbers.setdefault(x, len(numbers)) if x > 1 else (x,) for x in integers])
        sizes = tuple(numbers)
        rank = max([len(spec.shape) for spec in (*type.operands, type.out)])
        key = number, pattern, _divides(sizes, fixed, rank)
        found = _structures.get(key)
        if found is None:
            if len(_structures) >= MOST:
                _structures.clear()
            found = Structure(type.op, form_of(_parts_of(type), []), pattern, all(map(_is_ours, _ops_of(type))))
            for spec in type.parameters:
                spec.enters(_structures, key)
            _structures[key] = found
        type.sizes = found, sizes
    return type.sizes


def _taken_apart(type: NodeType) -> tuple[int, list[int], tuple[int, ...]]:
    """The number of a type's form, its integers, and those that belong to the form.

    The form of a type without sizes in its attributes, as of most, is found by what can be compared in no time.
    """
    integers: list[int] = []
    attributes = type.attributes
    if isinstance(type.op, CellOp) or not SIZES.isdisjoint([name for name, _ in attributes]):
        key: Any = form_of(_parts_of(type), integers)
    else:
        kinds: list[Any] = [type.op, exact(attributes) if attributes else None]
        for spec in (*type.operands, type.out):
            if spec.__class__ is ParameterSpec:
                kinds.append(spec)
            else:
                shape = spec.shape
                kinds += spec.dtype, len(shape)
                integers += shape
        key = tuple(kinds)
    found = _forms.get(key)
    if found is None:
        if len(_forms) >= MOST:
            _forms.clear()
        also: list[int] = []
        form_of(tuple([value for name, value in type.attributes if name not in SIZES]), also)
        fixed = {x for x in (*also, *(x for spec in type.parameters for x in spec.shape)) if x > 1}
        for spec in type.parameters:
            spec.enters(_forms, key)
        found = _forms[key] = next(_numbers), tuple(sorted(fixed))
    return found[0], integers, found[1]


_forms: dict[Any, tuple[int, tuple[int, ...]]] = {}
_numbers = count()
_structures: dict[tuple[Any, ...], Structure] = {}


def _divides(sizes: Sequence[int], fixed: Sequence[int], rank: int) -> Hashable:
    """Which sizes, and products of them, divide which, and which of them are fixed; of very many the sizes themselves.

    Args:
        fixed: the sizes of parameters, and numbers in attributes, in order.
        rank: the axes of a value: places along these are products of fewer sizes.
    """
    known = [*sizes, *[x for x in fixed if x not in sizes]]
    equal = tuple([known.index(x) for x in fixed])
    if rank <= 2 and len(known) < 12:
        return equal, tuple([x % y == 0 for x in known for y in known])
    at_once = range(1, max(2, min(rank, 4)))
    if sum(comb(len(known), n) for n in at_once) > MOST_FACTORS:
        return tuple(known)
    factors = np.array([prod(some) for n in at_once for some in combinations(known, n)], np.float64)
    return equal, np.packbits(np.remainder(factors[:, None], factors[None]) == 0).tobytes()


def _ops_of(type: NodeType) -> set[Op]:
    """The op of a type, or those in a cell's body."""
    if not isinstance(type.op, CellOp):
        return {type.op}
    nodes = type.op.body.nodes
    values = [*type.op.body.outputs, *[value for node in nodes for value in node.operands]]
    return {op for node in nodes for op in _ops_of(node.type)} | {op for value in values for op, _ in value.steps}


@cache
def _is_ours(op: Op) -> bool:
    written = (op.shape, op.forward, op.places, op.composite, op.unrolled, op.gradient)
    return op.call is None and all(is_ours(one) for one in written if one is not None)


def _parts_of(type: NodeType) -> tuple[Any, ...]:
    op: Any = type.op
    if isinstance(op, CellOp):
        op = op.body.arguments, op.body.nodes, op.body.outputs, Same(op.body.payloads), op.columns
    return op, _sizes_in(type.attributes), type.operands, type.out


def _sizes_in(attributes: Attributes) -> Attributes:
    return tuple([(name, value if name in SIZES else Same(value)) for name, value in attributes])


def _seen(parts: Any) -> View:
    """A view of a root, which is seen through others, one of the other."""
    root, steps = parts
    spec, code = root, 0
    for op, attributes in steps:
        view = view_of(spec, code, op, attributes)
        if view is None:
            raise EdBatchError(f"{op.name} of {root!r} is no view")
        spec, code = view.out, view.code
    found = VIEWS[code]
    assert found is not None
    return found


def _steps_of(view: View) -> tuple[Any, ...]:
    return view.root, tuple([(op, _sizes_in(attributes)) for op, attributes in view.steps])


def _constant(node: Node) -> Any:
    """What fills a constant."""
    if isinstance(node.value, np.ndarray):
        return node.value.shape, node.value.dtype, node.value.tobytes()
    return node.value


def _only_apart(_: Any) -> Any:
    raise EdBatchError("what a type is made of is put together by nobody")


taken_apart_as(Spec, lambda spec: (spec.shape, spec.dtype, spec.each), lambda parts: spec_of(*parts))
taken_apart_as(View, _steps_of, _seen)
taken_apart_as(Value, lambda value: (Same(value.node), value.view), lambda parts: Value(*parts))
taken_apart_as(
    Node,
    lambda node: (_parts_of(node.type), node.operands, Same(node.payload), Same(_constant(node)), node.cuts),
    _only_apart,
)
