"""A GPU that is not one: CUDA source runs on the CPU, and device memory is host memory (see core.cpp).

Where something on a GPU would be left to chance, it fails here or shows: memory begins as NaN, and what is written
beyond an array's ends is noticed.
"""

import contextlib
import ctypes
import os
import threading
import weakref
from functools import partial

import numpy as np

from tests.emulated.arrays import DeviceArray, DeviceFunctions, device_address, plain
from tests.emulated.libraries import compiled, compiled_together, core, generated

FENCE = 256  # bytes before and after an array
LEFT_ALONE = 0xA5
FENCES = bytes([LEFT_ALONE]) * (3 * FENCE)


class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_longlong) for name in ("launches", "products", "recorded", "replayed")]


class Recording:
    """Work that was recorded; `entries` says how many launches and products it holds."""

    def __init__(self, driver, stream, work):
        self.stream = self.blas = stream
        self._driver, self._work = driver, work
        self.entries = 0
        weakref.finalize(self, core().emulated_forget_work, work)

    def launch(self):
        self._driver._not_recording("a recording was launched")
        status = core().emulated_replay(self._driver.stream, self._work)
        assert status == 0, f"CUDA error {status}"


class EmulatedDriver:
    """`edbatch.kernels.cuda.cupy_driver.CuPyDriver` on the CPU.

    Args:
        number: of the GPU.

    Attributes:
        uploads, downloads, allocations: how often these were called.
        launches, products, recorded, replayed: kernels, matrix products (calls), both in recordings, and recordings.
    """

    xp = DeviceFunctions()
    processors = 2

    def __init__(self, number=0):
        self.name, self._number = f"cuda:{number}", number
        self.stream, self._recorded = (core().emulated_stream(number) for _ in range(2))
        for stream in (self.stream, self._recorded):
            weakref.finalize(self, core().emulated_forget_stream, stream)
        self.blas = self.stream
        self.launch, self.gemm, self.gemm_strided = (
            ctypes.cast(core()[name], ctypes.c_void_p).value
            for name in ("emulated_launch", "emulated_gemm", "emulated_gemm_strided")
        )
        self.uploads = self.downloads = self.allocations = 0
        self._counts, self._recorded_counts = map(Counts.from_address, (self.stream, self._recorded))
        self._mine = threading.local()
        self._process = os.getpid()
        self._memory = {}
        self._waiting = None
        with self.active():  # as when a GPU is opened: its context is the thread's
            pass

    launches = property(lambda self: self._counts.launches)
    products = property(lambda self: self._counts.products)
    recorded = property(lambda self: self._recorded_counts.recorded)
    replayed = property(lambda self: self._counts.replayed)

    def load(self, source, names):
        handles = [core().emulated_kernel(name.encode()) for name in names]
        made = generated(source, names)
        if made is None:
            for handle, found in zip(handles, compiled(source, names), strict=True):
                core().emulated_define(handle, found)
        elif self._waiting is not None:
            self._waiting += zip(handles, made, strict=True)
        else:
            _define(zip(handles, made, strict=True))
        return handles

    @contextlib.contextmanager
    def together(self):
        """Generated kernels that are loaded in its block do nothing there; at its end, they are compiled together.

        So that what needs many is run twice, and not compiled kernel by kernel.
        """
        self._waiting = []
        try:
            yield
        finally:
            waiting, self._waiting = self._waiting, None
            _define(waiting)

    def empty(self, entries, dtype):
        self._not_recording("memory was allocated")
        self.allocations += 1
        bytes = int(entries) * np.dtype(dtype).itemsize
        memory = np.full(bytes + 3 * FENCE, LEFT_ALONE, np.uint8)
        begin = FENCE + -memory.ctypes.data % FENCE
        memory[begin : begin + bytes] = 0xFF  # NaN
        number = self.allocations
        core().emulated_memory(memory.ctypes.data + begin, bytes, FENCE)
        # Not Python code, which a trace that is made at that moment would watch.
        self._memory[number] = weakref.ref(memory, partial(self._memory.pop, number)), begin, bytes
        return memory[begin : begin + bytes].view(dtype).view(DeviceArray)

    def check_memory(self):
        """Nothing was written beyond the ends of arrays that are still in use."""
        for reference, begin, bytes in list(self._memory.values()):
            memory = reference()
            if memory is not None:
                for fence in (memory[:begin], memory[begin + bytes :]):
                    assert fence.tobytes() == FENCES[: fence.size], (
                        f"something was written beyond an array of {bytes} bytes"
                    )

    def address(self, array):
        return array.__array_interface__["data"][0]

    def array_at(self, address, shape, strides, dtype):
        first = np.ndarray(1, dtype, (ctypes.c_char * dtype.itemsize).from_address(address))
        return np.lib.stride_tricks.as_strided(first, shape, strides).view(DeviceArray)

    def upload(self, host, target):
        self._not_recording("an array was uploaded")
        self.uploads += 1
        assert type(host) is np.ndarray
        assert isinstance(target, DeviceArray)
        assert target.flags.c_contiguous
        assert host.nbytes == target.nbytes, f"{host.nbytes} bytes for {target.nbytes}"
        plain(target).reshape(-1).view(np.uint8)[:] = np.frombuffer(host.tobytes(), np.uint8)

    def download(self, array):
        self._not_recording("an array was downloaded")
        self.downloads += 1
        self.check_memory()
        return plain(array).copy()

    @contextlib.contextmanager
    def active(self):
        assert os.getpid() == self._process, "CUDA does not work in a process that was forked from one that uses it"
        before = core().emulated_set_device(self._number)
        self._mine.depth = self.depth + 1
        try:
            yield
        finally:
            self._mine.depth -= 1
            core().emulated_set_device(before)

    @property
    def depth(self):
        """How many blocks of `active` the thread is in."""
        return getattr(self._mine, "depth", 0)

    @contextlib.contextmanager
    def capture(self):
        self._not_recording("a recording was begun")
        before = self.recorded
        with self.active():
            recording = Recording(self, self._recorded, core().emulated_begin(self._recorded))
            self._mine.recording = True
            try:
                yield recording
            finally:
                self._mine.recording = False
                core().emulated_end(self._recorded)
                recording.entries = self.recorded - before

    def _not_recording(self, what):
        assert not getattr(self._mine, "recording", False), f"{what} while work is recorded"

    def run(self, kernel, grid, block, *parameters, stream=None):
        """Launch a kernel from Python: numbers, None (null), arrays, and arrays of ctypes by value."""
        _, addresses = parameters_of(parameters)
        grid, block = (tuple(sizes) + (1,) * (3 - len(sizes)) for sizes in (grid, block))
        with self.active():
            status = core().emulated_launch(kernel, *grid, *block, 0, stream or self.stream, addresses, None)
        assert status == 0, f"CUDA error {status}"


def _define(kernels):
    """Compile generated kernels for their handles."""
    kernels = list(kernels)
    found = compiled_together(dict.fromkeys(text for _, text in kernels))
    for handle, text in kernels:
        core().emulated_define(handle, found[text])


def parameters_of(values):
    """What `emulated_launch` takes for parameters, and what has to live as long."""
    boxes = []
    for value in values:
        if isinstance(value, np.ndarray):
            value = value.ctypes.data if isinstance(value, DeviceArray) else device_address(value)
        if isinstance(value, float | np.float32):
            value = (ctypes.c_float if isinstance(value, np.float32) else ctypes.c_double)(value)
        is_box = isinstance(value, ctypes.Array | ctypes.c_float | ctypes.c_double)
        boxes.append(value if is_box else ctypes.c_longlong(value or 0))
    return boxes, (ctypes.c_void_p * len(boxes))(*(ctypes.addressof(box) for box in boxes))


def run_thread(kernel, places, *parameters):
    """One thread of a grid of any size; places: three numbers each for blockIdx, blockDim, gridDim, threadIdx."""
    _, addresses = parameters_of(parameters)
    core().emulated_thread(kernel, (ctypes.c_uint * 12)(*places), addresses)
