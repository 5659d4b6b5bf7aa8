"""Bodies as the planner sees them."""

import edbatch as eb
from edbatch.graph.cell.passes import prepare_for_batching
from edbatch.graph.cell.stacking import stacked
from edbatch.memory.layout import Reach, plan_layout
from edbatch.runtime.compile.cell import find_batches
from edbatch.runtime.compile.layout import describe, in_order_of_batches
from tests.graph.bodies import trace

D = 4


def model_of(function, *shapes, names="xyzw"):
    body = prepare_for_batching(trace(function, *shapes), plain=False)
    return describe(body, find_batches(body, plain=False).batches, list(names[: len(shapes)]))


def reach(model, layout, name, slot):
    (number,) = [number for number, op in enumerate(model.ops) if op.name == name]
    return next(v.reach for v in layout.verdicts if (v.op, v.slot) == (number, slot))


def parameters(n, shape=(D, D)):
    model = eb.ParameterCollection(seed=0, dtype="float64")
    return [model.add_parameters(shape, name=f"p{i}", init=0.5) for i in range(n)]


def test_variables_and_batches_of_gates():
    a, b = parameters(2)
    model = model_of(lambda x, y: eb.tanh(a @ x) + eb.tanh(b @ x) * y, (D,), (D,))
    roles = dict(zip([v.name for v in model.variables], model.roles, strict=True))
    assert roles == {
        "x": "argument", "y": "argument", "matmul1": "intermediate", "matmul2": "intermediate",
        "tanh1": "intermediate", "tanh2": "intermediate", "multiply": "intermediate", "add": "output",
        "p0": "parameter", "p1": "parameter",
    }  # fmt: skip
    assert [op.name for op in model.ops] == ["matmul x2", "tanh x2", "multiply", "add"]
    layout = plan_layout(model.variables, model.ops)
    assert layout.moved == 0
    assert reach(model, layout, "matmul x2", 1) is Reach.BROADCAST


def test_slices_lie_in_the_order_of_their_value():
    (W,) = parameters(1, (3 * D, D))

    def function(x):
        u, v, w = eb.split(W @ x, 3)
        return eb.tanh(u) * eb.tanh(w) * v

    model = model_of(function, (D,))
    layout = plan_layout(model.variables, model.ops)
    # u and w are apart, and no layout brings them together: the value lies in one piece.
    assert reach(model, layout, "tanh x2", 0) is Reach.GATHER
    places = {v.name: layout.offsets[at] for at, v in enumerate(model.variables) if v.name.startswith("matmul[")}
    assert places == {"matmul[0:4]": 0, "matmul[4:8]": 4, "matmul[8:12]": 8}


def test_overlapping_and_strided_views_are_never_side_by_side():
    model = model_of(lambda x: [eb.exp(part) for part in (x[:3], x[1:], x[::-1][:3])], (D,))
    layout = plan_layout(model.variables, model.ops)
    assert reach(model, layout, "exp x3", 0) is Reach.GATHER


def test_concatenations_want_their_operands_in_order():
    model = model_of(lambda x, y: eb.exp(eb.concatenate([y, x])), (D,), (D,))
    layout = plan_layout(model.variables, model.ops)
    assert layout.moved == 0
    x, y = (next(at for at, v in enumerate(model.variables) if v.name == name) for name in "xy")
    assert layout.offsets[x] == layout.offsets[y] + D


def test_one_of_two_contradicting_concatenations_is_copied():
    model = model_of(lambda x, y: [eb.exp(eb.concatenate([y, x])), eb.tanh(eb.concatenate([x, y]))], (D,), (D,))
    assert plan_layout(model.variables, model.ops).moved == 2 * D


def test_what_alternates_in_memory_or_repeats_is_copied_anyway():
    for function in (lambda x, y: eb.concatenate([x, y], axis=1), lambda x, y: eb.concatenate([x, y, x])):
        model = model_of(lambda x, y, function=function: eb.exp(function(x, y)), (2, D), (2, D))
        assert [model.variables[at].name for at in model.copied] == ["concatenate"]


def test_parameters_that_are_stacked_keep_their_order():
    a, b, c = parameters(3)
    stacked([c.spec, b.spec, a.spec])
    model = model_of(lambda x: eb.tanh(a @ x) * eb.tanh(b @ x), (D,))
    layout = plan_layout(model.variables, model.ops)
    assert layout.moved == 0
    assert [layout.variables[at].name for at in layout.order if model.variables[at].space == "p2|p1|p0"] == [
        "p2", "p1", "p0",
    ]  # fmt: skip


def test_batch_by_batch_every_result_is_side_by_side():
    a, b, c = parameters(3)

    def function(x, y):
        p, q, r = eb.tanh(c @ x), eb.tanh(a @ x), eb.exp(b @ x)
        return (q + r) * (p + y)

    model = model_of(function, (D,), (D,))
    layout = in_order_of_batches(model)
    results = [v for v in layout.verdicts if v.slot == -1]
    assert all(v.reach is Reach.VIEW for v in results)
    assert sum(v.moved for v in layout.verdicts) >= plan_layout(model.variables, model.ops).moved
