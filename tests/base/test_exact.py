"""What `==` takes for equal and is not never shares a kernel, a constant, a view, a trace or a type."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

import edbatch as eb
from edbatch.base.exact import exact, literal
from edbatch.errors import EdBatchError
from edbatch.graph.node_type import TYPES
from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.ir import NEXT, Compute, Kernel, Load, Place, Store


@dataclass(frozen=True)
class Settings:
    rate: float


ALIKE = [
    [0, 0.0, -0.0, False, np.float32(0), np.float64(0), np.float64(-0.0), np.int64(0)],
    [1, 1.0, True, np.float32(1), np.int32(1), np.bool_(True), 1 + 0j],
    [(1, 2), (1.0, 2), (True, 2), (1, (2,))],
    [Settings(0.0), Settings(-0.0), Settings(0)],
    [frozenset([1]), frozenset([True])],
    [complex(0.0, -0.0), complex(0.0, 0.0)],
    [2, 2.0, slice],
]


@pytest.mark.parametrize("values", ALIKE, ids=repr)
def test_equal_values_of_other_types_or_bits_are_other_keys(values):
    assert len({exact(value) for value in values}) == len(values)
    assert len({exact((value,)) for value in values}) == len(values)
    literals = [value for value in values if literal(value) is not None]
    assert len({literal(value) for value in literals}) == len({literal([value]) for value in literals}) == len(literals)


@pytest.mark.parametrize("value", [3, 0.0, -0.0, 0.1, math.nan, True, None, "a", (1, (2.0, None)), Settings(0.5)])
def test_a_key_is_equal_to_itself_made_again(value):
    assert exact(value) == exact(value)
    assert hash(exact(value)) == hash(exact(value))


def test_literals_are_numbers_text_and_lists():
    assert literal(([1, 2], 0.5)) == literal(([1, 2], 0.5))
    assert len({literal(value) for value in ([1], (1,), [True], [1.0], [(1,)], [0.0], [-0.0])}) == 7
    assert literal(np.ones(2)) is literal([object()]) is literal(Settings(0.5)) is literal([[[[[1.0]]]]]) is None


def test_lists_are_no_keys():
    with pytest.raises(TypeError):
        exact((1, [2]))


def test_an_instruction_is_not_the_number_of_its_position():
    def kernel(number):
        make = Builder()
        x, y = make.add(Load(0, (NEXT,))), make.add(Load(1, (NEXT,)))
        y = y if number is None else make.number(number)
        value = make.add(Compute("multiply", (x, y)))
        return Kernel(1, 0, (Place(),) * 3, make.instructions, (Store(value, 2, (NEXT,)),))

    assert len({kernel(number) for number in (None, 1.0, 0.0, -0.0, float("nan"), float("nan"))}) == 5


@pytest.mark.parametrize("compile", ["full", "plain"])
def test_cells_whose_kernels_differ_in_a_constant_or_an_operand(compile):
    """Whichever is first in the process: all of them, one after the other, against the same ops on numbers."""
    bodies = {
        "value 0": lambda a, b: (a + b) * a,
        "value 1": lambda a, b: (a + b) * b,
        "value 2": lambda a, b: (a + b) * (a + b),
        "number 0": lambda a, b: (a + b) * 0.0,
        "number -0": lambda a, b: (a + b) * -0.0,
        "number 1": lambda a, b: (a + b) * 1.0,
        "number 2": lambda a, b: (a + b) * 2.0,
        "integer 2": lambda a, b: (a + b) * 2,
        "true": lambda a, b: (a + b) * True,
    }
    a, b = np.array([1.0, -2.0], np.float32), np.array([0.25, 5.0], np.float32)
    for name, body in bodies.items():
        cell = eb.cell(body)
        with eb.options(compile=compile), eb.Graph(policy="none"):
            y = eb.forward([cell(eb.input(a), eb.input(b)), cell(eb.input(b), eb.input(a))])
        for given, found in zip(((a, b), (b, a)), y, strict=True):
            np.testing.assert_array_equal(found.view(np.int32), body(*given).view(np.int32), err_msg=name)


def test_attributes_of_both_signs():
    with eb.Graph(policy="none") as graph:
        x = eb.input([-1.0])
        y = [eb.leaky_relu(x, slope) for slope in (0.0, -0.0, 0.0)]
        z = [eb.clip(x, low, 1.0) for low in (-0.0, 0.0)]
        types = {TYPES[graph.types[v.id]] for v in y}
        values = np.concatenate(eb.forward(y))
        clipped = np.concatenate(eb.forward(z))
    assert len(types) == 2
    assert np.signbit(values).tolist() == [True, False, True]  # -1 times the slope
    assert clipped.tolist() == [0, 0]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_keyword_arguments_of_cells(order):
    @eb.cell
    def f(x, *, k):
        return x * (4.0 if k is True else 3.0 if type(k) is float else 2.0)

    @eb.cell
    def over(x, *, settings):
        return x / settings.rate

    given = [(1, 2.0, 0.0), (1.0, 3.0, -0.0), (True, 4.0, 0.0)]
    with eb.Graph(policy="none"):
        for k, factor, rate in (given[at] for at in order):
            assert f(eb.input([1.0]), k=k).value().item() == factor
            assert over(eb.input([1.0]), settings=Settings(rate)).value().item() == math.copysign(math.inf, rate)


def test_indices_are_not_confused_with_slices():
    with eb.Graph(policy="none"):
        x = eb.input(np.arange(20.0).reshape(5, 4))
        vector = x[0]
        assert x[1:3].value().tolist() == [[4, 5, 6, 7], [8, 9, 10, 11]]
        assert x[1, 3].value() == 7
        assert x[1:3].shape == (2, 4)
        with pytest.raises(EdBatchError):
            vector[1, 3]
        assert x[:2].shape == (2, 4)
        assert x[None:2].shape == (2, 4)


WRONG = {
    "index": (lambda x: x[1], lambda x: x[1.0]),
    "start": (lambda x: x[1:3], lambda x: x[1.0:3]),
    "axis of softmax": (lambda x: eb.softmax(x, 1), lambda x: eb.softmax(x, 1.0)),
    "axis of split": (lambda x: eb.split(x, 2, 1), lambda x: eb.split(x, 2, 1.0)),
    "sizes of split": (lambda x: eb.split(x, (1, 3), 1), lambda x: eb.split(x, (1.0, 3), 1)),
    "shape": (lambda x: eb.reshape(x, (2, 10)), lambda x: eb.reshape(x, (2, 10.0))),
    "axes": (lambda x: eb.transpose(x, (1, 0)), lambda x: eb.transpose(x, (1.0, 0))),
    "axis of stack": (lambda x: eb.stack([x, x], 1), lambda x: eb.stack([x, x], 1.0)),
    "zeros": (lambda x: eb.zeros(2), lambda x: eb.zeros(2.0)),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_float_is_no_integer_even_if_the_integer_was_used(name):
    right, wrong = WRONG[name]
    with eb.Graph(policy="none"):
        x = eb.input(np.arange(20.0).reshape(5, 4))
        right(x)
        right(x)
        with pytest.raises(EdBatchError):
            wrong(x)
