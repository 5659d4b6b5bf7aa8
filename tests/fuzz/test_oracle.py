"""The oracle is right: its derivatives are those of its values, and it refuses what EdBatch refuses."""

from contextlib import nullcontext
from random import Random

import numpy as np
import pytest

from tests.fuzz import oracle
from tests.fuzz.calls import CALLS
from tests.fuzz.program import NAME
from tests.fuzz.scope import Scope
from tests.gradients import numeric

SHAPES = [(), (), (4,), (4,), (4,), (8,), (2, 4), (4, 4), (1,), (3, 4)]
LEAVES = [f"v{at}" for at in range(len(SHAPES))]
NO_OPERANDS = {"scalar", "zeros", "ones", "input"}
CHANGED = {"stop_gradient", "scale_gradient"}  # that is what they are for


def called(name, seed):
    """A call of an op with operands that can be learned, at a place without kinks and ties: text, and all names."""
    random, numbers = Random(seed), np.random.default_rng(seed)
    names = {"eb": oracle, "np": np}
    with oracle.Graph():
        for leaf, shape in zip(LEAVES, SHAPES, strict=True):
            names[leaf] = oracle.Parameter(numbers.uniform(-1.5, 1.5, shape))
        for at, shape in enumerate([(4, 4), (4,), (3, 4)]):
            names[f"p{at}"] = oracle.Parameter(numbers.uniform(-1.5, 1.5, shape))
        names["e0"] = oracle.ParameterCollection().add_lookup_parameters((5, 4), init=numbers.uniform(-1, 1, (5, 4)))
        scope = Scope(random, names, 4, "", "w", ["p0", "p1", "p2"], ["e0"])
        scope.values = list(LEAVES)
        while not scope.add(name):
            pass
    return scope.statements[0].source(), names


def evaluated(text, names):
    """The result, on a tape of its own."""
    with oracle.Graph():
        exec(text, names)
    return names[text.split(" = ")[0]]


@pytest.mark.parametrize("name", sorted(CALLS.keys() - NO_OPERANDS - CHANGED))
@pytest.mark.parametrize("seed", range(4))
def test_derivatives_against_finite_differences(name, seed):
    text, names = called(name, seed)
    y = evaluated(text, names)
    weights = np.cos(np.arange(y.data.size) + seed).reshape(y.shape)
    y.backward(weights)
    for leaf in dict.fromkeys(NAME.findall(text.split(" = ")[1])):
        x = names[leaf]

        def loss(data, x=x):
            kept, x.data = x.data, data
            try:
                return np.sum(evaluated(text, names).data * weights)
            finally:
                x.data = kept

        np.testing.assert_allclose(x.grad(), numeric(loss, x.data), rtol=2e-5, atol=2e-7, err_msg=text)


def test_what_changes_gradients():
    x = oracle.Parameter([1.0, -2.0])
    with oracle.Graph():
        y = oracle.sum(x * oracle.stop_gradient(oracle.parameter(x)) + oracle.scale_gradient(x, -0.5))
    y.backward()
    assert y.value() == 4
    assert x.grad().tolist() == [0.5, -2.5]


def test_views_have_the_gradient_of_what_they_show():
    with oracle.Graph():
        x = oracle.input([[1.0, 2.0], [3.0, 4.0]])
        row, copy = x.T[1], oracle.reshape(x.T, (4,))
        y = oracle.sum(row * row) + oracle.sum(x)
    y.backward()
    assert row.gradient().tolist() == [5, 9]
    assert copy.gradient().tolist() == [1, 1, 5, 9]
    assert x.gradient().tolist() == [[1, 5], [1, 9]]


def test_equal_numbers_given_to_cells_are_one_constant():
    """As zeros of one shape are; equal arrays are several inputs."""
    shown = oracle.cell(lambda x: oracle.reshape(x, (1,)))
    for given, wanted in [((2.0, 2.0), 3), ((2.0, 1.0), 0), ((np.array(2.0), np.array(2.0)), 0)]:
        with oracle.Graph():
            one, other = map(shown, given)
            y = oracle.sum(one * 3.0)
        y.backward()
        assert other.gradient().tolist() == [wanted]


@pytest.mark.parametrize("index", [-2, 1, [0, -2]])
def test_integers_beyond_the_entries_are_refused(index):
    """As where a cell is called with a shorter vector than it was made with."""
    with oracle.Graph():
        x = oracle.ones((1,))
        with pytest.raises(IndexError):
            oracle.scatter_add(x, index, x, 0)
        with pytest.raises(IndexError):
            oracle.one_hot(index, 1)


def test_a_nan_is_an_error_where_a_graph_checks_for_it():
    """Whether or not anything reads it."""
    for check_nan in (False, True):
        with oracle.Graph(check_nan=check_nan), np.errstate(invalid="ignore"):
            x = oracle.input([-1.0, 1.0])
            with pytest.raises(ValueError, match="NaN") if check_nan else nullcontext():
                oracle.sqrt(x)


def test_a_nan_in_a_gradient_is_an_error_there_too_and_changes_nothing():
    p = oracle.Parameter([0.0, 1.0])
    with oracle.Graph(check_nan=True), np.errstate(all="ignore"):
        y, z = oracle.sum(p * 2.0), oracle.sum(oracle.sqrt(p * 0.0))
        y.backward()
        with pytest.raises(ValueError, match="NaN"):
            (y + z).backward()
    assert p.grad().tolist() == [2.0, 2.0]
    assert y.gradient() == 1.0


def test_programs_that_raise_leave_nothing_to_compute():
    """Their parameters may change then."""
    p = oracle.Parameter([1.0])

    async def program():
        await oracle.sum(p)
        oracle.reshape(p * 2.0, (3,))

    with pytest.raises(ValueError, match="reshape"):
        oracle.run([program()])
    p.set_value([2.0])
    assert p.value().tolist() == [2.0]


def test_rounding_shows_what_depends_on_it():
    """A difference of equal numbers is all rounding; what copies rounds nothing."""
    x = oracle.Parameter([3.0, 5.0])
    with oracle.Graph(), oracle.rounding(1e-3, seed=1):
        difference = oracle.tanh(x) - oracle.tanh(x)
        copy = oracle.maximum(x, oracle.concatenate([x[1:], x[:1]]))
    assert 1e-5 < np.abs(difference.data).max() < 1e-2
    assert copy.data.tolist() == [5, 5]


def test_rounding_may_make_numbers_equal():
    """1 - 1e-9 is 1 in float32: whether two such numbers are equal depends on rounding; of 1 and 1.1 it does not."""
    close, apart = oracle.Parameter([1.0 - 1e-9, 1.0]), oracle.Parameter([1.0, 1.1])
    found = set()
    for seed in range(40):
        with oracle.Graph(), oracle.rounding(1.2e-7, seed):
            equal = [oracle.equal(oracle.erf(p[0] * 9), oracle.erf(p[1] * 4)) for p in (close, close)]
            equal.append(oracle.equal(apart[0] * 3, apart[1] * 3))
        found.add(tuple(float(one.data) for one in equal))
    assert {one[:2] for one in found} >= {(0.0, 1.0), (1.0, 0.0)}
    assert {one[2] for one in found} == {0.0}
