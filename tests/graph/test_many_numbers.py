"""A number that is part of a type and another one in every mini-batch is said, once."""

import warnings

import pytest

import edbatch as eb
from edbatch.graph.number_warnings import MANY

CALLS = {
    "power_of: exponent": lambda x, number: x ** (1.5 + number),
    "scale_gradient: scale": lambda x, number: eb.scale_gradient(x, -number),
    "clip: high": lambda x, number: eb.clip(x, 0.0, 1.0 + number),
    "layer_norm: epsilon": lambda x, number: eb.layer_norm(x, x, x, 1e-5 + number),
    "attention: scale": lambda x, number: eb.attention(x, [x, x], [x, x], scale=1.25 + number),
}


def mini_batches(call, count):
    for step in range(count):
        with eb.Graph():
            call(eb.ones(4), step / 64)


@pytest.mark.parametrize("name", CALLS)
def test_a_number_that_is_another_in_every_mini_batch_warns_once(name):
    with pytest.warns(eb.EdBatchWarning, match=f"{name} has been {MANY} different numbers.*operand") as found:
        mini_batches(CALLS[name], 2 * MANY)
    assert len(found) == 1
    assert found[0].filename == __file__


def test_it_is_said_before_anything_is_compiled():
    @eb.cell
    def scaled(x, *, rate):
        return x * rate

    for call in (*CALLS.values(), lambda x, number: scaled(x, rate=1.5 + number)):
        with eb.Graph() as graph:
            xs = [eb.ones(4)] * MANY
            message = f"has been (traced )?{MANY} (different numbers|times: rate is another)"
            with pytest.warns(eb.EdBatchWarning, match=message):
                [call(x, (at + 1) / 100) for at, x in enumerate(xs)]  # types that no other test has made
        assert graph.report().seconds == {}


def test_operands_and_few_numbers_do_not():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mini_batches(lambda x, number: x ** eb.scalar(number) * number + number, 2 * MANY)
        for call in CALLS.values():
            for _ in range(3):
                mini_batches(call, MANY - 1)
