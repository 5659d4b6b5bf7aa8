"""Kernels as CUDA C++: NVRTC compiles them for every GPU, and a C++ compiler shows that they mean what NumPy means."""

import ctypes
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edbatch as eb
from edbatch.graph.op import OPS
from edbatch.kernels.cuda.geometry import parts, spread
from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.cuda_functions import function
from edbatch.kernels.language.functions import FUNCTIONS
from edbatch.kernels.language.given import filled
from edbatch.kernels.language.ir import NEXT, SAME, Compute, Constant, Kernel, Load, LoadAt, Place, Store
from edbatch.models.gru import GRU
from edbatch.models.lstm import LSTM
from edbatch.models.tree_lstm import TreeLSTM
from edbatch.runtime.compile import fused_steps
from tests.emulated.driver import EmulatedDriver, run_thread
from tests.emulated.libraries import with_cpp
from tests.kernels import nvrtc
from tests.kernels.language.calls import geometries, launch, module_of, of_function, on_cpu, on_gpu
from tests.kernels.language.interpreter import Call, Rows, interpret
from tests.kernels.language.random_kernels import Maker
from tests.kernels.language.random_kernels import given as words_of
from tests.kernels.language.test_llvm import check, softmax

with_nvrtc = pytest.mark.skipif(sys.platform == "darwin", reason="NVIDIA makes no compiler for macOS")


def lstm(model):
    return LSTM(model, 3, 4).initial_state().add_input(eb.ones(3)).output()


def gru(model):
    return GRU(model, 3, 4).initial_state().add_input(eb.ones(3)).output()


def tree_lstm(model):
    return TreeLSTM(model, 9, 5, 4).hidden([3, 7, None], [(), (), (0, 1)])[-1]


@pytest.fixture(scope="module")
def cells():
    """The kernels of real cells, by name."""
    found = {}
    for forward in (lstm, gru, tree_lstm):
        before = len(found)

        def note(*fields, name=forward.__name__, **named):
            kernel = Kernel(*fields, **named)
            if not any(isinstance(one, LoadAt) for one in kernel.instructions):  # a look-up: at a row that is given
                found[f"{name}{len(found)}"] = kernel
            return kernel

        model = eb.ParameterCollection(seed=0)
        with pytest.MonkeyPatch.context() as patch, eb.Graph():
            patch.setattr(fused_steps, "Kernel", note)
            forward(model).value()
        assert len(found) > before
    return found


def every_op():
    """Of every element-wise op and sample of the op table."""
    found = {}
    for op in OPS.values():
        for at, sample in enumerate(op.samples if op.scalar and not op.payload else ()):
            make = Builder()
            operands = [make.add(Load(place, (NEXT,))) for place in range(len(sample.shapes))]
            numbers = {name: make.number(value) for name, value in sample.attributes.items()}
            value = make.expression(op.scalar, **dict(zip("xyz", operands, strict=False)), **numbers)
            places = (Place(),) * (len(operands) + 1)
            found[f"{op.name}_{at}"] = Kernel(1, 0, places, make.instructions, (Store(value, len(operands), (NEXT,)),))
    return found


@with_nvrtc
@pytest.mark.parametrize("capability", [70, 80, 90, 100])
def test_nvrtc_compiles(capability, cells):
    if capability not in nvrtc.supported():
        pytest.skip(f"this NVRTC does not compile for sm_{capability}")
    ptx, cubin = nvrtc.compile_for(capability, module_of({**every_op(), **cells}))
    assert ".visible .entry tanh_0(" in ptx
    assert not re.search(r"div\.[su]64", ptx)  # slow
    assert cubin.startswith(b"\x7fELF")


@with_nvrtc
@pytest.mark.parametrize("capability", [70, 100])
def test_nvrtc_compiles_random_kernels(capability):
    """Without a warning."""
    if capability not in nvrtc.supported():
        pytest.skip(f"this NVRTC does not compile for sm_{capability}")
    makers = [Maker(np.random.default_rng(seed), dtype=("float32", "float64")[seed % 2]) for seed in range(20)]
    nvrtc.compile_for(capability, module_of({f"kernel{at}": maker.make()[0] for at, maker in enumerate(makers)}))


@with_nvrtc
def test_divisions_and_roots_are_exact():
    ptx, _ = nvrtc.compile_for(80, module_of({f"{name}_": of_function(name) for name in ("sqrt", "divide")}))
    assert "sqrt.rn.ftz.f32" in ptx
    assert "div.rn.ftz.f32" in ptx


@with_nvrtc
@pytest.mark.parametrize("capability", [80, 90, 100])
def test_cells_read_all_at_once(capability, cells):
    """No branch comes between what is read and what is written: the processor would wait for each part by itself."""
    for name, kernel in cells.items():
        source = module_of({"kernel": kernel})
        ptx, _ = nvrtc.compile_for(capability, source)
        body = ptx[ptx.index("ld.global.f32") : ptx.rindex("st.global.f32")]
        assert not re.search(r"bra|\$L|(div|rcp)\.rn", body), name  # the last two have branches of their own
        found = nvrtc.resources(capability, source)["kernel"]
        assert (found.stack, found.spilled, found.shared) == (0, 0, 0)
        assert found.registers <= 40  # 48 warps a processor of 64


@with_cpp
@pytest.mark.parametrize("first", [0, 20, 40])
def test_random_kernels(first):
    """For groups, whatever the number of threads."""
    cases = {}
    for seed in range(first, first + 20):
        dtype = ("float32", "float64")[seed % 2]
        cases[f"kernel{seed}"] = (*Maker(np.random.default_rng(seed), seed % 3 > 0, dtype).make(), seed % 3 > 0)
    handles = EmulatedDriver().load(module_of({name: kernel for name, (kernel, _, _) in cases.items()}), list(cases))
    for handle, (kernel, call, exact) in zip(handles, cases.values(), strict=True):
        for grid, block in geometries(kernel, call):

            def run(kernel, call, handle=handle, grid=grid, block=block):
                words, _ = words_of(kernel, call)
                launch(handle, call.n, words, grid, block)

            check(kernel, call, run, exact)


@with_cpp
def test_softmax():
    random = np.random.default_rng(0)
    x = random.normal(size=(5, 203)).astype(np.float32)
    (handle,) = EmulatedDriver().load(module_of({"softmax": softmax()}), ["softmax"])
    for lanes, together in ((1, 4), (32, 8), (256, 1)):
        out = np.zeros_like(x)
        words = filled(softmax(), [203], [(x.ctypes.data, 812, 0), (out.ctypes.data, 812, 0)])
        launch(handle, 5, words, (2, 1, 1), (lanes, together))
        power = np.exp(x - x.max(1, keepdims=True).astype(np.float64))
        np.testing.assert_allclose(out, power / power.sum(1, keepdims=True), rtol=2e-6)


@with_cpp
def test_cells_mean_what_they_mean_on_the_cpu(cells):
    random = np.random.default_rng(1)
    handles = EmulatedDriver().load(module_of(cells), list(cells))
    for handle, (name, kernel) in zip(handles, cells.items(), strict=True):
        wide = call_of_cell(kernel, random)
        on_host, on_device = (
            replace(wide, places=[replace(rows, memory=rows.memory.astype(np.float32)) for rows in wide.places])
            for _ in range(2)
        )
        interpret(replace(kernel, dtype="float64"), wide)
        on_cpu(kernel, on_host)
        launch(handle, on_device.n, words_of(kernel, on_device)[0], *geometries(kernel, on_device)[0])
        for want, cpu, gpu in zip(wide.places, on_host.places, on_device.places, strict=True):
            np.testing.assert_allclose(gpu.memory, want.memory, rtol=2e-6, atol=1e-6, err_msg=name)
            np.testing.assert_allclose(cpu.memory, want.memory, rtol=3e-6, atol=1e-6, err_msg=name)


def call_of_cell(kernel, random, n=3, size=5):
    """Rows in which each column is a value of its own."""
    width = size * kernel.columns
    places = [Rows(random.uniform(0.1, 2, n * width), 0, width) for _ in kernel.places]
    return Call(n, [size], places, columns=[size * number for number in range(kernel.columns)])


def grids(n, size):
    """Those that have a thread for each entry, and more: see `geometry.spread`."""
    found = [spread(n, size)]
    for along, down in [(1, 1), (4, 2), (16, 3), (64, 4)]:
        columns = parts(size, along)
        found += [(parts(n, down) + more, parts(columns, 1 + more), 1 + more, along, down) for more in range(3)]
    return found


@with_cpp
@pytest.mark.parametrize(("n", "size"), [(1, 1), (7, 1), (1, 50), (7, 13), (0, 3)])
def test_every_entry_is_computed_once(n, size):
    """In place, so that an entry computed twice shows; a number a row, and a row for all."""
    make = Builder()
    x, row, shared = make.add(Load(0, (NEXT,))), make.add(Load(1, (SAME,))), make.add(Load(2, (NEXT,)))
    value = make.compute("add", make.compute("add", x, row), shared)
    count = Kernel(1, 0, (Place(),) * 3, make.instructions, (Store(value, 0, (NEXT,)),))
    for geometry in grids(n, size):
        x = np.zeros((n, size), np.float32)
        rows = np.arange(n, dtype=np.float32)[:, None]
        shared = np.arange(size, dtype=np.float32)[None]
        on_gpu(count, n, size, x, rows, shared, geometry=geometry)
        np.testing.assert_array_equal(x, rows + shared)


@with_cpp
@given(st.integers(0, 9), st.integers(1, 20), st.integers(0, 2**32))
@settings(deadline=None)
def test_rows_are_read_and_written_where_lists_say(n, size, seed):
    """A list each, or none, and a number a row."""
    random = np.random.default_rng(seed)
    make = Builder()
    x, y, z = make.add(Load(0, (NEXT,))), make.add(Load(1, (NEXT,))), make.add(Load(2, (SAME,)))
    value = make.compute("subtract", make.compute("multiply", x, y), z)
    kernel = Kernel(1, 0, (Place(),) * 4, make.instructions, (Store(value, 3, (NEXT,)),))
    held = 12
    arrays = [random.normal(size=(held, width)).astype(np.float32) for width in (size, size, 1, size)]
    lists = [random.integers(0, held, n).astype(np.int32) if random.random() < 0.6 else None for _ in range(3)]
    lists.append(random.permutation(held)[:n].astype(np.int32))
    wanted = arrays[3].copy()
    x, y, z = (array[:n] if rows is None else array[rows] for array, rows in zip(arrays, lists[:3], strict=False))
    wanted[lists[3]] = x * y - z
    on_gpu(kernel, n, size, *zip(arrays, lists, strict=True))
    np.testing.assert_array_equal(arrays[3], wanted)


@with_cpp
def test_positions_beyond_32_bits():
    """The only row and the only entry left are beyond 2^32; the arrays' addresses make up for it."""
    steps = (Load(0, (NEXT,)), Compute("add", (0, 0)))
    kernel = Kernel(1, 0, (Place(), Place()), steps, (Store(1, 1, (NEXT,)),))
    (handle,) = EmulatedDriver().load(module_of({"kernel": kernel}), ["kernel"])
    x, out = np.full(1, 21, np.float32), np.zeros(1, np.float32)
    n = size = 2**32 + 1
    stride = 2**20
    first = (n - 1) * stride + (size - 1)  # row and entry 2^32
    words = filled(kernel, [size], [(array.ctypes.data - 4 * first, 4 * stride, 0) for array in (x, out)])
    grid, block = (2**31 - 1, 65535, 65535), (4, 4)
    thread = 2**30, 2**30 % 65535, 2**30 // 65535  # of blocks: row and entry 2^32
    run_thread(handle, grid, block, thread, (0, 0), n, words_as_structure(words))
    assert out[0] == 42


def words_as_structure(words):
    class Given(ctypes.Structure):
        _fields_ = [("v", ctypes.c_longlong * len(words))]

    return Given((ctypes.c_longlong * len(words))(*words.tolist()))


@with_cpp
@pytest.mark.parametrize("value", [0.1, -0.0, 1e-45, 3.4028235e38, -np.inf, 16777217.0, 1e-50])
def test_numbers_are_exact(value):
    kernel = Kernel(1, 0, (Place(),), (Constant(float(value).hex()),), (Store(0, 0, (NEXT,)),))
    out = np.zeros((1, 2), np.float32)
    on_gpu(kernel, 1, 2, out)
    want = np.float32(value)
    assert set(out.view(np.int32).ravel().tolist()) == {int(want.view(np.int32))}


def test_every_function_has_a_spelling():
    for name, known in FUNCTIONS.items():
        for dtype in ("float32", "float64"):
            assert function(name, [f"v{at}" for at in range(len(known.arguments))], dtype)
