"""The counter counts: against a CUPTI that calls back as NVIDIA's does, and on a GPU."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from edbatch.kernels.cuda.cupy_driver import open_driver
from tests.kernels.cuda import counting


class FakeCupti:
    def __init__(self, result=0):
        self.result, self.callback, self.domains = result, None, []

    def cuptiSubscribe(self, subscriber, callback, data):
        self.callback = callback
        return self.result

    def cuptiEnableDomain(self, enable, subscriber, domain):
        self.domains.append(domain)
        return 0

    def cuptiUnsubscribe(self, subscriber):
        self.callback = None
        return 0

    def cuptiGetResultString(self, result, text):
        text._obj.value = b"CUPTI_ERROR_NOT_INITIALIZED"

    def call(self, name):
        for site in 0, 1:
            data = counting.CallbackData(site, name.encode())
            self.callback(None, 2, 0, ctypes.byref(data))


class Hook:
    entered = None

    def __enter__(self):
        Hook.entered = self

    def __exit__(self, *_):
        Hook.entered = None


CUPY = SimpleNamespace(cuda=SimpleNamespace(MemoryHook=Hook))


def test_each_call_is_counted_once():
    cupti = FakeCupti()
    with counting.counted(cupti, CUPY) as calls:
        for name in "cudaStreamSynchronize_v3020", "cuLaunchKernel", "cuLaunchKernel", "cudaMemcpyAsync_v3020":
            cupti.call(name)
        for name in "cuMemcpyDtoH_v2", "cuMemAlloc_v2", "cuMemAlloc_v2", "cudaEventQuery_v3020":
            cupti.call(name)
        Hook.entered.malloc_preprocess(size=1)
    assert calls.waits == {"cudaStreamSynchronize_v3020": 1, "cuMemcpyDtoH_v2": 1}
    assert calls.copies == {"cudaMemcpyAsync_v3020": 1, "cuMemcpyDtoH_v2": 1}
    assert calls.allocations == {"cuMemAlloc_v2": 2}
    assert calls.launches == {"cuLaunchKernel": 2}
    assert calls.pool == {"malloc": 1}
    assert cupti.domains == [1, 2]
    assert cupti.callback is Hook.entered is None


def test_errors_of_cupti_are_told():
    with (
        pytest.raises(RuntimeError, match=r"^cuptiSubscribe: CUPTI_ERROR_NOT_INITIALIZED$"),
        counting.counted(FakeCupti(15), CUPY),
    ):
        pass


@pytest.mark.parametrize(
    "name",
    ["cudaLaunchKernel_v7000", "cudaStreamWaitEvent_v3020", "cudaEventQuery_v3020", "cuMemcpyHtoDAsync_v2_ptsz"],
)
def test_what_does_not_wait(name):
    assert not counting.WAIT.match(name)
    assert not counting.ALLOCATION.match(name)


@pytest.mark.gpu
def test_on_a_gpu():
    """What waits and what does not, as CUPTI sees CuPy's compiled modules."""
    gpu = open_driver(0)
    array = gpu.empty(100, np.dtype(np.float32))
    gpu.upload(np.ones(100, np.float32), array)
    with gpu.active():
        gpu.xp.add(array, array, out=array)  # compiled and loaded by now
    gpu.synchronize()
    with counting.counted() as calls, gpu.active():
        gpu.upload(np.ones(100, np.float32), array)
        gpu.xp.add(array, array, out=array)
    assert not calls.waits
    assert not calls.allocations
    assert not calls.pool
    assert calls.copies
    assert calls.launches
    with counting.counted() as calls, gpu.active():
        gpu.download(gpu.xp.add(array, array))
        gpu.synchronize()
    assert calls.waits
    assert calls.pool["malloc"] == 1
