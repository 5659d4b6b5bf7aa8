import edbatch as eb
from edbatch.graph.cell.batches import batch_kind, computing, operand_nodes
from edbatch.graph.cell.passes.open_affines import open_affines
from edbatch.graph.cell.stacking import stacked
from tests.graph.bodies import trace


def setup(n=4, d=3):
    model = eb.ParameterCollection(seed=0)
    return [model.add_parameters((d, d), name=f"W{i}") for i in range(n)], [
        model.add_parameters((d,), name=f"b{i}", init=i) for i in range(n)
    ]


def kinds(body):
    return [batch_kind(body, number) for number in computing(body)]


def test_products_with_one_vector_are_one_kind():
    W, _ = setup()
    body = trace(lambda x, y: (W[0] @ x, W[1] @ x, W[2] @ y), (3,), (3,), dtype="float32")
    a, b, c = kinds(body)
    assert a == b != c


def test_biases_follow_their_products():
    W, b = setup()
    body = open_affines(
        trace(lambda x, y: (eb.affine(W[0], x, b[0]), W[1] @ x + b[1], W[2] @ y + b[1]), (3,), (3,), dtype="float32")
    )
    adds = [batch_kind(body, n) for n in computing(body) if body.nodes[n].type.op.name == "add"]
    assert adds[0] == adds[1] != adds[2]


def test_a_parameter_on_either_side_is_another_kind():
    _, b = setup()
    a, c = kinds(trace(lambda x: (b[0] + x, x + b[1]), (3,), dtype="float32"))
    assert a != c


def test_parts_of_different_stacks_are_of_different_kinds():
    W, _ = setup()
    stacked([W[0].spec, W[1].spec])
    a, b, c = kinds(trace(lambda x: (W[0] @ x, W[1] @ x, W[2] @ x), (3,), dtype="float32"))
    assert a == b != c


def test_attributes_and_shapes_tell_kinds_apart():
    body = trace(lambda x, y: (eb.elu(x, 0.5), eb.elu(y, 0.5), eb.elu(x, 2.0), eb.elu(x[:2], 0.5)), (3,), (3,))
    a, b, c, d = kinds(body)
    assert a == b
    assert len({a, c, d}) == 3


def test_variadic_ops_of_other_lengths_are_other_kinds():
    a, b, c = kinds(trace(lambda x, y: (eb.sum([x, y]), eb.sum([x, x, y]), eb.sum([y, y])), (3,), (3,)))
    assert a == c != b


def test_concatenations_are_seen_through():
    body = trace(lambda x, y: eb.exp(eb.concatenate([eb.tanh(x), eb.concatenate([y, eb.tanh(y)])])), (3,), (3,))
    assert [body.nodes[n].type.op.name for n in computing(body)] == ["tanh", "tanh", "exp"]
    first, second, last = computing(body)
    assert sorted(operand_nodes(body)[last]) == [first, second]
