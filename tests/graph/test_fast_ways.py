"""Common forms of a call find what the call before has found: it makes few calls of Python functions, and is quick."""

import sys
import threading

import numpy as np
import pytest

import edbatch as eb


def calls_of(function):
    """How many functions of Python a call of it calls."""
    made = []
    sys.setprofile(lambda frame, event, _: made.append(frame.f_code.co_name) if event == "call" else None)
    try:
        function()
    finally:
        sys.setprofile(None)
    return made


@eb.cell
def step(h, x, rate):
    return eb.tanh(h + rate * x)


class Layer:
    @eb.cell
    def step(self, h, x, rate, *, scale=1.0):
        return eb.tanh(h + rate * x) * scale


ROW = np.ones(3)
SHORT = 20  # the careful way makes 28 calls, in cells more than 100
FORMS = {
    "x[:, None]": lambda x, y: y[:, None],
    "x[None]": lambda x, y: x[None],
    "x[..., None, 1:]": lambda x, y: x[..., None, 1:],
    "unsqueeze": lambda x, y: eb.unsqueeze(x, 1),
    "squeeze": lambda x, y: eb.squeeze(x[:1], 0),
    "squeeze all": lambda x, y: eb.squeeze(x[:1]),
    "swapaxes": lambda x, y: eb.swapaxes(x, 0, 1),
    "x + array": lambda x, y: x + ROW,
    "array * x": lambda x, y: ROW * x,
    "x @ array": lambda x, y: x @ ROW,
    "layer_norm": lambda x, y: eb.layer_norm(x, y, y),
    "cell of a number": lambda x, y: step(x, y, 0.5),
    "cell of an array": lambda x, y: step(x, ROW, y),
    "cell of NumPy's number": lambda x, y: step(x, y, np.float32(0.5)),
    "method of a number": lambda x, y: LAYER.step(x, y, 0.5),
}
LAYER = Layer()


@pytest.mark.parametrize("name", FORMS)
def test_the_second_call_is_short(name):
    form = FORMS[name]
    with eb.Graph(policy="sufficient"):
        x, y = eb.input(np.arange(6.0).reshape(2, 3)), eb.input([1.0, 2.0, 3.0])
        first = form(x, y)
        form(x, y)
        made = calls_of(lambda: form(x, y))
        assert len(made) < SHORT, made
        second = form(x, y)
    assert first.spec is second.spec
    np.testing.assert_array_equal(first.value(), second.value())


def test_they_compute_what_numpy_does():
    values, row = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 3.0])
    forms = [
        lambda x, y: y[:, None], lambda x, y: x[None], lambda x, y: x[..., None, 1:], lambda x, y: x[1, None, ::-1],
        lambda x, y: x.swapaxes(0, 1), lambda x, y: x.swapaxes(-1, 0), lambda x, y: x[:, :1].squeeze(1),
        lambda x, y: x[:, :1].squeeze(), lambda x, y: x.T[:, None], lambda x, y: x + np.full(3, 2.0),
        lambda x, y: np.full((2, 1), 2.0) - x, lambda x, y: x @ np.ones(3), lambda x, y: np.ones(2) @ x,
    ]  # fmt: skip
    with eb.Graph(policy="sufficient"):
        x, y = eb.input(values), eb.input(row)
        found = eb.forward([form(x, y) for _ in range(3) for form in forms])
    for at, array in enumerate(found):
        np.testing.assert_allclose(array, forms[at % len(forms)](values, row), rtol=1e-6)


def test_what_is_equal_is_not_taken_for_the_same():
    """True, 1.0 and an array are no axes, though equal to one that is known."""
    with eb.Graph(policy="sufficient"):
        x = eb.input(np.ones((2, 3)))
        for call in (eb.unsqueeze, lambda x, axis: eb.swapaxes(x, 0, axis)):
            call(x, 1)
            with pytest.raises(eb.EdBatchError, match=r"expected an integer axis, got 1\.0"):
                call(x, 1.0)
            assert call(x, np.int64(1)).shape == call(x, 1).shape
        x[1, None]
        with pytest.raises(eb.EdBatchError):
            x[1.0, None]
        with pytest.raises(eb.EdBatchError):
            x[True, None]


def test_an_array_is_copied_at_every_call():
    values = np.ones(3)
    with eb.Graph(policy="sufficient"):
        x = eb.input([1.0, 2.0, 3.0])
        first = x + values
        of_cell = step(x, values, 0.5)
        values += 1
        second, of_cell2 = x + values, step(x, values, 0.5)
    np.testing.assert_array_equal(first.value(), [2, 3, 4])
    np.testing.assert_array_equal(second.value(), [3, 4, 5])
    np.testing.assert_allclose(of_cell.value(), np.tanh([1.5, 2.5, 3.5]), rtol=1e-6)
    np.testing.assert_allclose(of_cell2.value(), np.tanh([2, 3, 4]), rtol=1e-6)


def test_integers_that_are_asked_for_are_no_floats():
    @eb.cell
    def chosen(x, index: int):
        return x[index]

    with eb.Graph(policy="sufficient"):
        x = eb.input([1.0, 2.0])
        chosen(x, 1)
        for odd in (1.0, np.ones(2), np.float32(1)):
            with pytest.raises(eb.EdBatchError, match=r"argument index: expected an integer, got (float|nd)"):
                chosen(x, odd)


def test_numbers_are_arguments_of_cells_in_every_thread_and_dtype():
    found = []

    def run(dtype):
        with eb.Graph(policy="sufficient", dtype=dtype):
            x = eb.ones(2)
            found.append(eb.forward([step(x, x, 0.5), step(x, x, 0.25), LAYER.step(x, x, 0.5, scale=2.0)]))

    for dtype in ("float32", "float64", "float32"):
        thread = threading.Thread(target=run, args=(dtype,))
        thread.start()
        thread.join()
    for dtype, arrays in zip(("float32", "float64", "float32"), found, strict=True):
        assert all(array.dtype == dtype for array in arrays)
        np.testing.assert_allclose([array[0] for array in arrays], [*np.tanh([1.5, 1.25]), 2 * np.tanh(1.5)], rtol=1e-6)
