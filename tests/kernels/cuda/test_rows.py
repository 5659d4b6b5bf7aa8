"""The kernels that are written by hand: NVRTC compiles them for every GPU, and on the CPU they compute what NumPy computes."""

import ctypes
import math
import re
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edbatch.kernels.cuda.source import rows as rows_source
from tests.emulated.arrays import plain
from tests.emulated.driver import EmulatedDriver, with_cpp
from tests.kernels import nvrtc

with_nvrtc = pytest.mark.skipif(sys.platform == "darwin", reason="NVIDIA makes no compiler for macOS")

FOR_BOTH = [
    "softmax", "cross_entropy", "cross_entropy_gradient", "segment_reduce", "add_rows", "add_grouped", "add_all",
    "error_function",
]  # fmt: skip
NAMES = ["gather", *(f"{name}_{number}" for name in FOR_BOTH for number in ("float", "double"))]
DTYPES = {"float": np.float32, "double": np.float64}
ANY_BLOCK = [((1, 1, 1), (1, 1)), ((3, 1, 1), (48, 1)), ((2, 3, 1), (8, 5)), ((1, 2, 1), (256, 1))]
TOGETHER = [((1, 1), (1, 7)), ((2, 3), (8, 5)), ((3, 1), (8, 32)), ((1, 2), (1, 256)), ((9, 9), (2, 2))]
WARPS = [((1, 1, 1), (32, 1)), ((3, 1, 1), (32, 4)), ((2, 1, 1), (96, 2)), ((7, 1, 1), (256, 1))]
numbers = st.sampled_from(["float", "double"])
seeds = st.integers(0, 2**32 - 1)
EXTREMES = np.array([-np.inf, np.inf, np.nan, -0.0, 1e30])


@pytest.fixture(scope="module")
def ptx():
    """From a compute capability to the PTX of all kernels."""
    made = {}

    def of(capability):
        if capability not in made:
            made[capability] = nvrtc.compile_for(capability, rows_source())
        return made[capability]

    return of


@with_nvrtc
@pytest.mark.parametrize("capability", [70, 80, 90, 100])
def test_nvrtc_compiles(ptx, capability):
    if capability not in nvrtc.supported():
        pytest.skip(f"this NVRTC does not compile for sm_{capability}")
    text, cubin = ptx(capability)
    assert sorted(re.findall(r"\.visible \.entry (\w+)\(", text)) == sorted(NAMES)
    assert ".local" not in text  # memory of a thread's own, for what registers cannot hold
    assert not re.search(r"(div|rem)\.[su]64", text)  # slow
    assert cubin.startswith(b"\x7fELF")


@with_nvrtc
def test_gather_moves_16_bytes_at_once_and_looks_up_nothing_twice(ptx):
    text, _ = ptx(80)
    of_gather = text[text.index(".entry gather(") :]
    of_gather = of_gather[: of_gather.index("\n}")]
    assert re.search(r"ld\.global(\.nc)?\.v4\.[bu]32", of_gather)
    assert re.search(r"st\.global\.v4\.[bu]32", of_gather)
    assert re.search(r"ld\.global(\.nc)?\.[bu]32", of_gather)
    assert not re.search(r"(div|rem)\.[su](32|64)", of_gather)  # slow


@with_nvrtc
@pytest.mark.parametrize("capability", [80, 90, 100])
def test_no_kernel_spills_and_all_can_be_launched(capability):
    for name, found in nvrtc.resources(capability, rows_source()).items():
        assert (found.stack, found.spilled) == (0, 0), name
        assert found.registers * (1024 if name.startswith("add_all") else 256) <= 65536, name
        assert found.registers <= (48 if name.endswith("float") else 80), name
        assert found.shared <= (8192 if name.startswith("add_all") else 2048), name


@with_nvrtc
@pytest.mark.parametrize("number", ["float", "double"])
@pytest.mark.parametrize("name", ["softmax", "cross_entropy", "segment_reduce", "add_grouped", "add_all"])
def test_loops_read_four_numbers_at_once(ptx, name, number):
    """With no branch between, at which the processor would wait for each."""
    text = ptx(80)[0].split(f".entry {name}_{number}(")[1]
    pieces = re.split(r"\n\$L.*:|\bbra\b", text[: text.index("\n}")])
    assert max(len(re.findall(rf"ld\.global(?:\.nc)?\.f{32 if number == 'float' else 64}", x)) for x in pieces) >= 4


@with_nvrtc
def test_parameters_have_8_bytes(ptx):
    for entry, parameters in re.findall(r"\.visible \.entry (\w+)\((.*?)\)", ptx(80)[0], re.DOTALL):
        if entry == "gather":
            assert re.search(r"\.b8 \w+\[1024\]", parameters)
        else:
            assert set(re.findall(r"\.param \.(\w+)", parameters)) <= {"u64", "b64"}, entry


class Move(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_longlong)
        for name in ("source", "source_stride", "rows", "positions", "n", "target", "target_stride", "width")
    ]


Moves = Move * 16


class Parameter(ctypes.Structure):
    _fields_ = [("move", Moves)]


@pytest.fixture(scope="module")
def gpu():
    return Gpu()


class Gpu:
    """All of them, by name."""

    def __init__(self):
        self.driver = EmulatedDriver()
        self.kernels = dict(zip(NAMES, self.driver.load(rows_source(), NAMES), strict=True))

    def run(self, name, geometry, *parameters):
        self.driver.run(self.kernels[name], *geometry, *parameters)
        self.driver.synchronize()

    def array(self, values, skip=0):
        """A copy in its memory, that begins `skip` entries beyond a multiple of 256 bytes; NaN behind the last."""
        values = np.asarray(values)
        array = plain(self.driver.empty(values.size + skip, values.dtype))[skip:]
        array[:] = values.ravel()
        return array

    def matrix(self, random, shape, stride, dtype, skip=0):
        """Random rows `stride` entries apart, as a view, and the memory that they lie in."""
        n = shape[0]
        memory = plain(self.driver.empty(max(n * stride, 1) + skip, dtype))[skip:]
        rows = np.lib.stride_tricks.as_strided(memory, shape, (stride * memory.itemsize, memory.itemsize))
        rows[:] = random.normal(size=shape)
        return rows, memory

    def indices(self, random, below, count):
        return self.array(random.integers(0, below, count).astype(np.int32))


def unchanged_but(memory, before, view):
    """Memory between the rows of a view is as it was."""
    view[:] = 0
    after = memory.copy()
    memory[:] = before
    view[:] = 0
    np.testing.assert_array_equal(after, memory)


def some_or_none(random, gpu, below, count):
    return gpu.indices(random, below, count) if random.random() < 0.6 else None


@st.composite
def moves(draw):
    """A move: rows, width, distances between rows and skipped words of source and target; whether there are lists."""
    odd = draw(
        st.sampled_from([None, *range(5)])
    )  # all but this one are multiples of 16 bytes: then, none may be moved

    def words(number, low):
        return low + -low % 4 + 4 * draw(st.integers(0, 3)) + (draw(st.integers(1, 3)) if number == odd else 0)

    width = words(0, draw(st.integers(1, 280)))
    distances = words(1, width), words(2, width)
    return (
        draw(st.integers(0, 12)),
        width,
        distances,
        (words(3, 0), words(4, 0)),
        draw(st.booleans()),
        draw(st.booleans()),
    )


@with_cpp
@given(st.lists(moves(), min_size=1, max_size=16), st.sampled_from(ANY_BLOCK), seeds)
def test_gather(gpu, drawn, geometry, seed):
    """To the bit, and nothing else is written."""
    random = np.random.default_rng(seed)
    (x, z, _), block = geometry
    parameter = Parameter()
    wanted, kept = [], []
    for move, (n, width, (stride, target_stride), (skip, target_skip), listed, placed) in zip(
        parameter.move, drawn, strict=False
    ):
        held = 9 if listed else max(n, 1)
        source = gpu.array(random.integers(-(2**31), 2**31, held * stride).astype(np.int32), skip)
        rows = gpu.indices(random, held, n) if listed else None
        positions = gpu.array(random.permutation(n + 3)[:n].astype(np.int32)) if placed else None
        target = gpu.array(np.full((n + 3) * target_stride, -7, np.int32), target_skip)
        want = target.reshape(-1, target_stride).copy()
        read = source.reshape(-1, stride)[:n] if rows is None else source.reshape(-1, stride)[rows]
        want[slice(n) if positions is None else positions, :width] = read[:, :width]
        lists = (0 if x is None else x.ctypes.data for x in (rows, positions))
        move.__init__(source.ctypes.data, stride, *lists, n, target.ctypes.data, target_stride, width)
        wanted.append((target, want.ravel()))
        kept.append((source, rows, positions))
    gpu.run("gather", ((x, len(drawn), z), block), parameter)
    for target, want in wanted:
        np.testing.assert_array_equal(target, want)


@with_cpp
def test_gather_of_one_row_for_all(gpu):
    row, target = gpu.array(np.arange(8, dtype=np.int32)), gpu.array(np.zeros(40, np.int32))
    parameter = Parameter()
    parameter.move[0] = Move(row.ctypes.data, 0, 0, 0, 5, target.ctypes.data, 8, 8)
    gpu.run("gather", ((2, 1), (64,)), parameter)
    np.testing.assert_array_equal(target.reshape(5, 8), np.tile(np.arange(8), (5, 1)))


def with_extremes(random, x):
    """Some rows get NaN and infinities."""
    for i in range(len(x)):
        if random.random() < 0.3:
            x[i, random.integers(0, x.shape[1], 2)] = random.choice(EXTREMES, 2)


def exactness(number):
    return {"rtol": 4e-6, "atol": 2e-6} if number == "float" else {"rtol": 1e-13, "atol": 1e-13}


rows_of_classes = given(
    numbers, st.integers(0, 9), st.integers(1, 300), st.integers(0, 5), st.sampled_from(WARPS), st.booleans(), seeds
)


@with_cpp
@settings(max_examples=60)
@rows_of_classes
def test_softmax(gpu, number, n, width, room, geometry, logarithm, seed):
    random = np.random.default_rng(seed)
    x, _ = gpu.matrix(random, (n, width), width + room, DTYPES[number], skip=room)
    x *= random.choice([1, 30, 1e4])
    with_extremes(random, x)
    out, memory = gpu.matrix(random, (n, width), width + 2, DTYPES[number])
    before = memory.copy()
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        wide -= wide.max(1, keepdims=True)
        wanted = (
            wide - np.log(np.exp(wide).sum(1, keepdims=True)) if logarithm
            else np.exp(wide) / np.exp(wide).sum(1, keepdims=True)
        )  # fmt: skip
    where = (n, x, width + room, out, width + 2, width, int(logarithm))
    gpu.run(f"softmax_{number}", geometry, *where)
    np.testing.assert_allclose(out, wanted, **exactness(number))
    gpu.run(f"softmax_{number}", geometry, n, x, width + room, x, width + room, width, int(logarithm))  # in place
    np.testing.assert_array_equal(x, out)
    unchanged_but(memory, before, out)


@with_cpp
@settings(max_examples=60)
@rows_of_classes
def test_cross_entropy_and_its_gradient(gpu, number, n, width, room, geometry, one_slope, seed):
    random = np.random.default_rng(seed)
    dtype = DTYPES[number]
    x, _ = gpu.matrix(random, (n, width), width + room, dtype, skip=room)
    x *= random.choice([1, 30, 1e4])
    with_extremes(random, x)
    labels = gpu.indices(random, width, n)
    out, memory = gpu.matrix(random, (n, 1), 1 + room, dtype)
    before = memory.copy()
    at = np.arange(n), labels
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        wide -= wide.max(1, keepdims=True)
        loss = np.log(np.exp(wide).sum(1)) - wide[at]
        slopes = np.exp(wide) / np.exp(wide).sum(1, keepdims=True)
        slopes[at] -= 1
    gpu.run(f"cross_entropy_{number}", geometry, n, x, width + room, labels, out, 1 + room, width)
    np.testing.assert_allclose(out[:, 0], loss, **exactness(number))
    unchanged_but(memory, before, out)

    g, _ = gpu.matrix(random, (1 if one_slope else n, 1), 3, dtype)
    out, memory = gpu.matrix(random, (n, width), width + room, dtype)
    before = memory.copy()
    gpu.run(
        f"cross_entropy_gradient_{number}", geometry,
        n, x, width + room, labels, g, 0 if one_slope else 3, out, width + room, width
    )  # fmt: skip
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(out, g * slopes, **exactness(number))
    unchanged_but(memory, before, out)


def of_segments(random, gpu, n, most=3):
    """Offsets, some segments empty."""
    return gpu.array(np.cumsum(np.r_[0, random.integers(0, random.integers(1, most + 2), n)]).astype(np.int32) + 2)


rows_of_numbers = given(
    numbers, st.integers(0, 9), st.integers(1, 70), st.integers(0, 5), st.sampled_from(ANY_BLOCK), seeds
)


@with_cpp
@pytest.mark.parametrize("kind", [0, 1, 2])
@given(
    numbers, st.integers(0, 9), st.integers(1, 70), st.integers(0, 5),
    st.sampled_from([x for x in ANY_BLOCK if x[1][1] == 1]), seeds
)  # fmt: skip
def test_segment_reduce(gpu, kind, number, n, width, room, geometry, seed):
    """In order: to the bit what NumPy gets, one after the other."""
    random = np.random.default_rng(seed)
    dtype = DTYPES[number]
    offsets = of_segments(random, gpu, n, most=9)
    rows = some_or_none(random, gpu, 5, offsets[-1])
    source, _ = gpu.matrix(random, (5 if rows is not None else offsets[-1], width), width + room, dtype, skip=room)
    with_extremes(random, source)
    out, memory = gpu.matrix(random, (n, width), width + 1, dtype)
    before = memory.copy()
    wanted = np.full((n, width), [0, -np.inf, np.inf][kind], dtype)
    with np.errstate(all="ignore"):
        for i in range(n):
            for k in range(offsets[i], offsets[i + 1]):
                row = source[k if rows is None else rows[k]]
                wanted[i] = [np.add, np.maximum, np.minimum][kind](wanted[i], row)
    gpu.run(f"segment_reduce_{number}", geometry, n, offsets, rows, source, width + room, out, width + 1, width, kind)
    np.testing.assert_array_equal(out, wanted)
    unchanged_but(memory, before, out)


@with_cpp
@given(
    numbers, st.integers(0, 9), st.integers(1, 20), st.integers(0, 5), st.sampled_from(TOGETHER), st.integers(0, 4),
    seeds
)  # fmt: skip
def test_lists_that_threads_reduce_together(gpu, number, n, width, room, geometry, kind, seed):
    """What one thread gets, but for the order of sums; and the same again."""
    random = np.random.default_rng(seed)
    dtype = DTYPES[number]
    offsets = of_segments(random, gpu, n, most=300)
    rows = some_or_none(random, gpu, 5, offsets[-1])
    source, _ = gpu.matrix(random, (5 if rows is not None else offsets[-1], width), width + room, dtype, skip=room)
    with_extremes(random, source)
    out, memory = gpu.matrix(random, (n, width), width + 1, dtype)
    before = memory.copy()
    found = []
    for way in (geometry, geometry, ((1, 1), (1, 1))):
        gpu.run(f"segment_reduce_{number}", way, n, offsets, rows, source, width + room, out, width + 1, width, kind)
        found.append(out.copy())
    np.testing.assert_array_equal(found[0], found[1])
    if kind in (1, 2):
        np.testing.assert_array_equal(found[0], found[2])
    else:
        rtol, atol = (1e-5, 1e-4) if number == "float" else (1e-13, 1e-12)  # numbers of both signs
        np.testing.assert_allclose(found[0], found[2], rtol, atol)
    unchanged_but(memory, before, out)


@with_cpp
@pytest.mark.parametrize("number", ["float", "double"])
def test_means_and_logarithms_of_sums_of_lists(gpu, number):
    random = np.random.default_rng(0)
    source, _ = gpu.matrix(random, (9, 3), 3, DTYPES[number])
    source[:4, 0] = -np.inf, -np.inf, 1000, -np.inf
    source[:3, 1] = np.inf, -np.inf, np.nan
    offsets = gpu.array(np.array([0, 2, 3, 9], np.int32))
    rows = gpu.array(random.permutation(9).astype(np.int32))
    for listed in (None, rows):
        lists = np.split(source if listed is None else source[listed], offsets[1:-1])
        with np.errstate(all="ignore"):
            wanted = [[x.mean(axis=0) for x in lists], [np.logaddexp.reduce(x, axis=0) for x in lists]]
        for kind, want in zip((3, 4), wanted, strict=True):
            out = gpu.array(np.zeros((3, 3), DTYPES[number])).reshape(3, 3)
            gpu.run(f"segment_reduce_{number}", ((1, 1), (32, 1)), 3, offsets, listed, source, 3, out, 3, 3, kind)
            np.testing.assert_allclose(out, want, rtol=1e-6 if number == "float" else 1e-14)


@with_cpp
@rows_of_numbers
def test_add_rows(gpu, number, n, width, room, geometry, seed):
    random = np.random.default_rng(seed)
    dtype = DTYPES[number]
    positions = some_or_none(random, gpu, 5, n)
    rows = gpu.array(random.permutation(n + 3)[:n].astype(np.int32)) if random.random() < 0.6 else None
    source, _ = gpu.matrix(random, (max(n, 5), width), width + room, dtype, skip=room)
    target, memory = gpu.matrix(random, (n + 3, width), width + 1, dtype)
    before, wanted = memory.copy(), target.copy()
    wanted[slice(n) if rows is None else rows] += source[slice(n) if positions is None else positions]
    gpu.run(f"add_rows_{number}", geometry, n, source, width + room, positions, rows, target, width + 1, width)
    np.testing.assert_array_equal(target, wanted)
    unchanged_but(memory, before, target)


@with_cpp
@rows_of_numbers
def test_add_grouped(gpu, number, n, width, room, geometry, seed):
    """In order: to the bit what NumPy's add.at gets."""
    random = np.random.default_rng(seed)
    dtype = DTYPES[number]
    offsets = of_segments(random, gpu, n)
    members = some_or_none(random, gpu, 5, offsets[-1])
    rows = gpu.array(random.permutation(n + 3)[:n].astype(np.int32)) if random.random() < 0.6 else None
    source, _ = gpu.matrix(random, (5 if members is not None else offsets[-1], width), width + room, dtype, skip=room)
    target, memory = gpu.matrix(random, (n + 3, width), width + 1, dtype)
    before, wanted = memory.copy(), target.copy()
    used = np.arange(offsets[0], offsets[-1])
    owners = np.repeat(np.arange(n) if rows is None else rows, np.diff(offsets))
    np.add.at(wanted, owners, source[used if members is None else members[used]])
    gpu.run(
        f"add_grouped_{number}", geometry,
        n, offsets, members, rows, source, width + room, target, width + 1, width
    )  # fmt: skip
    np.testing.assert_array_equal(target, wanted)
    unchanged_but(memory, before, target)


@with_cpp
@given(
    numbers, st.integers(0, 40), st.integers(1, 70), st.integers(0, 5),
    st.sampled_from([((1,), (1, 1)), ((2,), (32, 5)), ((1,), (16, 7)), ((3,), (32, 32))]), seeds
)  # fmt: skip
def test_add_all(gpu, number, n, width, room, geometry, seed):
    random = np.random.default_rng(seed)
    source, _ = gpu.matrix(random, (n, width), width + room, DTYPES[number], skip=room)
    target, memory = gpu.matrix(random, (1, width), width + 1, DTYPES[number])
    before = memory.copy()
    wanted = target + source.astype(np.float64).sum(0)
    gpu.run(f"add_all_{number}", geometry, n, source, width + room, target, width)
    np.testing.assert_allclose(target, wanted, **exactness(number))
    again = target.copy()
    memory[:] = before
    gpu.run(f"add_all_{number}", geometry, n, source, width + room, target, width)
    np.testing.assert_array_equal(target, again)
    unchanged_but(memory, before, target)


@with_cpp
@pytest.mark.parametrize("number", ["float", "double"])
def test_error_function(gpu, number):
    x = gpu.array(np.concatenate([np.linspace(-4, 4, 41), EXTREMES]).astype(DTYPES[number]))
    out = gpu.array(np.zeros_like(x))
    gpu.run(f"error_function_{number}", ((2, 1), (8, 1)), len(x), x, out)
    np.testing.assert_allclose(out, [math.erf(value) for value in x], rtol=1e-6 if number == "float" else 1e-15)
