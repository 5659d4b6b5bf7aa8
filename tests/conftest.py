"""Shared by all tests: the device they run on, and the real data, where there is any."""

import gc
import os
import signal
import zlib
from pathlib import Path

import pytest
from hypothesis import settings

import edbatch as eb
from edbatch import errors
from edbatch.errors import EdBatchError
from edbatch.graph.cell import made_anew
from edbatch.graph.opened import graphs
from edbatch.graph.options import Options, current_options
from edbatch.kernels.cuda.cupy_driver import open_driver
from edbatch.kernels.cuda.recordings import Recordings
from tests.cuda_fake import install
from tests.emulated import libraries
from tests.interrupts import end_blocks

# What it declares is in the tables while it is tested, and not while other tests are collected.
collect_ignore = ["extensions.py"]

# A busy machine must not fail a test for being slow; CI tries the same examples every time.
# Each test process computes with one thread, as several of them share the cores; tests of threads ask for more.
os.environ.setdefault("EDBATCH_THREADS", "1")

settings.register_profile("edbatch", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("edbatch")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder that EDBATCH_DATA names."""
    folder = os.environ.get("EDBATCH_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("EDBATCH_DATA names no folder with data")
    return Path(folder)


@pytest.fixture(autouse=True)
def _no_old_garbage():
    """Garbage is collected among what a test makes, and not among all that a process of tests keeps, which takes
    seconds; and no finalizers of other tests run in it.
    """
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item):
    if item.config.getoption("--device") == "fake":
        if install.missing():
            pytest.skip(install.missing())
    elif install.HERE in item.path.parents:
        pytest.skip("run by -m cuda_fake")
    if item.get_closest_marker("cpu") and item.config.getoption("--device") != "cpu":
        pytest.skip("of the CPU alone")
    if item.get_closest_marker("gpu"):
        try:
            open_driver(0)
        except EdBatchError as missing:
            pytest.skip(str(missing))


def pytest_addoption(parser):
    help = (
        "where to run: on the CPU, on a GPU, or, slowly, on one that is emulated or faked (tests/emulated, cuda_fake)"
    )
    parser.addoption("--device", choices=("cpu", "cuda", "emulated", "fake"), default="cpu", help=help)
    parser.addoption("--share", metavar="K/N", help="run share K, from 0 on, of N shares of the tests")
    parser.addoption("--check-kernels", action="store_true", help="find races in kernels of the emulated GPU (slow)")


def pytest_xdist_auto_num_workers(config):
    """As many as there are processors, at most 8, on a GPU too; what is named runs in this process."""
    named = all(".py" in argument for argument in config.args)
    if named or config.getoption("usepdb"):
        return 0
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(processors, 8) if processors > 1 else 0


def pytest_configure(config):
    # A shell has what it runs in the background, or under nohup, ignore interrupts; those of tests would be lost.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    libraries.checks = config.getoption("--check-kernels")
    if config.getoption("markexpr") == "cuda_fake":
        config.option.device = "fake"
    chosen = config.getoption("--device")
    if chosen == "cuda":
        need_gpu()
    elif chosen in ("cpu", "emulated"):
        emulate()
    elif chosen == "fake" and not install.missing():
        install.install()
    if chosen != "cpu":
        os.environ["EDBATCH_DEVICE"] = "cuda"


def need_gpu():
    """End what asks for a GPU that is not there, with one sentence, before thousands of tests say it."""
    try:
        open_driver(0)
    except EdBatchError as missing:
        raise pytest.UsageError(f"--device cuda: {missing}") from None


@pytest.hookimpl(tryfirst=True)  # before those without the marker are left out
def pytest_collection_modifyitems(config, items):
    """Everything that needs a GPU, and is not slow, runs on one that is faked, too; of all, the share asked for."""
    for item in items:
        needs_one = "cuda" in getattr(item, "fixturenames", ()) or item.get_closest_marker("gpu")
        if (needs_one or install.HERE in item.path.parents) and not item.get_closest_marker("slow"):
            item.add_marker("cuda_fake")
    if share := config.getoption("--share"):
        number, shares = map(int, share.split("/"))
        others = [item for item in items if zlib.crc32(item.nodeid.encode()) % shares != number]
        config.hook.pytest_deselected(items=others)
        left_out = set(others)
        items[:] = [item for item in items if item not in left_out]


def emulate():
    """Have the device "cuda" be an emulated one; opened on first use."""
    from edbatch.kernels.cuda import backend

    def open_backend(number):
        from tests.emulated.driver import EmulatedDriver

        if libraries.COMPILER is None:
            pytest.skip("no C++ compiler on this machine, to emulate a GPU")
        return backend.CudaBackend(EmulatedDriver(number))

    backend.open_backend = open_backend


@pytest.fixture(scope="session")
def cuda():
    """A GPU: a real one with `--device cuda`, otherwise emulated or faked."""
    device = eb.device("cuda")
    device.backend  # noqa: B018 (or skip)
    return device


@pytest.fixture(autouse=True)
def recordings_of_this_test():
    """Whether recording pays is judged in each test by itself: a warning must not depend on what ran before."""
    backend = vars(eb.device("cuda")).get("backend")  # if it was opened
    if backend is not None:
        backend.recordings = Recordings(backend._driver)


@pytest.fixture(autouse=True)
def kernels_are_right():
    """Nothing was found wrong with kernels on the emulated GPU."""
    yield
    assert not (found := libraries.reports()), "\n".join(found)


@pytest.fixture(autouse=True)
def cells_and_numbers_of_this_test():
    """So is whether cells are made anew too often, or numbers in types are others: tests of all ops try many."""
    errors._counted.clear()
    made_anew._made.clear()


@pytest.fixture(autouse=True)
def nothing_stays_open():
    """What a test leaves open would be in force in those that follow it."""
    yield
    left = graphs.innermost()
    end_blocks()  # once is enough to say it
    assert left is None
    assert current_options() == Options()
