import ctypes

import numpy as np
import pytest

from edbatch.errors import EdBatchError
from edbatch.kernels.cuda import cublas
from tests.emulated.driver import EmulatedDriver
from tests.emulated.libraries import core, with_cpp
from tests.kernels.cuda.fake_cupy import FakeBlas

CALLS = ["cublasCreate_v2", "cublasSetStream_v2", "cublasSetWorkspace_v2", "cublasSetMathMode", "cublasGemmEx"]


def test_a_handle_has_its_stream_and_workspace():
    library = FakeBlas()
    assert cublas.create(library, stream=2**40 + 1, workspace=2**47, size=2**25) == 77
    # In this order: setting a stream takes the workspace away.
    assert library.calls[:4] == [
        (CALLS[0],),
        (CALLS[1], 77, 2**40 + 1),
        (CALLS[2], 77, 2**47, 2**25),
        (CALLS[3], 77, 0),
    ]
    ((name, handle, *product),) = library.calls[4:]
    assert (name, handle) == (CALLS[4], 77)
    assert product[:5] == [0, 0, 1, 1, 1]
    assert product[6:12] == [2**47, 0, 1, 2**47 + 256, 0, 1]
    assert product[13:] == [2**47 + 512, 0, 1, 68, -1]


@with_cpp
def test_the_first_product_stays_in_the_workspace():
    driver, workspace = EmulatedDriver(), np.zeros(256, np.float32)
    workspace[[0, 64, 128]] = 2, 3, 5
    cublas._multiply_numbers(core(), ctypes.c_void_p(driver.blas), workspace.ctypes.data)
    assert driver.products == 1
    assert workspace[np.flatnonzero(workspace)].tolist() == [2, 3, 11]


@pytest.mark.parametrize("name", CALLS)
def test_errors_are_named(name):
    library = FakeBlas(failing=name)
    with pytest.raises(EdBatchError, match=rf"^{name}: cuBLAS reports CUBLAS_STATUS_ALLOC_FAILED \(3\)$"):
        cublas.create(library, 1, 2, 3)
    assert library.calls[-1][0] == name


def test_workspace_is_what_nvidia_recommends():
    assert [cublas.workspace_bytes(capability) >> 20 for capability in (7, 8, 9, 10, 12)] == [4, 4, 32, 32, 32]
