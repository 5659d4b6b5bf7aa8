"""What is found between types that were compiled, against what is compiled: field by field, for every op and size."""

from itertools import product
from weakref import ref

import numpy as np
import pytest

import edbatch as eb
from edbatch.errors import EdBatchError
from edbatch.graph.cell.derivative import derivative
from edbatch.graph.cell.entry import CellOp
from edbatch.graph.cell.type_body import body_of_type
from edbatch.graph.node_type import node_type
from edbatch.graph.op import OPS, Kind
from edbatch.graph.spec import ParameterSpec, spec_of
from edbatch.kernels.cpu.backend import NumPyBackend
from edbatch.memory.plan.windows import Windows
from edbatch.runtime import type_table
from edbatch.runtime.backward.output_sets import entries_reached
from edbatch.runtime.bound_type import BoundType
from edbatch.runtime.compile import families, structure
from edbatch.runtime.compile import program as program_module
from edbatch.runtime.compile.derivatives import compiled, placed_derivative, saving
from edbatch.runtime.compile.line import NOTHING, Line, Sample
from edbatch.runtime.compile.program import link_of
from edbatch.runtime.compile.side_by_side import vectors_side_by_side
from edbatch.runtime.compile.structure import SIZES

BACKEND = NumPyBackend()
# In each order some are compiled first: without a common divisor, by twos, falling, and multiples of what is cut into
# blocks. Then come those between and beyond them, equal to others, divided by others, and 1. No size is 0.
ORDERS = {
    "primes": (5, 43, 11, 29, 13, 37, 61, 10, 6, 1, 2, 30, 40, 8),
    "rising": (1, 2, 3, 5, 8, 13, 64, 65, 257, 4, 7, 11, 12, 33, 100, 200),
    "powers": (4, 8, 16, 32, 64, 128, 256, 12, 24, 17, 33, 63, 100, 192, 255),
    "falling": (257, 65, 64, 13, 8, 5, 3, 2, 1, 11, 48, 100, 199),
    "blocks": (64, 128, 192, 256, 320, 65, 66, 100, 130, 200, 300, 319),
}
FEW = (5, 43, 11, 29, 13, 6, 1, 30)


def sizes_of(sample):
    return sorted({x for shape in sample.shapes for x in shape})


USED = [op for op in OPS.values() if op.kind is not Kind.SOURCE and not op.variadic]
CASES = [
    pytest.param(op, sample, size, id=f"{op.name}-{number}-{size}")
    for op in USED
    for number, sample in enumerate(op.samples)
    for size in sizes_of(sample)
]
LAST = [  # the last sample of an op is its largest
    pytest.param(op, op.samples[-1], size, id=f"{op.name}-{size}")
    for op in USED
    if op.samples
    for size in sizes_of(op.samples[-1])[-1:]
]


def changed(value, size, length):
    """A nesting with one size in place of another."""
    if isinstance(value, tuple):
        return tuple(changed(part, size, length) for part in value)
    return length if value == size and type(value) is int else value


def with_length(op, sample, size, length, dtype):
    """The type of a sample with one size in place of another."""
    specs = tuple(spec_of(changed(shape, size, length), dtype) for shape in sample.shapes)
    attributes = tuple(
        (name, changed(value, size, length) if name in SIZES else value) for name, value in sample.attributes.items()
    )
    return node_type(op, attributes, specs)


def is_equal(a, b):
    """Whether two things are of equal parts, arrays by their bits."""
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, ref):
        return a() is b()
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(is_equal, a, b))
    return type(a) is type(b) and a == b


def made(type):
    """All that is made of a type, forward and backward."""
    bound = BoundType(type, Windows(), BACKEND)
    found = {"forward": program(bound.program)}
    if type.op.gradient is None and type.op.composite is None and not isinstance(type.op, CellOp):
        return found
    saved = saving(bound, BACKEND)
    if saved is not None:
        found["saving"] = program(saved.program), saved.places, saved.width
    nodes = sum(not isinstance(operand, ParameterSpec) for operand in type.operands)
    outputs = len(type.op.body.outputs) if isinstance(type.op, CellOp) else 1
    some = {(True,) * nodes, *[tuple(at == one for at in range(nodes)) for one in range(nodes)]}
    for live in {frozenset([0]), frozenset(range(outputs))}:
        found["reached", live] = entries_reached(type, live)
        for needed, saves in product(some, {False, saved is not None}):
            how = compiled(bound, needed, saves, live, BACKEND)
            found[needed, saves, live] = how.flows, program(how.program)
    return found


def program(program):
    """What a program is made of."""
    if program is None:
        return None
    variant = program.variant()
    tables = variant.tables()
    fields = ("slots", "arguments", "steps", "places", "kernels", "calls", "itemsize", "lists")
    addresses = len(tables.addresses) if tables.constants else tables.addresses
    found = [getattr(tables, field) for field in fields]
    return [variant.width, variant.out_width, addresses, tuple(tables.constants), tuple(tables.parameters), *found]


def made_directly(type, monkeypatch):
    """All of it compiled; None: there is no such type."""
    with monkeypatch.context() as patch:
        patch.setattr(families, "enabled", False)
        try:
            return made(type)
        except EdBatchError:
            return None


def compare(types, monkeypatch, known):
    """Compare what is made of types, one after the other, with what is compiled; how often it was not compiled.

    Args:
        known: what was compiled, by type.
    """
    count = []

    def counted(self, *given, found=families.Family.find):
        value = found(self, *given)
        if value is not NOTHING:
            count.append(given)
        return value

    with monkeypatch.context() as patch:
        patch.setattr(structure, "_structures", {})
        patch.setattr(structure, "_forms", {})
        for type in types:
            type.sizes = None
        patch.setattr(families.Family, "find", counted)
        for type in types:
            if type not in known:
                known[type] = made_directly(type, monkeypatch)
            want = known[type]
            if want is None:
                continue
            type.body = None
            here = made(type)
            assert here.keys() == want.keys(), type
            for key in want:
                assert is_equal(here[key], want[key]), (type, key, here[key], want[key])
    for type in types:
        type.sizes = None
    return len(count)


def types_of(op, sample, size, dtype, lengths):
    """Those that there are."""
    types = []
    for length in lengths:
        try:
            types.append(with_length(op, sample, size, length, np.dtype(dtype)))
        except (EdBatchError, IndexError, ValueError):
            continue
    return types


@pytest.mark.parametrize(("op", "sample", "size"), LAST)
def test_ops(op, sample, size, monkeypatch):
    types = types_of(op, sample, size, "float32", FEW)
    found = compare(types, monkeypatch, {})
    if op.elementwise and len(types) == len(FEW):
        assert found >= 2


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("op", "sample", "size"), CASES)
def test_ops_in_every_order(op, sample, size, dtype, monkeypatch):
    known = {}
    for lengths in ORDERS.values():
        types = types_of(op, sample, size, dtype, lengths)
        found = compare(types, monkeypatch, known)
        if op.elementwise and len(types) == len(lengths):
            assert found >= 2


def attended(model):
    W, s = model.add_parameters((3, 4)), model.add_parameters(4)

    @eb.cell
    def cell(x):
        weights = eb.softmax(eb.tanh(x @ W) @ s)
        return weights @ x, eb.max(x)

    return cell


def convolved(model):
    W, b = model.add_parameters((4, 3, 2)), model.add_parameters(4)

    @eb.cell
    def cell(x):
        y = eb.conv1d(eb.relu(x.T), W, b)
        return eb.max(y, axis=1), eb.reshape(y, -1)[:4], eb.transpose(y) * 0.5

    return cell


def joined(model):
    W = model.add_parameters((3, 3))

    @eb.cell
    def cell(x):
        y = eb.concatenate([x, eb.sigmoid(x @ W)], axis=0)
        return eb.layer_norm(y, eb.ones(3), eb.zeros(3)), eb.sum(y[::-1], axis=0), y

    return cell


def types_of_cell(cell, dtype, lengths):
    """Those that there are, given a matrix of so many rows."""
    types = []
    for length in lengths:
        with eb.Graph(dtype=dtype) as graph:
            try:
                types.append(graph.type_of(cell(eb.zeros((length, 3)))[0]))
            except EdBatchError:  # no room for a window
                continue
    return types


@pytest.mark.parametrize("make", [attended, convolved, joined])
def test_cells(make, monkeypatch):
    cell = make(eb.ParameterCollection(seed=0))
    types = types_of_cell(cell, "float32", FEW)
    assert compare(types, monkeypatch, {}) > len(types)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("make", [attended, convolved, joined])
def test_cells_in_every_order(make, dtype, monkeypatch):
    cell, known = make(eb.ParameterCollection(seed=0, dtype=dtype)), {}
    for lengths in ORDERS.values():
        types = types_of_cell(cell, dtype, lengths)
        assert compare(types, monkeypatch, known) > len(types)


def test_values_and_gradients_have_the_same_bits(monkeypatch):
    model = eb.ParameterCollection(seed=0)
    W, s = model.add_parameters((6, 6)), model.add_parameters(6)
    random = np.random.default_rng(0)

    def run(data):
        with eb.Graph():
            x = eb.input(data)
            h = eb.tanh(x @ W)
            loss = eb.max(h) + eb.sum(eb.softmax(h @ s) @ h)
            loss.backward()
            found = [loss.value(), x.gradient(), W.grad(), s.grad()]
        model.zero_grad()
        return found

    for length in (5, 29, 11, 17, *range(1, 40), 64, 70, 91):
        data = random.normal(size=(length, 6)).astype(np.float32)
        here = run(data)
        with monkeypatch.context() as patch:
            patch.setattr(families, "enabled", False)
            patch.setattr(type_table, "_shared", {})
            want = run(data)
        assert all(map(np.array_equal, here, want)), length


def test_what_no_polynomial_says_is_compiled():
    def made(at):
        return Sample(at, form, np.array([float(at % 3), 7.0]))

    form = (tuple, int, int)
    line = Line((1, 0), (0, 5))
    for at in (1, 2, 4, 8):
        line.add(made(at))
    assert line.find(3) is NOTHING
    line = Line((1, 0), (0, 5))
    for at in (1, 2, 4, 8):
        line.add(made(at)._replace(integers=np.array([at * at + 3.0, 7.0])))
    assert line.find(3) == (12, 7)
    assert line.find(9) is NOTHING
    assert line.find(0) is NOTHING
    assert line.position((3, 5)) == 3
    assert line.position((3, 6)) is None


def test_between_integers_nothing_is_found():
    line, form = Line((1,), (0,)), (tuple, int)
    for at in (2, 4, 8, 16):
        line.add(Sample(at, form, np.array([at / 2])))
    assert line.find(6) == (3,)
    assert line.find(7) is NOTHING


def test_parameters_that_have_moved(monkeypatch):
    """Addresses are those of now, also of a length that was not compiled."""
    linked = []
    model = eb.ParameterCollection(seed=0)
    W, V = model.add_parameters((3, 4)), model.add_parameters((3, 4))

    def product(length):
        data = np.arange(3.0 * length).reshape(length, 3)
        with eb.Graph():
            np.testing.assert_array_equal((eb.input(data) @ W).value(), data @ W.value())

    W.set_value(np.arange(12.0).reshape(3, 4))
    for length in (5, 29, 11, 17, 13):
        product(length)

    @eb.cell
    def both(x):
        return x @ W, x @ V

    with eb.Graph():
        eb.forward(both(eb.ones(3)))
    W.set_value(2 * np.ones((3, 4)))
    for length in (13, 19, 23, 29, 7):
        product(length)
    monkeypatch.setattr(program_module, "link_of", lambda *given: linked.append(given) or link_of(*given))
    for length in (5, 37, 41, 31, 35, 14):
        product(length)
    assert len(linked) < 4  # the two ends, and one that is further


@pytest.mark.parametrize(
    ("op", "sample"), [(op, s) for op in OPS.values() if op.places is not None for s in op.samples]
)
def test_what_goes_back_to_operands_side_by_side(op, sample):
    """Found without a view for each, it lies where a derivative that was traced has it."""
    type = with_length(op, sample, 0, 0, np.dtype("float32"))
    needed = [True] * len(type.operands)
    found = placed_derivative(type, needed)
    traced = derivative(*body_of_type(type), needed)
    if type.attributes == (("axis", 0),):
        assert found is not None
    if found is not None:
        assert found.width == traced.width
        assert found.operands == traced.operands
        assert found.given == traced.given
        assert found.terms == traced.terms
        part = placed_derivative(type, [False] + needed[1:]).operands
        assert part == (None, *traced.operands[1:])


@pytest.mark.parametrize("sizes", [(1,), (3, 4, 1, 3), (2,) * 30])
@pytest.mark.parametrize("op", [op for op in OPS.values() if op.places])
def test_vectors_side_by_side(op, sizes):
    """Linked at once, as they are linked step by step."""
    if op.name == "stack":
        sizes = (sizes[0],) * len(sizes)
    type = node_type(op, (("axis", 0),), tuple(spec_of((size,), np.dtype("float32")) for size in sizes))
    found = vectors_side_by_side(type)
    want = link_of(body_of_type(type)[0], (0,), BACKEND, True).linked()
    assert is_equal(found, want)
