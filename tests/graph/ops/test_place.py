"""Operands side by side, however many, along any axis: values, and gradients that come back to each of them."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.kernels.cpu import machine_code

SHAPES = {"vectors": (3,), "matrices": (2, 3), "three axes": (2, 3, 2)}
PLACES = [
    pytest.param(op, shape, axis, kind, id=f"{op}-{name}-{axis}-{kind}")
    for name, shape in SHAPES.items()
    for op, axes in (("stack", len(shape) + 1), ("concatenate", len(shape)))
    for axis in range(axes)
    for kind in ("nodes", "views", "widths")[: 2 + (op == "concatenate" and shape[axis] > 1)]
]
some_places = pytest.mark.parametrize(("op", "shape", "axis", "kind"), PLACES[::6])


def operands(x, shape, axis, count, kind):
    """Rows of a matrix as nodes of a shape; as views whose entries have gaps; or some of them narrower than others."""
    rows = [eb.reshape(x[i] * (i + 1.0), shape[::-1] if kind == "views" else shape) for i in range(count)]
    if kind == "widths":
        return [row[(*[slice(None)] * axis, slice(1 + i % shape[axis]))] for i, row in enumerate(rows)]
    return [row.T for row in rows] if kind == "views" else rows


def check(op, shape, axis, kind, count, parameters=()):
    """Compare two samples with NumPy; per operand, the part of the gradient that flows to it from each."""
    random = np.random.default_rng(count)
    with eb.Graph(dtype="float64"):
        data = [eb.input(random.normal(size=(count, int(np.prod(shape))))) for _ in range(2)]
        lists = [[*operands(x, shape, axis, count, kind), *parameters] for x in data]
        ys = [getattr(eb, op)(xs, axis) for xs in lists]
        weight = random.normal(size=ys[0].shape)
        loss = eb.sum([eb.sum(y * weight) for y in ys])
    loss.backward()
    for xs, y in zip(lists, ys, strict=True):
        np.testing.assert_array_equal(y.value(), getattr(np, op)([x.value() for x in xs], axis))
    ends = np.cumsum([x.shape[axis] for x in lists[0]])[:-1] if op == "concatenate" else len(lists[0])
    parts = np.split(weight, ends, axis)
    parts = [part.reshape(x.shape) for part, x in zip(parts, lists[0], strict=True)]
    for x, xs in zip(data, lists, strict=True):
        for i, part in enumerate(parts[:count]):
            np.testing.assert_allclose(xs[i].gradient(), part)
            assert np.isclose(np.sum(x.gradient()[i]), (i + 1) * part.sum())
    return parts


@pytest.mark.parametrize(("op", "shape", "axis", "kind"), PLACES)
def test_values_and_gradients(op, shape, axis, kind):
    check(op, shape, axis, kind, 3)


@some_places
def test_many_operands(op, shape, axis, kind):
    check(op, shape, axis, kind, 19)


@some_places
def test_parameters(op, shape, axis, kind):
    """Also one that is there twice."""
    model = eb.ParameterCollection(seed=0, dtype="float64")
    a, b = (model.add_parameters(shape) for _ in "ab")
    *_, first, second, third = check(op, shape, axis, kind, 18, (a, b, a))
    np.testing.assert_allclose(a.grad(), 2 * (first + third))
    np.testing.assert_allclose(b.grad(), 2 * second)


@some_places
def test_kernels_are_those_of_another_number_of_operands(op, shape, axis, kind, monkeypatch):
    check(op, shape, axis, kind, 6)
    check(op, shape, axis, kind, 8)
    made = []
    monkeypatch.setattr(machine_code, "address_of_text", lambda text: made.append(text))
    check(op, shape, axis, kind, 24)
    assert not made


@pytest.mark.parametrize("cells", [False, True], ids=["ops", "cell"])
def test_scalars_count_as_one_entry(cells):
    def together(a, v):
        return eb.concatenate([a, v, 3.0, a * 2]) * np.arange(1.0, 6.0)

    together = eb.cell(together) if cells else together
    with eb.Graph(dtype="float64"):
        samples = [(eb.scalar(i), eb.input([i, i + 1.0])) for i in range(3)]
        ys = [together(a, v) for a, v in samples]
        loss = eb.sum(eb.sum(y) for y in ys)
    loss.backward()
    for i, (y, (a, v)) in enumerate(zip(ys, samples, strict=True)):
        np.testing.assert_allclose(y.value(), np.array([i, i, i + 1, 3, 2 * i]) * np.arange(1, 6))
        np.testing.assert_allclose(a.gradient(), 1 + 2 * 5)
        np.testing.assert_allclose(v.gradient(), [2, 3])
