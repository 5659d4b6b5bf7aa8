"""CUDA source: NVRTC compiles it for every GPU, and a C++ compiler shows that it means what the Numba kernel means."""

import contextlib
import ctypes
import itertools
import math
import re
import sys

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numba.core.dispatcher import Dispatcher

import edbatch as eb
from edbatch.graph.op import COMMON_FUNCTIONS, OPS
from edbatch.kernels import fused, scalars
from edbatch.kernels.cuda.fused import FUNCTIONS, cuda_expression, module_of
from edbatch.kernels.cuda.geometry import parts, spread
from edbatch.kernels.pointers import call_kernel
from edbatch.kernels.recipe import Compute, Load, Recipe, Store, constant, with_attributes
from edbatch.models.gru import GRU
from edbatch.models.lstm import LSTM
from edbatch.models.tree_lstm import TreeLSTM
from edbatch.runtime import fused_steps
from tests.emulated.driver import EmulatedDriver, core, run_thread, with_cpp
from tests.kernels import nvrtc

with_nvrtc = pytest.mark.skipif(sys.platform == "darwin", reason="NVIDIA makes no compiler for macOS")


def scalars_of(functions):
    """The scalars of ops that call no others than these functions."""
    return sorted(
        {
            (op.name, with_attributes(op.scalar, tuple(sample.attributes.items())), len(sample.shapes))
            for op in OPS.values()
            if op.scalar and op.functions <= functions
            for sample in op.samples
        }
    )


SCALARS = scalars_of(set(FUNCTIONS))


def of_expressions(expressions, arguments):
    """Values of the arguments, which lie side by side in a row, by column."""
    loads = tuple(Load(0, column) for column in range(arguments))
    computes = tuple(Compute(text, tuple(range(arguments))) for text in expressions)
    stores = tuple(Store(arguments + at, 1, at) for at in range(len(expressions)))
    return Recipe(2, loads + computes, stores)


EVERY_OP = of_expressions([scalar for _, scalar, _ in SCALARS], 2)
EVERY_OP_ON_NUMBA = of_expressions([scalar for _, scalar, _ in scalars_of(fused.FUNCTIONS)], 2)


def lstm(model):
    return LSTM(model, 3, 4).initial_state().add_input(eb.ones(3)).output()


def gru(model):
    return GRU(model, 3, 4).initial_state().add_input(eb.ones(3)).output()


def tree_lstm(model):
    return TreeLSTM(model, 9, 5, 4).hidden([3, 7, None], [(), (), (0, 1)])[-1]


@pytest.fixture(scope="module")
def cells():
    """The recipes of real cells: (name, recipe)."""
    found = []
    for forward in (lstm, gru, tree_lstm):
        before = len(found)

        def note(*fields, name=forward.__name__):
            found.append((name, Recipe(*fields)))
            return found[-1][1]

        model = eb.ParameterCollection(seed=0)
        with pytest.MonkeyPatch.context() as patch, eb.Graph():
            patch.setattr(fused_steps, "Recipe", note)
            forward(model).value()
        assert len(found) > before
    return found


def launch(recipe, n, d, places, geometry=None):
    """Run a recipe's kernel on the CPU; a place is (address of its first row, distance between rows, rows or None)."""
    driver = EmulatedDriver()
    (kernel,) = driver.load(module_of({"kernel": recipe}), ["kernel"])
    x, y, z, *block = geometry or spread(n, d)
    driver.run(kernel, (x, y, z), block, n, d, *itertools.chain(*places))


def of_floats(*arrays):
    """Places that are the rows of matrices; one row of a matrix with one row is for all."""
    return [(array.ctypes.data, array.shape[1] if len(array) > 1 else 0, None) for array in arrays]


def on_the_cpu(recipe, n, d, *arrays):
    places = np.array([place[:2] for place in of_floats(*arrays)], np.int64)
    call_kernel(fused.address(recipe), n, d, places.ctypes.data)


def evaluated(recipe, n, d, arrays, number, functions):
    """What a kernel has to write: Python's own reading of the scalars, entry by entry, on numbers of type `number`."""
    for i, j in itertools.product(range(n), range(d)):
        rows = [array[i if len(array) > 1 else 0] for array in arrays]
        values = []
        for step in recipe.instructions:
            if isinstance(step, Load):
                values.append(number(rows[step.rows][0 if step.column is None else step.column * d + j]))
                continue
            operands = [f"v[{x}]" if isinstance(x, int) else x for x in step.operands]
            values.append(eval(step.scalar.format(*operands), {"v": values, "float32": number, **functions}))
        for store in recipe.stores:
            rows[store.rows][store.column * d + j] = values[store.value]


FLOAT64 = {
    "abs": abs,
    "cos": np.cos,
    "erf": math.erf,
    "erfc": math.erfc,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": np.power,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
}


def operands_of(recipe, n, d, random):
    """Arrays for a recipe's places: inputs in [0.1, 2), outputs NaN; entries that nothing writes must stay."""
    widths = [1] * recipe.places
    for step in (*recipe.instructions, *recipe.stores):
        if not isinstance(step, Compute) and step.column is not None:
            widths[step.rows] = max(widths[step.rows], (step.column + 1) * d)
    written = {store.rows for store in recipe.stores}
    return [
        np.full((n, width), np.nan, np.float32)
        if at in written
        else random.uniform(0.1, 2, (n, width)).astype(np.float32)
        for at, width in enumerate(widths)
    ]


@with_nvrtc
@pytest.mark.parametrize("capability", [70, 80, 90, 100])
def test_nvrtc_compiles(capability, cells):
    if capability not in nvrtc.supported():
        pytest.skip(f"this NVRTC does not compile for sm_{capability}")
    for recipe in (EVERY_OP, *(recipe for _, recipe in cells)):
        ptx, cubin = nvrtc.compile_for(capability, module_of({"kernel": recipe, "again": recipe}))
        assert ".visible .entry kernel(" in ptx
        assert ".visible .entry again(" in ptx
        assert not re.search(r"div\.[su]64", ptx)  # slow
        assert cubin.startswith(b"\x7fELF")


@with_nvrtc
@pytest.mark.parametrize(("name", "scalar", "operands"), SCALARS)
def test_nvrtc_compiles_every_op_by_itself(name, scalar, operands):
    nvrtc.compile_for(90, module_of({"kernel": of_expressions([scalar], operands)}))


@with_nvrtc
def test_divisions_and_roots_are_exact():
    ptx, _ = nvrtc.compile_for(80, module_of({"kernel": of_expressions(["sqrt({0})", "{0} / {1}"], 2)}))
    assert "sqrt.rn.ftz.f32" in ptx
    assert "div.rn.ftz.f32" in ptx


@with_nvrtc
@pytest.mark.parametrize("capability", [80, 90, 100])
def test_cells_read_all_at_once(capability, cells):
    """No branch comes between what is read and what is written: the processor would wait for each part by itself."""
    for name, recipe in cells:
        source = module_of({"kernel": recipe})
        ptx, _ = nvrtc.compile_for(capability, source)
        body = ptx[ptx.index("ld.global.f32") : ptx.rindex("st.global.f32")]
        assert not re.search(r"bra|\$L|(div|rcp)\.rn", body), name  # the last two have branches of their own
        found = nvrtc.resources(capability, source)["kernel"]
        assert (found.stack, found.spilled, found.shared) == (0, 0, 0)
        assert found.registers <= 40  # 48 warps a processor of 64


@with_cpp
def test_ops_mean_what_they_mean_on_the_cpu():
    random = np.random.default_rng(0)
    n, d = 3, 5
    for recipe in (EVERY_OP, EVERY_OP_ON_NUMBA):
        x, out = operands_of(recipe, n, d, random)
        x[:, :d] -= 1  # the first operand has both signs; roots of the negative are NaN
        wide, on_cpu = np.empty_like(out, np.float64), np.empty_like(out)
        with np.errstate(invalid="ignore"):
            evaluated(recipe, n, d, [x.astype(np.float64), wide], np.float64, FLOAT64)
        launch(recipe, n, d, of_floats(x, out))
        np.testing.assert_allclose(out, wide, rtol=5e-7, atol=1e-7)
    on_the_cpu(recipe, n, d, x, on_cpu)
    np.testing.assert_allclose(out, on_cpu, rtol=3e-6, atol=3e-7)


@with_cpp
def test_cells_mean_what_they_mean_on_the_cpu(cells):
    random = np.random.default_rng(1)
    for name, recipe in cells:
        n, d = 3, 5
        start = operands_of(recipe, n, d, random)
        wide, cuda, numba = [x.astype(np.float64) for x in start], [x.copy() for x in start], [x.copy() for x in start]
        evaluated(recipe, n, d, wide, np.float64, FLOAT64)
        launch(recipe, n, d, of_floats(*cuda))
        on_the_cpu(recipe, n, d, *numba)
        for expected, got, other in zip(wide, cuda, numba, strict=True):
            np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-6, err_msg=name)
            np.testing.assert_allclose(got, other, rtol=3e-6, atol=1e-6, err_msg=name)


def geometries(n, d):
    """Of grids that have a thread for each of d entries of n rows, and more: see `geometry.spread`."""
    found = [spread(n, d)]
    for along, down in [(1, 1), (4, 2), (16, 3), (64, 4)]:
        columns = parts(d, along)
        found += [(parts(n, down) + more, parts(columns, 1 + more), 1 + more, along, down) for more in range(3)]
    return found


@with_cpp
@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 1), (1, 50), (7, 13), (0, 3)])
def test_every_entry_is_computed_once(n, d):
    """In place, so that an entry computed twice shows; a number a row, and a row for all."""
    count = Recipe(3, (Load(0, 1), Load(1, None), Load(2), Compute("{0} + {1} + {2}", (0, 1, 2))), (Store(3, 0, 1),))
    for geometry in geometries(n, d):
        x = np.zeros((n, 3 * d), np.float32)
        rows = np.arange(n, dtype=np.float32)[:, None]
        shared = np.arange(d, dtype=np.float32)[None]
        places = [(x, 3 * d, None), (rows, 1, None), (shared, 0, None)]
        launch(count, n, d, places, geometry)
        np.testing.assert_array_equal(x[:, d : 2 * d], rows + shared)
        assert not x[:, :d].any()
        assert not x[:, 2 * d :].any()


@with_cpp
@given(st.integers(0, 9), st.integers(1, 20), st.integers(0, 2**32))
def test_rows_are_read_and_written_where_lists_say(n, d, seed):
    """A list each, or none; two columns, and a number a row."""
    random = np.random.default_rng(seed)
    fused_gather = Recipe(
        4, (Load(0, 1), Load(1), Load(2, None), Compute("{0} * {1} - {2}", (0, 1, 2))), (Store(3, 3),)
    )
    held = 12
    sizes = [2 * d, d, 1, d]
    arrays = [random.normal(size=(held, size)).astype(np.float32) for size in sizes]
    lists = [random.integers(0, held, n).astype(np.int32) if random.random() < 0.6 else None for _ in range(3)]
    lists.append(random.permutation(held)[:n].astype(np.int32))
    wanted = arrays[3].copy()
    x, y, z = (array[:n] if rows is None else array[rows] for array, rows in zip(arrays, lists[:3], strict=False))
    wanted[lists[3]] = x[:, d:] * y - z
    launch(fused_gather, n, d, list(zip(arrays, sizes, lists, strict=True)))
    np.testing.assert_array_equal(arrays[3], wanted)


@with_cpp
def test_positions_beyond_32_bits():
    """The only row and the only entry left are beyond 2^32; the arrays' addresses make up for it."""
    recipe = Recipe(2, (Load(0, 3), Compute("{0} + {0}", (0,))), (Store(1, 1, 2),))
    (kernel,) = EmulatedDriver().load(module_of({"kernel": recipe}), ["kernel"])
    x, out = np.full(1, 21, np.float32), np.zeros(1, np.float32)
    n = d = 2**32 + 1
    stride = 2**20
    first = (n - 1) * stride + (d - 1)  # row and entry 2^32, in column 0
    places = [
        (array.ctypes.data - array.itemsize * (first + column * d), stride, None)
        for array, column in ((x, 3), (out, 2))
    ]
    grid, block = (2**31 - 1, 65535, 65535), (4, 4)
    thread = 2**30, 2**30 % 65535, 2**30 // 65535  # of blocks: row and entry 2^32
    run_thread(kernel, grid, block, thread, (0, 0), n, d, *itertools.chain(*places))
    assert out[0] == 42


EXTREMES = np.array([-math.inf, -2, -0.0, 0, 0.5, 3, math.inf, math.nan], np.float32)


@with_cpp
def test_nan_and_infinity():
    """As NumPy has it, and on Numba too."""
    a, b = (grid.ravel() for grid in np.meshgrid(EXTREMES, EXTREMES))
    infinite = with_attributes("minimum(maximum({0}, {low}), {high})", [("low", -math.inf), ("high", 1.0)])
    undefined = with_attributes("{0} if {0} > float32(0) else {slope} * {0}", [("slope", math.nan)])
    with np.errstate(over="ignore"):
        wide = 1 / (1 + np.exp(-a.astype(np.float64)))
    wanted = {
        "maximum({0}, {1})": np.maximum(a, b),
        "minimum({0}, {1})": np.minimum(a, b),
        "{0} if {0} < {1} else {1}": np.where(a < b, a, b),
        "{0} if {0} <= {1} else {1}": np.where(a <= b, a, b),
        "{0} if {0} > {1} else {1}": np.where(a > b, a, b),
        "{0} if {0} >= {1} else {1}": np.where(a >= b, a, b),
        "{0} if {0} == {1} else float32(-7)": np.where(a == b, a, np.float32(-7)),
        "{0} if {0} != {1} else float32(-7)": np.where(a != b, a, np.float32(-7)),
        infinite: np.minimum(a, np.float32(1)),
        undefined: np.where(a > 0, a, np.float32(math.nan)),
        "sigmoid({0})": wide,
    }
    recipe = of_expressions(list(wanted), 2)
    x = np.stack([a, b], axis=1)
    got, on_cpu = (np.zeros((len(a), len(wanted)), np.float32) for _ in range(2))
    launch(recipe, len(a), 1, of_floats(x, got))
    on_the_cpu(recipe, len(a), 1, x, on_cpu)
    for column, (text, want) in enumerate(wanted.items()):
        np.testing.assert_allclose(got[:, column], want, rtol=2e-7, err_msg=text)
        np.testing.assert_allclose(on_cpu[:, column], want, rtol=3e-7, atol=1.5e-7, err_msg=text)


def numbers():
    random = np.random.default_rng(3)
    any_bits = random.integers(0, 2**32, 60, np.uint32).view(np.float32)
    exact = [float(x) for x in any_bits if np.isfinite(x)]
    smallest = [math.ldexp(1, -149), -math.ldexp(3, -149), math.ldexp(1, -126)]
    rounded = [0.1, -0.3, 1e-7, 16777217.0, 1 + 2**-24, 1 + 2**-24 + 2**-50, 3.5e38, -1e39, 1e-46]
    return exact + smallest + rounded + [0.0, -0.0, math.inf, -math.inf]


def bits_of(values):
    with np.errstate(over="ignore"):
        return np.array(values, np.float64).astype(np.float32).view(np.uint32)


def of_numbers():
    values = numbers()
    computes = tuple(Compute("{0}", (constant(value),)) for value in values)
    return Recipe(1, computes, tuple(Store(at, 0, at) for at in range(len(values))))


def test_numbers_are_exact_on_the_cpu():
    out = np.zeros((1, len(numbers())), np.float32)
    on_the_cpu(of_numbers(), 1, 1, out)
    np.testing.assert_array_equal(out[0].view(np.uint32), bits_of(numbers()))


@with_cpp
def test_numbers_are_exact_for_cpp():
    out = np.zeros((1, len(numbers())), np.float32)
    launch(of_numbers(), 1, 1, of_floats(out))
    np.testing.assert_array_equal(out[0].view(np.uint32), bits_of(numbers()))


@with_nvrtc
def test_numbers_are_exact_for_nvrtc():
    ptx, _ = nvrtc.compile_for(80, module_of({"kernel": of_numbers()}))
    written = re.findall(r"mov\.[bu]32\s+%r\d+, (-?\d+);", ptx)
    assert set(bits_of(numbers()).tolist()) <= {int(x) % 2**32 for x in written}


def test_functions_are_known():
    """On a CPU those of `scalars`; on CUDA all."""
    on_the_cpu = {name for name, x in vars(scalars).items() if isinstance(x, Dispatcher) and name[0] != "_"} | {"abs"}
    assert on_the_cpu == fused.FUNCTIONS == COMMON_FUNCTIONS
    assert set(FUNCTIONS) == on_the_cpu | set().union(*(op.functions for op in OPS.values()))
    assert all(op.scalar for op in OPS.values() if op.elementwise)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "v0 +",
        "v0 ** v1",
        "v0 % v1",
        "v0 // v1",
        "~v0",
        "not v0",
        "2 * v0",  # Numba would compute in float64
        "float32(v0)",
        "float32(True)",
        "float32(-True)",
        "float32('1')",
        "float32(1j)",
        "float32()",
        "float32(1, 2)",
        f"float32(1{'0' * 400})",
        "v0 < v1",
        "v0 and v1",
        "v0 if v1 else v2",
        "v0 if v1 < v2 < v3 else v4",
        "v0 if v1 is v2 else v3",
        "inf",
        "x",
        "v",
        "{slope}",
        "log2(v0)",
        "tanh()",
        "tanh(v0, v1)",
        "tanh(x=v0)",
        "maximum(*v0)",
        "math.tanh(v0)",
        "v0[0]",
        "v0.real",
        "lambda: v0",
        "(v0 := v1)",
        "v0, v1",
        "v0; v1",
        "v0\0",
    ],
)
def test_what_has_no_translation_is_named(expression):
    with pytest.raises(eb.EdBatchError, match=re.escape(repr(expression))):
        cuda_expression(expression)


@given(st.text(st.sampled_from("v01 ()+-*/<=>,.if else float32tanhmxu\n'[]#"), max_size=30))
def test_any_text_is_translated_or_refused(text):
    with contextlib.suppress(eb.EdBatchError):
        assert cuda_expression(text)


def in_parentheses_or_not(texts):
    return st.tuples(texts, st.booleans()).map(lambda pair: f"({pair[0]})" if pair[1] else pair[0])


def compared(text):
    return f"({text})" if " if " in text else text  # Python's grammar


literals = st.one_of(st.floats(width=32, allow_nan=False).map(constant), st.integers(-9, 9).map("float32({})".format))
leaves = st.one_of(st.sampled_from(["{0}", "{1}", "{2}"]), literals)


def larger(texts):
    parts = in_parentheses_or_not(texts)
    comparisons = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    return st.one_of(
        st.tuples(parts, st.sampled_from("+-*/"), parts).map(" ".join),
        st.tuples(st.sampled_from("+-"), parts).map("".join),
        st.tuples(parts, parts.map(compared), comparisons, parts.map(compared), parts).map(
            lambda x: "{} if {} {} {} else {}".format(*x)
        ),
        st.tuples(st.sampled_from(["abs", "exp", "sigmoid", "sqrt", "tanh"]), texts).map(lambda x: "{}({})".format(*x)),
        st.tuples(st.sampled_from(["maximum", "minimum"]), texts, texts).map(lambda x: "{}({}, {})".format(*x)),
    )


@with_cpp
@settings(max_examples=6, phases=[Phase.generate])  # it says which expressions differ: no need to compile on and on
@given(st.lists(st.recursive(leaves, larger, max_leaves=12), min_size=30, max_size=60))
def test_expressions_are_what_python_makes_of_them(expressions):
    """Bit for bit, with the functions of the same C library."""
    recipe = of_expressions(expressions, 3)
    functions = {"abs": abs, "sqrt": np.sqrt}
    for name in ("exp", "tanh"):
        function = core()[f"emulated_{name}"]
        function.argtypes, function.restype = [ctypes.c_float], ctypes.c_float
        functions[name] = lambda x, function=function: np.float32(function(x))
    functions["sigmoid"] = lambda x: np.float32(1) / (np.float32(1) + functions["exp"](-x))
    functions["maximum"] = lambda a, b: a if a >= b or a != a else b
    functions["minimum"] = lambda a, b: a if a <= b or a != a else b
    x = np.array([[0.7, -1.3, 2.5], [-3, 0, 1e-40], [math.inf, -0.0, math.nan]], np.float32)
    got, want = (np.zeros((len(x), len(expressions)), np.float32) for _ in range(2))
    launch(recipe, len(x), 1, of_floats(x, got))
    with np.errstate(all="ignore"):
        evaluated(recipe, len(x), 1, [x, want], np.float32, functions)
    same = (got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)
    assert same.all(), [(expressions[at], x[i], got[i, at], want[i, at]) for i, at in np.argwhere(~same)]
