"""What users give as numbers, lists and indices means what it says, or is refused by name."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.errors import EdBatchError
from tests.arrays import on_host

MASKED = np.ma.masked_array([1.0, 2.0], [True, False])
NOT_REAL = {
    "complex": 1 + 2j,
    "complex64": np.complex64(1 + 2j),
    "complex without imaginary part": np.complex128(3),
    "complex array": np.array([1 + 2j, 3]),
    "list of complex": [1 + 2j, 3],
}


@pytest.mark.parametrize("name", NOT_REAL)
@pytest.mark.filterwarnings("error")
def test_complex_numbers_are_refused_everywhere(name):
    value = NOT_REAL[name]
    model = eb.ParameterCollection()
    b = model.add_parameters(2, name="b")
    with eb.Graph(policy="none"):
        x = eb.ones(2)
        uses = [lambda: eb.input(value), lambda: b.set_value(value), lambda: model.add_parameters(2, init=value)]
        uses.append(lambda: x.backward(value))
        if not isinstance(value, list):
            uses += [lambda: x * value, lambda: value + x, lambda: b * value, lambda: eb.maximum(x, value)]
        if np.ndim(value) == 0:
            uses += [lambda: eb.scalar(value), lambda: x**value]
        for use in uses:
            with pytest.raises(EdBatchError, match=r"number|complex"):
                use()
    assert b.value().tolist() == [0, 0]


@pytest.mark.filterwarnings("error")
def test_masked_arrays_are_refused_everywhere():
    model = eb.ParameterCollection()
    b = model.add_parameters(2, name="b")
    with eb.Graph(policy="none"):
        x = eb.ones(2)
        for use in (
            lambda: eb.input(MASKED),
            lambda: eb.input([MASKED, MASKED]),
            lambda: x * MASKED,
            lambda: eb.concatenate([x, MASKED]),
            lambda: b.set_value(MASKED),
            lambda: model.add_parameters(2, init=MASKED),
            lambda: x.backward(MASKED),
        ):
            with pytest.raises(EdBatchError, match="mask"):
                use()


def test_numbers_that_no_float_holds_are_refused():
    with eb.Graph(policy="none"), pytest.raises(EdBatchError, match="too large"):
        eb.ones(2) * 10**400


@pytest.mark.parametrize("reduce", [eb.sum, eb.mean, eb.logsumexp])
def test_a_list_has_no_axes(reduce):
    with eb.Graph(policy="none"):
        xs = [eb.ones((2, 3)), eb.ones((2, 3))]
        for given in ({"axis": 5}, {"axis": 0}, {"axis": (0, 1)}, {"keepdims": True}):
            with pytest.raises(EdBatchError, match="of a list"):
                reduce(xs, **given)
        assert reduce(xs).shape == (2, 3)
        assert reduce(eb.stack(xs), axis=0).shape == (2, 3)


@pytest.mark.parametrize("cells", [True, False])
@pytest.mark.parametrize("k", [-3, -2, -1, 0, 1, 2])
def test_an_integer_that_indexes_things_of_different_sizes(k, cells):
    model = eb.ParameterCollection()
    E = model.add_lookup_parameters((10, 2), name="E", init=np.arange(20.0).reshape(10, 2))

    @eb.cell
    def both(x, k: int):
        return eb.pick(x, k) + eb.lookup(E, k)

    values = np.array([100.0, 200.0, 300.0])
    with eb.options(cells=cells), eb.Graph(policy="none"):
        x = eb.input(values)
        first = both(x, 0)
        y = both(x, k)
        loss = eb.sum(y) + 0.0 * eb.sum(first)
    loss.backward()
    assert y.value().tolist() == (values[k] + np.arange(20.0).reshape(10, 2)[k]).tolist()
    want = np.zeros(3)
    want[k] = 2
    assert on_host(x.gradient()).tolist() == want.tolist()
    rows = np.zeros((10, 2))
    rows[k] = 1
    assert on_host(E.grad()).tolist() == rows.tolist()


def test_an_integer_out_of_range_of_one_of_them():
    E = eb.ParameterCollection().add_lookup_parameters((10, 2), name="E")

    @eb.cell
    def both(x, k: int):
        return eb.pick(x, k) + eb.lookup(E, k)

    with eb.Graph(policy="none"):
        for k in (3, -4, 9, -10):
            with pytest.raises(EdBatchError, match="out of range"):
                both(eb.ones(3), k)


def test_rows_of_a_table_by_index():
    E = eb.ParameterCollection().add_lookup_parameters((3, 2), name="E", init=np.arange(6.0).reshape(3, 2))
    with eb.Graph(policy="none"):
        assert [E[k].value().tolist() for k in (0, 2, -1, np.int64(1))] == [[0, 1], [4, 5], [4, 5], [2, 3]]
        for wrong in (3, -4, 1.0, "a", slice(0, 1)):
            with pytest.raises(EdBatchError):
                E[wrong]


EMPTY = {
    "list": lambda x: eb.input([]),
    "array": lambda x: eb.input(np.zeros((2, 0))),
    "operand": lambda x: x + np.zeros(0),
    "operand of a product": lambda x: np.zeros((0, 3)) @ x,
    "part": lambda x: eb.concatenate([x, np.zeros(0)]),
    "zeros": lambda x: eb.zeros(0),
    "ones": lambda x: eb.ones((0, 2)),
    "slice": lambda x: x[1:1],
    "part of a split": lambda x: eb.split(x, [0, 3]),
    "parts": lambda x: eb.split(x, 0),
    "shape": lambda x: eb.reshape(x, (0, 3)),
    "parameter": lambda x: eb.ParameterCollection().add_parameters(0),
    "matrix": lambda x: eb.ParameterCollection().add_parameters((3, 0)),
    "table": lambda x: eb.ParameterCollection().add_lookup_parameters((0, 3)),
    "sum": lambda x: eb.sum([]),
}


@pytest.mark.parametrize("cells", [True, False])
@pytest.mark.parametrize("name", EMPTY)
def test_what_is_empty_is_refused_where_it_is_made(name, cells):
    function = EMPTY[name]
    with eb.Graph(policy="none"), pytest.raises(EdBatchError, match=r"at least|empty|positive|divide|expected sizes"):
        (eb.cell(lambda x: function(x)) if cells else function)(eb.ones(3))


def test_truth_values_of_numpy_are_numbers():
    with eb.Graph():
        x = eb.input([2.0, 3.0])
        found = [x * np.True_, np.True_ * x, x - np.False_, eb.where(np.float64(1) > 0, x, eb.zeros(2))]
        assert [y.value().tolist() for y in found] == [[2, 3]] * 4


@pytest.mark.parametrize(
    "record",
    [
        lambda x: eb.layer_norm(x, x, x, epsilon=-1),
        lambda x: eb.layer_norm(x, x, x, epsilon=float("nan")),
        lambda x: eb.attention(x, [x], [x], scale=float("nan")),
        lambda x: eb.attention(x, [x], [x], scale=float("inf")),
    ],
)
def test_numbers_that_make_nan_of_everything_are_refused(record):
    with eb.Graph(), pytest.raises(eb.EdBatchError, match="expected a"):
        record(eb.ones(2))
