"""The functions of `CudaBackend` against those of the same names that the CPU has, and whole batches made by hand."""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import edbatch as eb
from edbatch.compiling.directory import Directory
from edbatch.kernels.cpu.backend import NumPyBackend
from edbatch.kernels.language.ir import NEXT, RUN, Compute, Integer, Kernel, Load, LoadAt, Place, Store
from edbatch.kernels.program import (
    ADD,
    ARGUMENT_OF,
    EXTENT,
    LEFT,
    POSITION,
    RIGHT,
    SLOT,
    TASK,
    TRANSPOSED,
    Argument,
    Extent,
    KernelStep,
    Move,
    Multiply,
    MultiplyEach,
    Slot,
    Storage,
    Task,
    step_table,
)
from edbatch.kernels.row_kernels import copy_rows
from edbatch.kernels.tables import Memory, Programs
from edbatch.memory.plan.addresses import COLUMNS, KEPT, ROWS, Columns, Rows
from edbatch.memory.plan.format import BATCH, OPERAND, SEGMENT, Batch, Operand, Plan
from tests.kernels.batches import (
    GATHER,
    GATHER_MANY,
    SHARED,
    SLICE,
    STRIDED,
    additions,
    kept,
    no_scattered,
    run,
    sums,
    versions,
)
from tests.kernels.softmax import softmax
from tests.training.rules import RULES, operands, updated

CPU = NumPyBackend()
seeds = st.integers(0, 10**6)
counts = st.integers(0, 9)
dtypes = st.sampled_from([np.float32, np.float64])


ORDERS = ["rows", "columns", "part", "turned"]


def stored(backend, array, order):
    """An array of the device in one of several layouts in memory."""
    if order == "part":
        wide = np.concatenate([array, array], axis=-1)
        return backend.from_host(wide, "C")[..., array.shape[-1] :]
    if order == "turned":
        return backend.from_host(np.ascontiguousarray(array[..., ::-1]), "C")[..., ::-1]
    if order == "columns":
        return backend.from_host(np.ascontiguousarray(np.moveaxis(array, -1, 1)), "C").swapaxes(1, -1)
    return backend.from_host(array, "C")


@given(counts, st.integers(1, 3), st.integers(1, 40), *[st.sampled_from(ORDERS)] * 2, dtypes, seeds)
def test_all_rows_are_added(cuda, n, rows, columns, order, order_of_whole, dtype, seed):
    random = np.random.default_rng(seed)
    x, whole = random.normal(size=(n, rows, columns)).astype(dtype), random.normal(size=(rows, columns)).astype(dtype)
    target = stored(cuda.backend, whole[None], order_of_whole)[0]
    cuda.backend.add_all(stored(cuda.backend, x, order), target)
    want = whole + x.astype(np.float64).sum(axis=0)
    np.testing.assert_allclose(cuda.backend.to_host(target), want, atol=1e-5 if dtype == np.float32 else 1e-12)


@given(st.integers(1, 9), st.integers(1, 3), st.integers(1, 9), st.sampled_from(ORDERS), dtypes, seeds)
def test_rows_of_one_index_are_summed(cuda, n, rows, columns, order, dtype, seed):
    random = np.random.default_rng(seed)
    x, indices = random.normal(size=(n, rows, columns)).astype(dtype), random.integers(0, 6, n)
    if seed % 3 == 0:
        indices = np.sort(random.permutation(20)[:n])  # nothing to sum
    found, got = cuda.backend.sum_equal(indices, stored(cuda.backend, x, order))
    want_found, want = CPU.sum_equal(indices, x)
    assert found.dtype == want_found.dtype == np.int64
    np.testing.assert_array_equal(found, want_found)
    # The CPU adds up float32 in float64, and rounds once; a GPU does not.
    np.testing.assert_allclose(cuda.backend.to_host(got), want, rtol=0, atol=3e-6 if dtype == np.float32 else 1e-14)


@given(st.integers(1, 5), st.integers(1, 40), st.booleans(), dtypes, seeds)
def test_prepared_kernels(cuda, k, width, listed, dtype, seed):
    rule, rows = RULES["Momentum"], np.random.default_rng(seed).permutation(6)[:k] if listed else np.arange(k)
    given = operands(rule, 6, width, rows, dtype, seed)
    mine, theirs = (
        updated(backend, rule, *given[:3], rows if listed else None, given[3]) for backend in (cuda.backend, CPU)
    )
    for got, want in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=3e-6 if dtype == np.float32 else 1e-13)


def plan_of(indices):
    """A plan without batches."""
    none = (np.zeros(0, dtype) for dtype in (BATCH, OPERAND, SEGMENT))
    return Directory(Plan(*none, np.array(indices, np.int32)))


def test_lists_are_on_the_device(cuda):
    def of_plan(host):
        return cuda.backend.indices(plan_of(host))

    host = np.array([3, 1, 4, 1], np.int32)
    for made in (of_plan, cuda.backend._lists.upload):
        found = made(host)
        np.testing.assert_array_equal(cuda.backend.to_host(found.device), host)
        assert found.at(2) - found.at(0) == 8
        assert found.at(-1) == 0
        assert len(made(host[:0]).device) == 0


def test_the_end_of_a_list_is_counted_as_in_the_whole(cuda):
    found = cuda.backend.indices(plan_of([3, 1, 4, 1]), 2)
    np.testing.assert_array_equal(cuda.backend.to_host(found.device), [4, 1])
    assert found.at(2) == cuda.backend.address(found.device)


def test_buffers_of_plans_are_used_again(cuda):
    def addresses():
        first, second = (cuda.backend.indices(plan_of(range(n))) for n in (100, 110))
        return first.address, second.address

    before = addresses()
    assert before[0] != before[1]
    assert sorted(addresses()) == sorted(before)
    assert addresses() == addresses()


def test_kernels_are_compiled_once(cuda):
    first, again, other = (
        Kernel(1, 0, (Place(),) * 2, (Load(0, (NEXT,)), Compute(name, (0,))), (Store(1, 1, (NEXT,)),))
        for name in ("tanh", "tanh", "exp")
    )
    made = cuda.backend.handles([first, other, again])
    assert made[0] == made[2] != made[1]
    assert cuda.backend.handles([other, first]) == [made[1], made[0]]


class Steps(NamedTuple):
    """Of one program; kernels as data."""

    steps: tuple
    places: tuple = ()
    kernels: tuple = ()


def after(backend, made, slots, strides, integers, m):
    """What steps leave in copies of the slots' arrays, all of which are given as arguments; strides in entries."""
    there, itemsize = [backend.from_host(x.copy(), "C") for x in slots], slots[0].itemsize
    some = len(slots)
    extent = Extent(0, some, 0, some, 0, len(made.steps), 0, 0, 0, 64, itemsize)
    programs = Programs(
        np.array([Task(0)], TASK), np.array([extent], EXTENT),
        np.array([Slot(Storage.ARGUMENT, 0, 0, 0)] * some, SLOT),
        np.array([Argument(at, 1, Move.UNLESS_FOLLOWED) for at in range(some)], ARGUMENT_OF),
        step_table(made.steps), np.array([*made.places], POSITION),
        np.array(backend.handles(made.kernels), np.int64), np.zeros(0, np.int64),
    )  # fmt: skip
    table = SimpleNamespace(directory=Directory(programs), version=next(versions), runs_whole=lambda batches: True)
    operands = [Operand(SLICE if stride else SHARED, at, 0, int(stride > 0), 0, m) for at, stride in enumerate(strides)]
    plan = Plan(
        np.array([Batch(0, 0, m, 0, 1, -1)], BATCH), np.array(operands, OPERAND), np.zeros(0, SEGMENT),
        integers.astype(np.int32),
    )  # fmt: skip
    memory = Memory(
        np.array([Columns(at, 0, itemsize * max(1, stride)) for at, stride in enumerate(strides)], COLUMNS),
        np.array([Rows(backend.address(x), itemsize * stride) for x, stride in zip(there, strides, strict=True)], ROWS),
        np.zeros(1, np.int32), np.zeros(1, KEPT), *no_scattered(),
    )  # fmt: skip
    made = Directory(plan)
    backend.run_batches(0, 1, made, backend.indices(made), Directory(memory), table, 0)
    return [np.array(backend.to_host(x)) for x in there]


def check_steps(cuda, dtype, made, slots, strides, integers=(0,), m=1):
    slots = [x.astype(dtype) for x in slots]
    mine, theirs = (after(backend, made, slots, strides, np.array(integers), m) for backend in (cuda.backend, CPU))
    for x, y in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5 if dtype == np.float32 else 1e-13)
    return mine


def picked(dtype):
    """A row of place 0, the one that an integer says, to place 1."""
    accesses = (Integer(0), LoadAt(0, (NEXT,), 0, RUN))
    return Kernel(1, 0, (Place(),) * 2, accesses, (Store(1, 1, (NEXT,), column=0),), dtype=dtype)


@given(
    *[st.integers(1, 6)] * 3, st.booleans(), st.booleans(), st.booleans(), dtypes, seeds
)  # fmt: skip
def test_steps(cuda, m, k, n, transposed, add, logarithm, dtype, seed):
    """A product, and kernels: a copy, a row by number, a softmax."""
    random = np.random.default_rng(seed)
    x, w = random.normal(size=(m, k + 1)), random.normal(size=(n, k) if transposed else (k, n))
    table, out, all = random.normal(size=(5, n)), random.normal(size=(m, n + 2)), random.normal(size=(m, 3 * n))
    steps = (
        Multiply(0, 1, 1, k, n, w.shape[1], TRANSPOSED * transposed + ADD * add, 2, 2),
        KernelStep(0, 0, 2, 1, 0, 0, 1, n, 0, 0),
        KernelStep(1, 3, 2, 1, 2, 1, 1, n, 0, 0),
        KernelStep(2, 9, 2, 1, 2, 0, 1, n, 1, 32),
    )
    name = np.dtype(dtype).name
    kernels = (copy_rows(name), picked(name), softmax(logarithm, name))
    places = (
        (2, 2),
        (3, 0),
        (0, n),
        (4, 0),
        (3, 0),
        (0, n),
        (0, n),
        (0, n),
        (0, 0),
    )  # sizes, strides, columns, integers
    made = Steps(steps, (*places, (2, 0), (3, 0), (0, n), (0, 2), (0, 2 * n)), kernels)
    integers = random.integers(0, 5, 1 + m)
    found = check_steps(cuda, dtype, made, [x, w, out, all, table], [k + 1, 0, n + 2, 3 * n, 0], integers, m)
    product = x[:, 1:] @ (w.T if transposed else w) + add * out[:, 2:]
    e = np.exp(product)
    parts = e / e.sum(axis=1, keepdims=True)
    want = [product, table[integers[1:]], np.log(parts) if logarithm else parts]
    np.testing.assert_allclose(found[3], np.hstack(want), atol=2e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("shared", [0, LEFT, RIGHT, LEFT + TRANSPOSED, RIGHT + TRANSPOSED])
@given(st.integers(1, 4), *[st.integers(1, 5)] * 3, dtypes, seeds)
def test_a_product_per_call(shared, cuda, calls, m, k, n, dtype, seed):
    random = np.random.default_rng(seed)
    turned = bool(shared & TRANSPOSED)
    a = random.normal(size=(1 if shared & LEFT else calls, *((k, m) if shared & LEFT and turned else (m, k))))
    b = random.normal(size=(1 if shared & RIGHT else calls, *((n, k) if shared & RIGHT and turned else (k, n))))
    distance = (a if shared & LEFT else b).shape[2]
    made = Steps((MultiplyEach(0, 0, 1, 0, m, k, n, distance, shared, 2, 0),))
    strides = [0 if shared & LEFT else m * k, 0 if shared & RIGHT else k * n, m * n]
    found = check_steps(cuda, dtype, made, [a, b, np.zeros((calls, m, n))], strides, m=calls)
    left, right = (x.transpose(0, 2, 1) if shared & side and turned else x for side, x in ((LEFT, a), (RIGHT, b)))
    np.testing.assert_allclose(found[2], np.matmul(left, right), atol=1e-5 if dtype == np.float32 else 1e-13)


def check_batches(cuda, made, **tolerance):
    given, want = made
    found, counted = run(cuda.backend, *given)
    for mine, theirs in zip(found, want, strict=True):
        np.testing.assert_allclose(mine, theirs, **tolerance)
    assert run(CPU, *given)[1] == counted
    return counted


@pytest.mark.parametrize("access", [SLICE, SHARED, STRIDED, GATHER, GATHER_MANY])
@given(dtypes, seeds)
def test_sums_over_lists(access, cuda, dtype, seed):
    check_batches(cuda, sums(seed, access, np.dtype(dtype)), atol=1e-5 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("access", [SLICE, STRIDED, SHARED])
@given(dtypes, seeds, st.booleans())
def test_rows_are_added_to_operands(access, cuda, dtype, seed, listed):
    given, want = additions(seed, access, listed, np.dtype(dtype))
    if access != SHARED:
        check_batches(cuda, (given, want), rtol=0)
    elif not listed:  # lists in which rows occur several times are given as groups: see runtime/test_backward_tables.py
        check_batches(cuda, (given, want), atol=1e-5 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("block", [1, 2, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_are_kept_with_what_is_saved(cuda, block, dtype):
    tolerance = 1e-6 if dtype == np.float32 else 1e-14
    assert check_batches(cuda, kept(1, block, np.dtype(dtype)), rtol=tolerance) == [9, 0]


@pytest.mark.parametrize("reduce", [eb.sum, eb.mean, eb.maximum, eb.logsumexp])
def test_lists_of_many_numbers(cuda, reduce):
    """As losses are added up: by many threads, and to the same bits each time."""
    values = np.random.default_rng(0).normal(size=(3000, 3)).astype(np.float32)
    wide = values.astype(np.float64)
    wanted = {eb.sum: wide.sum(0), eb.mean: wide.mean(0), eb.maximum: wide.max(0)}
    found = []
    for _ in range(2):
        with cuda, eb.Graph(policy="sufficient"):
            found.append(reduce([eb.input(value) for value in values]).value())
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], wanted.get(reduce, np.log(np.exp(wide).sum(0))), rtol=1e-5)
