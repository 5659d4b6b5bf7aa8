"""CuPy's driver where its libraries are the real ones, and CUDA does what is asked late, or refuses it."""

import ctypes
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import edbatch as eb
from edbatch.errors import EdBatchError
from edbatch.kernels.cuda import cublas, cupy_driver
from edbatch.kernels.cuda.cupy_driver import open_driver
from tests.cuda_fake.install import install
from tests.interrupts import FOREVER, Interrupt
from tests.kernels.cuda.test_cupy_driver import SCALE, enqueue_scale

OUT_OF_MEMORY = 2


@pytest.fixture
def driver():
    return open_driver(0)


@pytest.fixture
def kernel(driver):
    return driver.load(SCALE, ["scale"])[0]


@pytest.fixture
def failing():
    """Have a function of CUDA return a status, from its next call but so many on: `failing(name, after, status)`."""
    changed = []

    def fail(name, after, status):
        changed.append(name.encode())
        install().fake_fail(changed[-1], ctypes.c_long(after), status)

    yield fail
    for name in changed:
        install().fake_fail(name, ctypes.c_long(0), 0)


def in_use(driver):
    return driver.xp.cuda.runtime.getDevice(), driver.xp.cuda.get_current_stream()


def test_what_is_enqueued_is_done_late(driver, kernel):
    with driver.active():
        stream, seen = driver.xp.cuda.get_current_stream(), []
        for _ in range(20):
            array = driver.empty(3, np.dtype(np.float32))
            driver.upload(np.ones(3, np.float32), array)
            enqueue_scale(driver, kernel, 3, 2.0, array)
            seen.append(stream.done)
            np.testing.assert_array_equal(driver.download(array), [2, 2, 2])
    assert set(seen) == {False, True}


def test_what_is_wrong_on_the_device_is_said_when_the_host_waits(driver, kernel, capfd):
    array = driver.xp.cuda.alloc(512)  # noqa: F841
    memory = driver.xp.cuda.runtime.malloc(12)
    try:
        beyond = type("Array", (), {"data": type("", (), {"ptr": memory})})
        enqueue_scale(driver, kernel, 4, 2.0, beyond)
        with pytest.raises(RuntimeError, match="cudaErrorIllegalAddress"):
            driver.download(driver.empty(1, np.dtype(np.float32)))
        assert "something was written beyond 12 bytes" in capfd.readouterr().err
    finally:
        ctypes.c_int.in_dll(install(), "fake_broken").value = 0
        ctypes.memset(memory + 12, 0xA5, 4)
        driver.xp.cuda.runtime.free(memory)


def test_what_the_fake_lacks_is_named(driver, capfd):
    with pytest.raises(RuntimeError, match="NotSupported"):
        driver.xp.cuda.runtime.deviceGetLimit(0)
    assert capfd.readouterr().err == "fake CUDA: cudaDeviceGetLimit is not here\n"


def test_two_threads_that_open_a_gpu_at_once_share_it():
    cupy_driver._open.cache_clear()
    barrier = Barrier(2)

    def opened(_):
        barrier.wait()
        return open_driver(0)

    with ThreadPoolExecutor(2) as pool:
        assert len(set(pool.map(opened, range(2)))) == 1


def test_blocks_nest_in_all_threads(driver, kernel):
    """A thread that is new has no context: each block makes one."""

    def use():
        before = in_use(driver)
        with driver.active():
            with driver.active():
                array = driver.empty(1, np.dtype(np.float32))
            enqueue_scale(driver, kernel, 1, 2.0, array)
            inside = in_use(driver)
        return inside[1].ptr == driver.stream, in_use(driver) == before

    with ThreadPoolExecutor(1) as pool:
        assert [use(), pool.submit(use).result()] == [(True, True)] * 2


def test_blocks_of_two_gpus(driver):
    other, before = open_driver(1), in_use(driver)
    with driver.active(), other.active():
        assert (in_use(other)[0], in_use(other)[1].ptr) == (1, other.stream)
        with driver.active():
            assert (in_use(driver)[0], in_use(driver)[1].ptr) == (0, driver.stream)
        array = other.empty(3, np.dtype(np.float32))
        other.upload(np.ones(3, np.float32), array)
        assert (other.download(array) == 1).all()
    assert in_use(driver) == before
    with pytest.raises(EdBatchError, match="only 2 GPUs were found"):
        open_driver(2)


def test_an_interrupt_as_a_block_begins_leaves_none(driver):
    before, counted = in_use(driver), Interrupt(FOREVER)
    counted.run(lambda: driver.active().__enter__())
    driver.xp.cuda.Stream.null.use()
    for at in range(1, counted.passed + 1):
        assert Interrupt(at).run(lambda: driver.active().__enter__())
        assert in_use(driver) == before, at


def test_a_forked_process_is_told(driver, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: -1)
    for use in (lambda: driver.empty(1, np.float32), driver.active, lambda: driver.load("", [])):
        with pytest.raises(EdBatchError, match=r"^cuda:0: this process was forked from one that uses the GPU"):
            use()


def test_kernels_that_cannot_be_loaded(driver):
    with pytest.raises(EdBatchError, match=r"(?s)^cuda:0: a CUDA kernel does not compile:\n.*nothing.*undefined"):
        driver.load('extern "C" __global__ void f(long long n) { nothing = n; }', ["f"])
    with pytest.raises(EdBatchError, match=r"^cuda:0: not all kernels of scale, other are there: CUDA_ERROR_NOT_FOUND"):
        driver.load(SCALE, ["scale", "other"])


def test_uploads_that_do_not_fit(driver):
    with pytest.raises(EdBatchError, match=r"cuda:0: 16 bytes cannot be copied to an array of 12 \(contiguous\)"):
        driver.upload(np.zeros(4, np.float32), driver.empty(3, np.float32))
    with pytest.raises(EdBatchError, match=r"an array of 16 \(not contiguous\)"):
        driver.upload(np.zeros(4, np.float32), driver.empty(8, np.float32)[::2])


def test_a_block_of_work_that_cannot_be_recorded_records_nothing(driver, kernel):
    array = driver.empty(1, np.dtype(np.float32))
    driver.upload(np.ones(1, np.float32), array)
    enqueue_scale(driver, kernel, 1, 2.0, array)

    def record(what):
        with driver.capture() as recording:
            enqueue_scale(driver, kernel, 1, 3.0, array, recording.stream)
            what()

    for what in (lambda: driver.empty(10**8, np.float32), lambda: driver.download(array)):
        with pytest.raises(driver.xp.cuda.runtime.CUDARuntimeError, match="cudaErrorStreamCapture"):
            record(what)
        assert driver.download(array) == 2
    with driver.capture() as recording:
        enqueue_scale(driver, kernel, 1, 3.0, array, recording.stream)
        with pytest.raises(EdBatchError, match="can be launched once its block has ended"):
            recording.launch()
    recording.launch()
    assert driver.download(array) == 6


@pytest.mark.parametrize("name", ["Create_v2", "SetStream_v2", "SetWorkspace_v2", "SetMathMode", "GemmEx"])
def test_errors_of_cublas_are_named(driver, failing, name):
    failing(f"cublas{name}", 0, 3)
    address, size = driver.address(driver._workspace), driver._workspace.size
    with driver.active(), pytest.raises(EdBatchError, match=rf"cublas{name}: cuBLAS reports CUBLAS_STATUS_ALLOC_FAIL"):
        cublas.create(cublas.loaded(driver.xp.cuda.runtime.runtimeGetVersion() // 1000), driver.stream, address, size)


@pytest.mark.parametrize("after", range(2))
def test_without_memory_an_error_says_so_and_the_next_mini_batch_runs(driver, failing, after):
    driver.xp.get_default_memory_pool().free_all_blocks()
    model = eb.ParameterCollection(seed=1, device="cuda")
    W = model.add_parameters((40, 40))

    def run(length):
        with eb.Graph(policy="sufficient"):
            hs = [eb.input(np.ones(40))] * 50
            for _ in range(length):
                hs = [eb.tanh(W @ h) for h in hs]
            loss = eb.sum([eb.sum(h) for h in hs])
        loss.backward()
        return loss.value(), W.grad()

    want = run(2)
    failing("cudaMalloc", after, OUT_OF_MEMORY)
    with pytest.raises(EdBatchError, match="mini-batch") as raised:
        run(4000)
    assert isinstance(raised.value, MemoryError)
    failing("cudaMalloc", 0, 0)
    model.zero_grad()
    for mine, theirs in zip(run(2), want, strict=True):
        np.testing.assert_allclose(mine, theirs)


def test_the_demo(tmp_path):
    command = [sys.executable, "-m", "tests.cuda_fake", "demo", "--samples", "3", "--hidden", "8"]
    environment = os.environ | {"EDBATCH_DEVICE": "cuda", "PYTHONPATH": os.getcwd()}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "lattices" in done.stdout


def test_a_parameter_that_cupy_writes_to(cuda):
    import cupy

    W = eb.ParameterCollection(device=cuda).add_parameters((2, 3), init=1.0)
    shared = cupy.from_dlpack(W)
    shared *= 4
    W.touch()
    with eb.Graph():
        assert (W @ eb.input(np.ones(3, np.float32))).value().tolist() == [12, 12]
