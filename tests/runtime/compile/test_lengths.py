"""Programs of sizes that were found between others have the bits of those that were compiled, for every op."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.errors import EdBatchError
from edbatch.graph.op import OPS, Kind
from edbatch.runtime import type_table
from edbatch.runtime.compile import lengths as module
from edbatch.runtime.compile import program as program_module
from edbatch.runtime.compile.lengths import NOTHING, SIZES, Family
from edbatch.runtime.compile.program import tables_of
from tests.graph.nodes import added

pytestmark = pytest.mark.filterwarnings("ignore:backward. no parameter got a gradient")
LENGTHS = (5, 29, 11, 43, 6, 1)  # beyond the first of them, between, divided by others, 1
CASES = [  # the last sample of an op is its largest
    pytest.param(
        op,
        op.samples[-1],
        size,
        id=f"{op.name}-{size}",
        marks=[pytest.mark.slow] * (op.elementwise and op.name not in ("tanh", "where")),  # these are all alike
    )
    for op in OPS.values()
    if op.kind is not Kind.SOURCE and not op.variadic and op.samples
    for size in sorted({x for shape in op.samples[-1].shapes for x in shape})[-1:]
]


def changed(value, size, length):
    """A nesting with one size in place of another."""
    if isinstance(value, tuple):
        return tuple(changed(part, size, length) for part in value)
    return length if value == size and type(value) is int else value


def check(run, lengths, monkeypatch):
    """Compare what is computed of sizes, one after the other, with what compiled programs do; how many were found."""
    found, finds = Family.find, []

    def counted(self, *given):
        value = found(self, *given)
        if value is not NOTHING:
            finds.append(given)
        return value

    results = []
    for enabled in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr(type_table, "_shared", {})
            patch.setattr(Family, "find", counted)
            patch.setattr(module, "enabled", enabled)
            results.append([run(length) for length in lengths])
    for length, here, want in zip(lengths, *results, strict=True):
        assert all(map(np.array_equal, here, want)), length
    return len(finds)


@pytest.mark.parametrize(("op", "sample", "size"), CASES)
def test_ops(op, sample, size, monkeypatch):
    def run(length):
        random = np.random.default_rng(length)
        attributes = tuple(
            (name, changed(value, size, length) if name in SIZES else value)
            for name, value in sample.attributes.items()
        )
        with eb.Graph(policy="none"), np.errstate(all="ignore"):
            shapes = [changed(shape, size, length) for shape in sample.shapes]
            xs = [eb.input(random.uniform(sample.low, sample.high, shape)) for shape in shapes]
            try:
                y = added(op, attributes, xs, [0 for _ in sample.payload])
            except (EdBatchError, IndexError, ValueError):
                return []  # there is no such type
            eb.sum(y).backward()
            return [np.nan_to_num(y.value()), *(np.nan_to_num(x.gradient()) for x in xs)]

    check(run, LENGTHS, monkeypatch)


def attended(x, W, s):
    weights = eb.softmax(eb.tanh(x @ W) @ s)
    return weights @ x, eb.max(x)


def joined(x, W, s):
    y = eb.concatenate([x, eb.sigmoid(x @ W[:, :3])], axis=0)
    return eb.layer_norm(y, eb.ones(3), eb.zeros(3)), eb.sum(y[::-1], axis=0), y


def convolved(x, W, s):
    y = eb.conv1d(eb.relu(x.T), eb.reshape(W, (2, 3, 2)), s[:2])
    return eb.max(y, axis=1), eb.transpose(y) * 0.5


@pytest.mark.parametrize("function", [attended, joined, convolved])
def test_cells(function, monkeypatch):
    model = eb.ParameterCollection(seed=0)
    W, s = model.add_parameters((3, 4)), model.add_parameters(4, init=0.3)
    cell = eb.cell(lambda x: function(x, W, s))

    def run(length):
        with eb.Graph():
            x = eb.input(np.random.default_rng(length).normal(size=(length + 1, 3)))
            ys = cell(x)
            eb.sum([eb.sum(eb.sin(y)) for y in ys]).backward()
            found = [*(y.value() for y in ys), x.gradient(), W.grad(), s.grad()]
        model.zero_grad()
        return found

    assert check(run, [64, *LENGTHS, *range(2, 16)], monkeypatch) > 5


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
    with eb.Graph():
        eb.forward(eb.cell(lambda x: (x @ W, x @ V))(eb.ones(3)))
    W.set_value(2 * np.ones((3, 4)))
    for length in (13, 19, 23, 29, 7):
        product(length)
    monkeypatch.setattr(program_module, "tables_of", lambda *given: linked.append(given) or tables_of(*given))
    for length in (5, 37, 41, 31, 35, 14):
        product(length)
    assert len(linked) < 4  # the two ends, and one that is further


def test_very_many_sizes():
    """To look which divide which, and products of them, would take all memory."""
    cell = eb.cell(lambda x: sum(x[0, 0, 0, i : i + 2] * i for i in range(200)))
    for n in (301, 307):
        with eb.Graph():
            assert cell(eb.ones((1, 2, 3, n))).value().tolist() == [19900, 19900]
