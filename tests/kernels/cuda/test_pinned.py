"""Uploads against a device that runs its copies when the test says so."""

import ctypes
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edbatch.kernels.cuda import pinned
from edbatch.kernels.cuda.pinned import Uploads


@dataclass
class FakeEvent:
    done: bool = False

    def record(self, stream):
        self.done = False
        stream.append(self.pass_by)

    def pass_by(self):
        self.done = True


class Device:
    """A stream: work that runs later, in order."""

    def __init__(self):
        self.stream, self.allocated = [], []
        self.uploads = Uploads(self.stream, self.allocate, FakeEvent, self.copy)

    def allocate(self, size):
        self.allocated.append(size)
        return np.empty(size, np.uint8)

    def copy(self, target, source, size):
        self.stream.append(lambda: ctypes.memmove(target, source, size))

    def run(self, n=None):
        for work in self.stream[:n]:
            work()
        del self.stream[:n]


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 6)), max_size=30))
def test_uploads_arrive_as_they_were(steps):
    """Whenever the device runs its copies, each brings what the array held when it was sent."""
    device, host, sent = Device(), np.empty(3000), []
    for n, (size, runs) in enumerate(steps):
        host[:size] = n + np.arange(size) / 4096
        target = np.full(size, -1.0)
        device.uploads.send(host[:size], target.ctypes.data)
        host[:] = -2
        sent.append(target)
        device.run(runs)
    device.run()
    for n, target in enumerate(sent):
        np.testing.assert_array_equal(target, n + np.arange(target.size) / 4096)


def test_no_buffer_is_used_again_early():
    device, targets = Device(), np.empty((5, 10))
    for target in targets[:4]:
        device.uploads.send(np.ones(10), target.ctypes.data)
    assert device.allocated == [pinned.SMALLEST] * 4
    device.run(2)  # a copy, and its event
    device.uploads.send(np.ones(10), targets[4].ctypes.data)
    assert len(device.allocated) == 4


def test_large_arrays_go_piece_by_piece(monkeypatch):
    monkeypatch.setattr(pinned, "LARGEST", 8192)
    device, host, target = Device(), np.arange(5000.0), np.empty(5000)
    device.uploads.send(host, target.ctypes.data)
    assert device.allocated == [8192] * 4 + [8192]  # the last has 7232 bytes
    device.run()
    np.testing.assert_array_equal(target, host)


@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.int64, np.float32, np.float64])
def test_any_array(dtype):
    device = Device()
    for host in (np.arange(24).astype(dtype).reshape(4, 6)[::2, ::-1], np.array(1, dtype), np.empty((0, 3), dtype)):
        target = np.empty(host.shape, dtype)
        device.uploads.send(host, target.ctypes.data)
        device.run()
        np.testing.assert_array_equal(target, host)
