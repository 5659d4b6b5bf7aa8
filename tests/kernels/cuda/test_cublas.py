import pytest

from edbatch.errors import EdBatchError
from edbatch.kernels.cuda import cublas
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


@pytest.mark.parametrize("name", CALLS)
def test_errors_are_named(name):
    library = FakeBlas(failing=name)
    with pytest.raises(EdBatchError, match=rf"^{name}: cuBLAS reports CUBLAS_STATUS_ALLOC_FAILED \(3\)$"):
        cublas.create(library, 1, 2, 3)
    assert library.calls[-1][0] == name
