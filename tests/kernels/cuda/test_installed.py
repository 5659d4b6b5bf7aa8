"""Each thing that can be missing is named in one sentence, with how to get it."""

import importlib.util
import re
import sys
from types import SimpleNamespace

import pytest

from edbatch.errors import EdBatchError
from edbatch.kernels.cuda import installed
from edbatch.kernels.cuda.cupy_driver import _open, open_driver
from tests.conftest import need_gpu


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    _open.cache_clear()
    yield
    _open.cache_clear()


def with_driver(monkeypatch, version, status=0):
    """A machine whose NVIDIA driver runs a CUDA `version`."""

    def get_version(pointer):
        pointer._obj.value = version
        return status

    monkeypatch.setattr(installed, "cuda_driver", lambda: SimpleNamespace(cuDriverGetVersion=get_version))


class Cuda(SimpleNamespace):
    """`cupy.cuda`, where what it has not is a library that cannot be loaded."""

    def __getattr__(self, name):
        raise ImportError(f"lib{name}.so.12: cannot open shared object file\nmore")


def cupy(built=13000, gpus=1, **found):
    """As much of CuPy as is asked before a GPU is opened."""

    def count():
        if not gpus:
            raise RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
        return gpus

    runtime = SimpleNamespace(CUDARuntimeError=RuntimeError, getDeviceCount=count, runtimeGetVersion=lambda: built)
    return SimpleNamespace(__version__="14.2.0", cuda=Cuda(runtime=runtime, **found))


def message(number=0):
    with pytest.raises(EdBatchError) as raised:
        open_driver(number)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_no_driver(monkeypatch):
    def missing():
        raise OSError("libcuda.so.1: cannot open shared object file: No such file or directory")

    monkeypatch.setattr(installed, "cuda_driver", missing)
    assert message() == (
        f"cuda:0: no NVIDIA driver was found ({installed.DRIVER_LIBRARY} cannot be loaded): install the driver, then "
        "CuPy by `pip install 'edbatch[cuda12]'`, or [cuda13] for CUDA 13"
    )
    with pytest.raises(pytest.UsageError, match=r"^--device cuda: cuda:0: no NVIDIA driver was found .*CUDA 13$"):
        need_gpu()


@pytest.mark.parametrize(
    ("version", "extra"), [(12000, "cuda12"), (12090, "cuda12"), (13000, "cuda13"), (14010, "cuda13")]
)
@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_no_cupy(monkeypatch, version, extra):
    with_driver(monkeypatch, version)
    assert message(1) == f"cuda:1: CuPy is not installed: `pip install 'edbatch[{extra}]'`"


def test_a_broken_cupy(monkeypatch, tmp_path):
    (tmp_path / "cupy.py").write_text('raise ImportError("\\n====\\nFailed to import CuPy.\\n\\nIf you installed ...")')
    with_driver(monkeypatch, 12040)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    assert message() == (
        "cuda:0: CuPy cannot be imported (Failed to import CuPy.): uninstall it, then `pip install 'edbatch[cuda12]'`"
    )


# The CUDA that the driver runs, the CuPy that is installed, and what is said of a GPU.
NOT_THERE = [
    (11080, {}, 0, "NVIDIA's driver runs CUDA 11.8 at most, 12.0 is needed: update the driver"),
    (12040, {"built": 13000}, 0, "CuPy 14.2.0 is built for CUDA 13, NVIDIA's driver runs 12.4 at most: "
     "uninstall this CuPy, then `pip install 'edbatch[cuda12]'`"),
    (13000, {"gpus": 0}, 0, "no GPU was found (cudaErrorNoDevice: no CUDA-capable device is detected)"),
    (13000, {"gpus": 1}, 1, "only 1 GPU was found, cuda:0"),
    (13000, {"gpus": 4}, -1, "only 4 GPUs were found, cuda:0 to cuda:3"),
]  # fmt: skip


@pytest.mark.parametrize(("version", "there", "number", "sentence"), NOT_THERE)
def test_no_such_gpu(monkeypatch, version, there, number, sentence):
    with_driver(monkeypatch, version)
    monkeypatch.setitem(sys.modules, "cupy", cupy(**there))
    assert message(number) == f"cuda:{number}: {sentence}"
    if "gpus" in there:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
        assert message(number) == f"cuda:{number}: {sentence}, where CUDA_VISIBLE_DEVICES is '2'"


@pytest.mark.parametrize(("library", "found"), [("cuBLAS", {}), ("NVRTC", {"cublas": "found"})])
def test_no_toolkit(monkeypatch, library, found):
    with_driver(monkeypatch, 12040)
    monkeypatch.setitem(sys.modules, "cupy", cupy(built=12090, **found))
    assert re.fullmatch(
        rf"cuda:0: {library} of CUDA 12 cannot be found \([^\n]+\): install NVIDIA's CUDA toolkit 12, or its wheels by "
        r"`pip install 'edbatch\[cuda12\]'`",
        message(),
    )
