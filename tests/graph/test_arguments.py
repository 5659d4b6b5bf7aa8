"""Arguments that nobody means: every public op, index and operator refuses them by an `EdBatchError`, or takes them."""

import inspect
import operator
import random

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.ops import __all__ as OPS
from edbatch.training.trainer import Trainer

HUGE = 10**5000  # Python refuses to write it out
ODD = [
    None, True, 0, 1, -1, 7, 2**31, 2**63, -(2**63), 10**30, 10**400, HUGE, -HUGE, 1.0, 1.5, float("nan"), float("inf"),
    np.int64(1), np.int32(-1), np.uint8(2), np.float32(1.0), np.bool_(True), 1j, "x", "\ud800", b"x", (), [], (1,), [0],
    (2.5, 6), (2, -1), (-1, -1), (0, 1), [1, 0], (0, 0), (1.0,), ("a",), (None,), (HUGE,), (2**62 + 1, 4), {}, {2: 3},
    set(), object(), int, slice(None), slice(0, 2), slice(0.5, 1), slice(None, None, 0), slice(HUGE), ..., range(3),
    slice(None, None, -HUGE), range(2**62),
    np.float32, np.array(1), np.array([0, 1]), np.array([0.5]), np.array(["a"]), np.array([None]), np.array([1 + 1j]),
    np.zeros((0,)), np.timedelta64(5, "s"), np.datetime64("2020"),
]  # fmt: skip


def operands():
    model = eb.ParameterCollection(seed=0)
    W, E = model.add_parameters((3, 4)), model.add_lookup_parameters((5, 4))
    x = eb.input([1.0, 2.0, 3.0, 4.0])
    return [x, eb.input([[1.0, 2.0], [3.0, 4.0]]), eb.input(2.0), W, E, E[1], x[1:3], [x, x * 2]]


def refused_or_taken(call, *arguments):
    try:
        call(*arguments)
    except eb.EdBatchError as error:
        assert error.__suppress_context__ or error.__context__ is None, error  # noqa: PT017
    except TypeError as error:  # Python's own, of a call's form or of an operator between what is not ours
        assert "argument" in str(error) or "unsupported operand" in str(error), error  # noqa: PT017


@pytest.mark.parametrize("name", OPS)
def test_ops(name):
    function, rng = getattr(eb, name), random.Random(name)
    most = len(inspect.signature(function).parameters)
    with eb.Graph(policy="sufficient"):
        ours = operands()
        for odd in ODD:
            for at in range(most):
                given = [odd if number == at else rng.choice(ours) for number in range(rng.randint(at + 1, most))]
                refused_or_taken(function, *given)


def test_indices_and_operators():
    with eb.Graph(policy="sufficient"):
        for x in operands()[:-1]:
            for odd in ODD:
                for key in (odd, (odd, 0), (0, odd)):
                    refused_or_taken(operator.getitem, x, key)
                for act in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.matmul):
                    refused_or_taken(act, x, odd)
                    refused_or_taken(act, odd, x)


def one_argument_odd():
    """Calls that are right but for one argument."""
    model = eb.ParameterCollection(seed=0)
    model.add_parameters((3, 4))
    E = model.add_lookup_parameters((5, 4))
    x = eb.input([1.0, 2.0, 3.0, 4.0])
    calls = [
        lambda odd: eb.dropout(x, 0.5, odd),
        lambda odd: eb.lookup(E, odd),
        lambda odd: eb.pick(x, odd),
        lambda odd: eb.cross_entropy(x, odd),
        lambda odd: eb.cross_entropy(x, 0, odd),
        lambda odd: eb.one_hot(odd, 3),
        lambda odd: model[odd],
        lambda odd: eb.seed(odd),
        lambda odd: eb.device(odd),
        lambda odd: eb.get_policy(odd),
        lambda odd: eb.get_policy(f"beam:{'9' * 5000}"),
        lambda odd: eb.device(f"cuda:{'9' * 5000}"),
    ]
    schedules = [value for value in vars(eb.schedules).values() if inspect.isclass(value)]
    makers = [eb.Graph, *(one for one in schedules if one.__module__ == eb.schedules.__name__ and fields_of(one))]
    calls += [
        lambda odd, make=make, name=name: make(**{**needed(make), name: odd})
        for make in makers
        for name in inspect.signature(make).parameters
    ]
    trainers = [value for value in (getattr(eb, name) for name in dir(eb)) if is_trainer(value)]
    assert len(trainers) > 5
    calls += [
        lambda odd, make=make, name=name: updated(make(model, **{name: odd}), model)
        for make in trainers
        for name in [*inspect.signature(make).parameters][1:]
    ]
    return calls


def fields_of(made):
    return getattr(made, "__dataclass_fields__", None)


def needed(make):
    """What a schedule or a graph is made of, at least."""
    parameters = inspect.signature(make).parameters.values()
    return {p.name: 2 if p.annotation in (int, "int") else 0.5 for p in parameters if p.default is p.empty}


def is_trainer(value):
    return inspect.isclass(value) and issubclass(value, Trainer) and value is not Trainer


def updated(trainer, model):
    for parameter in model:
        parameter.set_grad(np.ones(parameter.shape))
    with np.errstate(all="ignore"):
        trainer.update()


@pytest.mark.filterwarnings("ignore")
def test_one_argument_is_odd():
    with eb.Graph(policy="sufficient"):
        for call in one_argument_odd():
            for odd in ODD:
                refused_or_taken(call, odd)
