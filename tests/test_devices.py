"""Devices: how they are named and chosen, and parameters on them. (GPUs are emulated unless there is one.)"""

import copy
import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import edbatch as eb
from edbatch.devices import current_device, device
from tests.emulated import arrays


@pytest.fixture(autouse=True)
def no_variable(monkeypatch):
    monkeypatch.delenv("EDBATCH_DEVICE", raising=False)


def test_a_name_is_one_device():
    assert device("cuda") is device("cuda:0") is device("cuda:00") is device(device("cuda"))
    assert device("cuda") is not device("cuda:1")
    assert [device(name).name for name in ("cpu", "cuda", "cuda:12")] == ["cpu", "cuda:0", "cuda:12"]
    assert (device("cuda:1").kind, device("cuda:1").number) == ("cuda", 1)
    assert repr(device("cuda")) == "device('cuda:0')"


@pytest.mark.parametrize(
    "name", ["", "gpu", "CUDA", "cpu:0", "cuda:", "cuda:-1", "cuda:1234", " cuda", None, 0, ("cpu",)]
)
def test_bad_names(name):
    with pytest.raises(eb.EdBatchError, match=r'^device .*: expected "cpu", "cuda" or "cuda:1"$'):
        device(name)


def test_blocks_nest():
    assert current_device() is device("cpu")
    with device("cuda") as outer:
        assert current_device() is outer is device("cuda")
        with device("cpu"), device("cuda:1"), device("cuda"):  # one of them twice
            assert current_device() is outer
        assert current_device() is outer
        with pytest.raises(ZeroDivisionError), device("cpu"):
            1 / 0  # noqa: B018
        assert current_device() is outer
    assert current_device() is device("cpu")


def test_the_environment_names_the_device(monkeypatch):
    monkeypatch.setenv("EDBATCH_DEVICE", "cuda:1")
    assert current_device() is device("cuda:1")
    with device("cpu"):
        assert current_device() is device("cpu")
    monkeypatch.setenv("EDBATCH_DEVICE", "")
    assert current_device() is device("cpu")
    monkeypatch.setenv("EDBATCH_DEVICE", "tpu")
    with pytest.raises(eb.EdBatchError, match="device 'tpu': expected"):
        eb.ParameterCollection()


def test_devices_that_are_not_there(monkeypatch):
    def missing(number):
        raise eb.EdBatchError(f"there is no GPU {number}")

    monkeypatch.setattr("edbatch.kernels.cuda.backend.open_backend", missing)
    name = "cuda:99"
    assert device(name).name == name  # whether it is there shows on first use
    for use in (lambda: eb.ParameterCollection(device=name), lambda: eb.Graph(device=name), device(name).synchronize):
        with pytest.raises(eb.EdBatchError, match=r"^there is no GPU 99$"):
            use()


# Where things are.


@pytest.fixture
def second(cuda, monkeypatch):
    """Another GPU."""
    if not hasattr(cuda.backend._driver, "uploads"):
        pytest.skip("whether there is a second GPU is not known")
    return device("cuda:1")


def test_where_parameters_and_graphs_are(cuda, monkeypatch):
    assert eb.ParameterCollection().device is device("cpu")
    given = eb.ParameterCollection(device="cuda")
    with cuda:
        entered = eb.ParameterCollection()
        assert eb.ParameterCollection(device="cpu").device is device("cpu")
    monkeypatch.setenv("EDBATCH_DEVICE", "cuda")
    assert {x.device for x in (given, entered, eb.ParameterCollection())} == {cuda}
    monkeypatch.delenv("EDBATCH_DEVICE")
    W, table = given.add_parameters((2, 3), init=1.0), given.add_lookup_parameters((4, 3), init=2.0)
    assert W.device is table.device is cuda

    def ran_on(build, **arguments):
        with eb.Graph(policy="sufficient", **arguments) as graph:
            y = build()
        assert y.value().tolist() == [6.0, 6.0]
        return graph._evaluation.table.device

    assert ran_on(lambda: W @ table[1]) is cuda  # where the parameters are
    assert ran_on(lambda: W @ table[1], device=cuda) is cuda
    plain = lambda: eb.ones(2) * 6  # noqa: E731
    assert ran_on(plain) is device("cpu")
    assert ran_on(plain, device="cuda") is cuda
    with cuda:
        assert ran_on(plain) is cuda
        assert ran_on(plain, device="cpu") is device("cpu")


def test_parameters_of_two_devices_do_not_meet(cuda):
    here, there = eb.ParameterCollection(), eb.ParameterCollection(device=cuda)
    W, V = here.add_parameters((3, 3), name="W"), there.add_parameters((3, 3), name="V")
    b = there.add_parameters(3, name="b")
    expected = "expected parameters on one device, got some on cpu and cuda:0"

    with eb.Graph(), pytest.raises(eb.EdBatchError, match=rf"^affine\(W.*b.*: {expected}$"):
        eb.affine(W, eb.ones(3), b)  # in one op

    @eb.cell
    def both(x):
        return W @ (V @ x)

    with eb.Graph(), pytest.raises(eb.EdBatchError, match=expected):
        both(eb.ones(3))  # in one cell
    for where, name in ((None, "W"), ("cpu", "V")):  # in one graph
        with eb.Graph(policy="sufficient", device=where):
            y = W @ (V @ eb.ones(3))
        with pytest.raises(eb.EdBatchError, match=rf"{name}\[3,3\].*: expected parameters on .*, where the graph runs"):
            y.value()
    with eb.Graph(policy="sufficient", device=cuda):
        y = W @ eb.ones(3)
    with pytest.raises(eb.EdBatchError, match="expected parameters on cuda:0, where the graph runs"):
        y.value()
    with eb.Graph(policy="sufficient") as graph:  # also later in it
        x = V @ eb.ones(3)
        x.value()
        y = eb.square(W @ eb.square(eb.square(x)))
    with pytest.raises(eb.EdBatchError, match="expected parameters on cuda:0, where the graph runs"):
        graph.run()
    with eb.Graph(policy="sufficient", device=cuda):  # others go on
        y = V @ eb.square(eb.ones(3))
    np.testing.assert_allclose(y.value(), V.value().sum(axis=1), rtol=1e-5)


@pytest.fixture
def only_inside(second, monkeypatch):
    """An error for what computes with arrays of the second GPU outside its blocks: CuPy would do so on the first."""
    driver, check = second.backend._driver, arrays.check

    def checked(x, where):
        if isinstance(x, arrays.DeviceArray):
            assert driver.depth, f"{where}: outside the device's block"
        check(x, where)

    monkeypatch.setattr(arrays, "check", checked)
    return second


def test_all_that_computes_is_on_the_parameters_device(only_inside, tmp_path):
    """Called as users do, in no block and in another thread, while the first GPU is the current one."""

    def work():
        model = eb.ParameterCollection(seed=0, device=only_inside)
        W, V = model.add_parameters((2, 3), name="W"), model.add_parameters((1, 3), name="V")
        table = model.add_lookup_parameters((5, 3), name="table")
        trainer = eb.Adam(model, clip=1.0)

        @eb.cell
        def both(W, V, x):
            return W @ x, V @ x

        for step in range(3):
            W.set_value(np.full((2, 3), step))
            with eb.Graph(policy="sufficient"):
                outputs = [y for row in (3, 0, 3) for y in both(W, V, table[row])]
                loss = eb.sum([eb.sum(eb.square(y)) for y in outputs])
            for _ in range(2):  # gradients add up
                loss.backward()
            assert np.isfinite(loss.value())
            assert table.grad().any()
            assert table.sparse_grad()[0].tolist() == [0, 3]
            if step == 1:
                model.zero_grad()
                assert not W.grad().any()
            else:
                trainer.update()
        model.save(tmp_path / "m.safetensors", trainer=trainer)
        model.load(tmp_path / "m.safetensors", trainer=trainer)
        copy.deepcopy(trainer)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


# Parameters on a device.


def test_gradients(cuda):
    model = eb.ParameterCollection(seed=1, device=cuda)
    W, table = model.add_parameters((2, 3), name="W"), model.add_lookup_parameters((5, 3), name="table")
    assert not W.has_grad
    assert table.sparse_grad() is None
    np.testing.assert_array_equal(W.grad(), np.zeros((2, 3)))
    for times in (1, 2):  # they add up
        with eb.Graph(policy="sufficient"):
            loss = eb.sum([eb.sum(W @ table[row]) for row in (3, 0, 3)])
        loss.backward()
        rows, values = table.sparse_grad()
        assert isinstance(rows, np.ndarray)
        assert rows.tolist() == [0, 3]
        column = W.value().sum(axis=0)
        want = np.zeros((5, 3))
        want[0], want[3] = times * column, 2 * times * column
        np.testing.assert_allclose(values, want[[0, 3]], rtol=1e-6)
        np.testing.assert_allclose(table.grad(), want, rtol=1e-6)
        entries = table.value()
        np.testing.assert_allclose(W.grad(), [times * (entries[0] + 2 * entries[3])] * 2, rtol=1e-5, atol=1e-7)
    W.scale_grad(2)
    np.testing.assert_allclose(W.grad(), [4 * (entries[0] + 2 * entries[3])] * 2, rtol=1e-5, atol=1e-7)
    model.zero_grad()
    assert not W.has_grad
    assert table.sparse_grad() is None
    np.testing.assert_array_equal(W.grad(), np.zeros((2, 3)))


def test_threads_have_devices_of_their_own():
    """Devices are shared, the blocks that they are entered in are not."""
    inside, outside = Barrier(2), Barrier(2)
    found = {}

    def work(name, wait_first):
        if wait_first:
            inside.wait()
        with eb.device(name):
            if not wait_first:
                inside.wait()
            outside.wait()
            found[name] = current_device().name
        found[f"after {name}"] = current_device().name

    with eb.device("cuda:3"), ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(work, "cuda:1", False), pool.submit(work, "cuda:2", True)]:
            future.result()
        assert current_device().name == "cuda:3"
    assert (found["cuda:1"], found["cuda:2"]) == ("cuda:1", "cuda:2")
    assert found["after cuda:1"] == found["after cuda:2"] == eb.device(os.environ.get("EDBATCH_DEVICE") or "cpu").name
