"""Calls by address: errors are said once."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.kernels.cuda import calls, enqueue
from edbatch.kernels.cuda.backend import CudaBackend
from edbatch.kernels.tables import Listed, Rows
from tests.emulated.driver import EmulatedDriver
from tests.emulated.libraries import with_cpp


@pytest.fixture
def backend():
    """On an emulated GPU of their own: others do not survive what is wrong."""
    return CudaBackend(EmulatedDriver())


def copy(backend):
    source, target = (backend.from_host(x) for x in (np.arange(4, dtype=np.float32), np.zeros(4, np.float32)))
    moves = np.empty((enqueue.MOVES + 1, enqueue.MOVE), np.int64)
    there, here = (Listed(Rows(backend.address(x), 16, 16), 0) for x in (source, target))
    enqueue.note(backend._gpu, moves, 0, there, here, 1)
    enqueue.gather(backend._gpu, moves, 1)
    calls.check(backend._gpu)
    return backend.to_host(target)


@with_cpp
def test_a_launch_that_fails_is_said_once(backend):
    kernel, backend._gpu[calls.GATHER] = int(backend._gpu[calls.GATHER]), 12345
    with pytest.raises(eb.EdBatchError, match=r"^cuLaunchKernel failed with status 400$"):
        copy(backend)
    calls.check(backend._gpu)
    backend._gpu[calls.GATHER] = kernel
    np.testing.assert_array_equal(copy(backend), np.arange(4))
