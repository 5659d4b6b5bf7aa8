"""A gradient is that at the parameters' values with which the graph ran, or an error: never one at neither."""

import threading

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.cell.stacking import stacked
from tests.arrays import on_host

NUMPY = tuple(int(part) for part in np.__version__.split(".")[:2])


@pytest.fixture
def model():
    made = eb.ParameterCollection(seed=0)
    for name, shape in {"W": (3, 3), "V": (3, 3), "b": 3}.items():
        made.add_parameters(shape, name=name)
    made.add_lookup_parameters((4, 3), name="table")
    return made


def network(model, x):
    return eb.sum(model["V"] @ eb.tanh(model["W"] @ x + model["b"]))


def update(model, path):
    with eb.Graph():
        eb.sum(model["V"] @ eb.input([1.0, 2.0, 3.0])).backward()
    eb.SGD(model).update()


def set_value(model, path):
    model["V"].set_value(model["V"].value() * 2)


def load(model, path):
    model.save(path)
    model.load(path)


def of_a_stack(model, path):
    stack = stacked([model["W"].spec, model["V"].spec]).parameter()
    stack.set_value(stack.value() * 2)


@pytest.mark.parametrize(
    ("change", "cells", "read"),
    [(update, True, True), (set_value, False, False), (load, True, False), (of_a_stack, False, True)],
)
def test_a_change_between_a_run_and_its_way_back(model, change, cells, read, tmp_path):
    call = eb.cell(lambda x: network(model, x)) if cells else lambda x: network(model, x)
    with eb.Graph() as graph:
        x = eb.input([0.1, 0.2, 0.3])
        loss = call(x * 2)
    if read:
        loss.value()
    else:
        loss.backward()  # what this saves does not help: V is needed
    model.zero_grad()
    change(model, tmp_path / "m.safetensors")
    before = [on_host(parameter.grad()) for parameter in model]
    with pytest.raises(eb.EdBatchError, match=r"V.* changed after the graph had run"):
        loss.backward()
    for parameter, gradient in zip(model, before, strict=True):
        np.testing.assert_array_equal(on_host(parameter.grad()), gradient)
    with pytest.raises(eb.EdBatchError, match=r"call backward\(\) on"):
        x.gradient()
    with graph:  # what is new ran with the values of now
        again = call(x)
    model.zero_grad()
    again.backward()
    with eb.Graph():
        other = call(eb.input([0.1, 0.2, 0.3]))
    found = [on_host(parameter.grad()).copy() for parameter in model]
    model.zero_grad()
    other.backward()
    for parameter, gradient in zip(model, found, strict=True):
        np.testing.assert_allclose(on_host(parameter.grad()), gradient, rtol=1e-6)


def touch(model, path):
    model["V"].touch()


REFUSED = "V.* changed after this was recorded and before it ran"


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (update, "ops"), (set_value, "cell"), (load, "replay"), (of_a_stack, "array"), (touch, "drawn first"),
        (update, "cell"), (set_value, "replay"),
    ],
)  # fmt: skip
def test_a_change_between_recording_and_a_run(model, change, kind, tmp_path):
    """What waits is of the old values: reading it is an error, and nothing else is."""
    call = {
        "cell": eb.cell(lambda x: network(model, x)),
        "replay": eb.replay(lambda sample: network(model, eb.input(sample))),
    }.get(kind, lambda x: network(model, x))
    with eb.Graph(policy="sufficient") as graph:
        x = eb.input([0.1, 0.2, 0.3])
        given = (0.1, 0.2, 0.3) if kind == "replay" else x
        ran = call(given)
        before = ran.value()
        other = eb.sum(model["W"] @ x)
        if kind == "array":
            late = eb.array([x, x * 2]) @ model["V"].T
            low = late[0][0]
        else:
            late = call(given)
            low = late * 2 + 1
        if kind == "drawn first":
            graph.typed_graph()
        change(model, tmp_path / "m.safetensors")
        new = call(given)
    wanted = new.value()
    assert ran.value() == before
    with eb.Graph(policy="sufficient"):
        assert wanted == pytest.approx(call(given if kind == "replay" else eb.input([0.1, 0.2, 0.3])).value(), 1e-6)
    if change in (update, set_value, touch):  # not of W
        assert other.value() == pytest.approx(float(model["W"].value().sum(0) @ [0.1, 0.2, 0.3]), 1e-5)
    for read in (late.value, low.value, low.backward, lambda: eb.forward([ran, low])):
        with pytest.raises(eb.EdBatchError, match=REFUSED):
            read()
    with graph:
        later = low + new
    with pytest.raises(eb.EdBatchError, match=REFUSED):
        later.value()
    new.backward()
    assert model["V"].has_grad


def test_an_update_by_another_thread_is_of_the_run_that_comes_next(model):
    """Threads that train one model together: who records does not know of it, and a run has one set of values."""
    with eb.Graph():
        loss = network(model, eb.input([0.1, 0.2, 0.3]))
    thread = threading.Thread(target=set_value, args=(model, None))
    thread.start()
    thread.join()
    loss.backward()
    assert model["V"].has_grad


@pytest.mark.parametrize("cells", [True, False])
def test_gradients_read_after_an_update(model, cells):
    """Those that are there stay; for others a second way back would be needed."""
    call = eb.cell(lambda x: network(model, x)) if cells else lambda x: network(model, x)
    with eb.Graph():
        x = eb.input([0.1, 0.2, 0.3])
        y = eb.parameter(model["b"]) * 2
        loss = call(x) + call(y)
    loss.backward()
    eb.SGD(model).update()
    want = y.gradient()
    with pytest.raises(eb.EdBatchError, match="changed after the graph had run"):
        x.gradient()
    assert np.any(want)


def test_what_does_not_need_the_changed_values(model):
    """As in PyTorch: the gradient is that at the old values, and they are not needed."""
    table, W, b, V = model["table"], model["W"], model["b"], model["V"]
    with eb.Graph():
        x = eb.lookup(table, 2)
        loss = eb.sum(eb.tanh(W @ x + b))
        other = eb.sum(V @ eb.tanh(b))
        loss.value()
        for changed in (table, b, V):
            changed.set_value(changed.value() * 3)
        loss.backward()
    got = {p.name: on_host(p.grad()).copy() for p in (W, b)}
    model.zero_grad()
    b.set_value(b.value() / 3)
    table.set_value(table.value() / 3)
    with eb.Graph():
        eb.sum(eb.tanh(W @ eb.lookup(table, 2) + b)).backward()
    for name, gradient in got.items():
        np.testing.assert_allclose(gradient, on_host(model[name].grad()), rtol=1e-5)
    with pytest.raises(eb.EdBatchError, match="V changed"):
        other.backward()


@pytest.mark.skipif(NUMPY < (2, 3), reason="this NumPy's from_dlpack gives arrays that cannot be written")
@pytest.mark.cpu
def test_writes_to_shared_memory(model):
    arrays = {name: np.from_dlpack(model[name]) for name in ("V", "b")}
    with eb.Graph():
        loss = network(model, eb.input([0.1, 0.2, 0.3]))
        loss.backward()
        arrays["b"] += 1.0  # which going back does not need
        model["b"].touch()
        loss.backward()
        arrays["V"][0, 0] += 1.0
        model["V"].touch()
        with pytest.raises(eb.EdBatchError, match="V changed"):
            loss.backward()
    with eb.Graph():
        loss = network(model, eb.input([0.1, 0.2, 0.3]))
    arrays["V"][1, 2] += 1.0  # what runs reads what is there
    loss.backward()
