import edbatch as eb
from edbatch.graph.cell.batches import computing
from edbatch.graph.cell.split_batches import split_clashing, split_repeats
from tests.graph.bodies import trace


def test_a_batch_that_repeats_values_is_split():
    body = trace(lambda x, y, a, b: [r * h for r in (a, b) for h in (x, y)], (3,), (3,), (3,), (3,))
    batch = computing(body)  # a x, a y, b x, b y
    found = split_repeats(body, [batch])
    assert found == [[batch[0], batch[3]], [batch[1], batch[2]]]


def test_one_value_for_the_whole_batch_is_no_repetition():
    body = trace(lambda x, y, a: [x * a, y * a], (3,), (3,), (3,))
    assert split_repeats(body, [computing(body)]) == [computing(body)]


def test_products_are_not_taken_apart():
    model = eb.ParameterCollection(seed=0)
    V, W = model.add_parameters((3, 3)), model.add_parameters((3, 3))
    body = trace(lambda x: [V @ x, W @ x, eb.tanh(x), eb.tanh(x[::-1]), eb.exp(x)], (3,), dtype="float32")
    v, w, *rest = computing(body)
    batches = [[v, w], rest[:2], rest[2:]]
    assert split_clashing(body, batches, {0, 1, 2}) == [[v, w], [rest[0]], [rest[1]], rest[2:]]
    assert split_clashing(body, batches, set()) == batches
