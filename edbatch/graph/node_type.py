"""Node types: exactly what may run in one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edbatch.base.exact import exact
from edbatch.base.locking import lock
from edbatch.errors import EdBatchError
from edbatch.graph.op import Op
from edbatch.graph.shape_rules import checked_result
from edbatch.graph.spec import ParameterSpec, Spec, reclaim, spec_of

if TYPE_CHECKING:
    from edbatch.devices import Device
    from edbatch.graph.model.parameters import Parameter

Attributes = tuple[tuple[str, Any], ...]


class NodeType:
    """The whole truth of what may be batched: op, all attributes, operand specs, parameter identity, result spec.

    Types are interned as tuples of which nothing is left out, never hashed to a number: nodes that differ in anything,
    be it the sign of a zero, cannot meet in a batch (DyNet's signatures leave out attributes and batch what differs).

    Attributes:
        id: its key in `TYPES`.
        attributes: of the op, as (name, value) pairs.
        operands: one spec per operand (of a variadic op: one per list); a `ParameterSpec` is an operand that all nodes
            of the type share and that has no place in the graph.
        lists: how many lists nodes read, all of one length; they come after `op.singles` operands.
        n_operands: of its operands how many are nodes, -1 when that varies; n_integers: how many integers go with each
            node (an index, a label, a seed).
        parameters: that it reads, also inside a cell.
        calls: whether it calls functions of the user's, also inside a cell.
        device: of these; None: it reads none, and runs anywhere.
        body: of a composite that has been opened, what it is made of: it is traced while its parameters are there.
        saved: what `cell.derivative.worth_saving` says of its body, once it is known.
        sizes: its structure and sizes, once they are known; see `runtime.compile.structure`.
    """

    __slots__ = (
        "_name", "attributes", "body", "calls", "device", "id", "lists", "n_integers", "n_operands", "op", "operands",
        "out", "parameters", "saved", "sizes",
    )  # fmt: skip

    def __init__(self, id: int, op: Op, attributes: Attributes, operands: tuple[Spec, ...], out: Spec) -> None:
        self.id = id
        self.op = op
        self.attributes = attributes
        self.operands = operands
        self.out = out
        self.body: Any = None
        self.saved: Any = None
        self.sizes: Any = None
        self.lists = len(operands) - op.singles if op.variadic else 0
        self._name = ""
        read = [spec for spec in operands if isinstance(spec, ParameterSpec)]
        self.n_operands, self.n_integers = -1 if op.variadic else len(operands) - len(read), op.payload
        if attributes:
            read += [spec for _, spec in attributes if isinstance(spec, ParameterSpec)]
        self.calls = op.call is not None
        if op.body is not None:
            self.calls = any(node.type.calls for node in op.body.nodes)
            read += [spec for node in op.body.nodes for spec in node.type.parameters]
        self.parameters = tuple(dict.fromkeys(read)) if read else ()
        devices = [spec.device for spec in self.parameters]
        self.device: Device | None = devices[0] if devices else None
        if len(devices) > 1 and len(set(devices)) > 1:
            where = " and ".join(sorted({device.name for device in devices}))
            raise EdBatchError(f"{self.name}: expected parameters on one device, got some on {where}")

    @property
    def name(self) -> str:
        """See `type_name`; few types are ever asked for theirs."""
        if not self._name:
            self._name = type_name(self.op, self.attributes, self.operands, self.out)
        return self._name

    def __repr__(self) -> str:
        return self.name


def type_name(op: Op, attributes: Attributes, operands: tuple[Spec, ...], out: Spec) -> str:
    """A name that is the same in every process: `matmul(W[5,64], [64])`, `softmax([5], axis=(0,))`, `zeros()->[3]`."""
    shown = {operand: f"{operand!r}{'...' if op.variadic else ''}" for operand in set(operands)}  # of many, few differ
    parts = [shown[operand] for operand in operands]
    parts += [f"{name}={value}" for name, value in attributes]
    return f"{op.name}({', '.join(parts)})" + ("" if operands else f"->{out!r}")


DELETED = "was deleted, and a graph has still to run with it, or to go back through it; keep its model alive"


class Types(dict[int, NodeType]):
    """All types by their ids, but for those whose parameters are gone; no id is ever used again."""

    made = 0  # how many there have been

    def __missing__(self, id: int) -> NodeType:
        raise EdBatchError(f"a parameter {DELETED}")


TYPES = Types()
_interned: dict[Any, NodeType] = {}


def node_type(op: Op, attributes: Attributes, operands: tuple[Spec, ...]) -> NodeType:
    """The one type of this op, these attributes and operand specs.

    Shapes are inferred and checked here, once; an error names the op, its operands and what was expected.
    """
    key = op, exact(attributes), operands
    found = _interned.get(key)
    if found is not None:
        return found
    dtypes = {operand.dtype for operand in operands}
    try:
        if len(dtypes) > 1:
            raise EdBatchError(
                "operands mix float32 and float64; "
                "expected the same dtype in eb.ParameterCollection(dtype=...) and eb.Graph(dtype=...)"
            )
        shape = checked_result(op, [operand.shape for operand in operands], dict(attributes))
        each = any(operand.each for operand in operands) and not op.segments
        out = spec_of(shape, dtypes.pop(), each)
    except EdBatchError as error:
        shown = ", ".join([repr(operand) for operand in operands] + [f"{k}={v}" for k, v in attributes])
        raise EdBatchError(f"{op.name}({shown}): {error}") from None
    return _entered(key, op, attributes, operands, out)


def intern(op: Op, attributes: Attributes, operands: tuple[Spec, ...], out: Spec) -> NodeType:
    """Like `node_type` for a result spec that is given (sources have no operands to infer it from)."""
    key = (op, exact((*attributes, ("out", out)) if not operands else attributes), operands)
    return _entered(key, op, attributes, operands, out)


def _entered(key: Any, op: Op, attributes: Attributes, operands: tuple[Spec, ...], out: Spec) -> NodeType:
    found = _interned.get(key)
    if found is not None:
        return found
    with lock:
        found = _interned.get(key)
        if found is None:
            reclaim()
            found = NodeType(TYPES.made, op, attributes, operands, out)
            TYPES.made += 1
            for spec in found.parameters:
                spec.enters(TYPES, found.id)
                spec.enters(_interned, key)
            TYPES[found.id] = found
            _interned[key] = found
    return found


def parameter_of(spec: ParameterSpec) -> Parameter:
    """A type's parameter; an error if the model was deleted while a graph that uses it had still to run, or go back."""
    parameter = spec.parameter()
    if parameter is None:
        raise EdBatchError(f"parameter {spec!r} {DELETED}")
    return parameter


def parameter_array(spec: ParameterSpec) -> Any:
    """The array of a type's parameter; errors as of `parameter_of`."""
    return parameter_of(spec).array
