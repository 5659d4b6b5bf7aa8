"""Every op of the table on a GPU: all values and gradients are those of the CPU."""

import itertools
import re
import sys
from contextlib import nullcontext
from functools import partial, reduce

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.model.parameters import LookupParameters, Parameter
from edbatch.graph.op import no_gradient
from edbatch.kernels.cuda.backend import source_of
from edbatch.models.workloads import WORKLOADS
from edbatch.runtime import type_table
from tests.arrays import on_host
from tests.graph import test_gradients, test_ops
from tests.graph.test_ops import CASES, one_of_each
from tests.kernels import nvrtc
from tests.runtime import test_edges

# Comparisons have no gradient; and every case makes cells of its own, however many cases there are.
pytestmark = [
    pytest.mark.filterwarnings("ignore:backward. no parameter got a gradient"),
    pytest.mark.filterwarnings("ignore:cell .* has been made and traced"),
]
CAPABILITIES = [70, 80, 90, 100] if sys.platform != "darwin" else []  # NVIDIA makes no compiler for macOS


def values(op, sample, how, dtype):
    """Values of a batch of nodes whose operands lie so, see `test_ops.OPERANDS`."""
    return test_ops.build(op, sample, how, "sufficient", np.random.default_rng(3), dtype)[:2]


def gradients(op, sample, how, dtype, cells=False):
    """Gradients of all operands of a batch of nodes; `cells`: what reads the nodes is a cell."""
    loss, wants, _ = test_gradients.build(op, sample, how, "sufficient", cells, dtype)
    loss.backward()
    return [loss.value(), *(on_host(x.grad()) if isinstance(x, Parameter) else x.gradient() for x, _ in wants)]


def gradients_read_in_cells(op, sample, how, dtype):
    """The same, as parts of rows."""
    return gradients(op, sample, how, dtype, cells=True)


def edges(op, sample, how, dtype):
    """Gradients of parameters that are read stopped, scaled and as they are; see `test_edges.mixed`."""
    loss, wants = test_edges.mixed(op, sample, how, "sufficient", dtype)
    loss.backward()
    return [loss.value(), *(on_host(parameter.grad()) for parameter, _ in wants)]


def between_products(op, sample, how, dtype):
    """Gradients of what is between two products in a cell, under options."""
    model, loss = test_gradients.between_products(op, sample, dtype)
    with eb.options(**{how: how == "recompute"}):
        found = loss()
        found.backward()
    return [found.value(), *(on_host(parameter.grad()) for parameter in model)]


def runs(op, sample, every):
    """What is run of an op: functions of (op, sample, how, dtype), and how.

    Args:
        every: however operands lie, and under all options; otherwise as they are found in other ways than on the CPU.
    """
    several = ["parameter"] * (len(sample.shapes) > 1 and not op.variadic)
    found = [(gradients_read_in_cells, "rows")]
    found += [(gradients, how) for how in (test_ops.OPERANDS if every else ["shuffled", *several])]
    found += [(edges, how) for how in ("arguments", "nodes", "inside")[: 3 if every else 1]]
    if every and not op.variadic and op.gradient is not no_gradient and op.name != "scale_gradient":
        found += [(between_products, how) for how in ("recompute", "cells")]
    return found


def wide():
    """Values and gradients of a cell whose rows are shared out to many threads, and do not lie in order."""
    random = np.random.default_rng(0)
    model = eb.ParameterCollection(seed=1)
    W = model.add_parameters((40, 50))
    gain, bias = model.add_parameters(50, init=1.0), model.add_parameters(50)

    @eb.cell
    def cell(x, v, label):
        turned = x.T
        found = [
            eb.softmax(x, 0), eb.softmax(x), eb.log_softmax(v[::-1]), eb.log_softmax(turned, 0), eb.sum(x, 0),
            eb.mean(turned, axis=0), eb.std(x, axis=1), eb.std(turned), eb.logsumexp(v), eb.norm(v[::3]), eb.max(v),
            eb.min(x, axis=1), eb.layer_norm(x, gain, bias), eb.layer_norm(eb.flip(x, 1), gain[::-1], bias), turned @ W,
            W @ turned, eb.parameter(W).T @ x, turned @ x, x[::2] @ v[50:100], v[:80:2] @ x, eb.dot(v[1:], v[:-1]),
            eb.cross_entropy(v, label), eb.hinge(v, label), eb.pick(turned, 7), eb.pick(v, label), turned,
            eb.dropout(v, 0.5, label), eb.concatenate([x, eb.flip(x, 0)], axis=1), eb.stack([turned, turned], axis=2),
            eb.reshape(turned, 2000)[::7] * 2, eb.reshape(W.T, (100, 20)) + v[:20], W + turned[0, :1], eb.gelu(turned),
            eb.squared_distance(v, v[::-1]), eb.l1_distance(x, W), eb.huber(x[0], gain), eb.maximum([v, v[::-1]]),
            eb.binary_cross_entropy(eb.sigmoid(v), eb.sigmoid(v[::-1])), eb.logsumexp([gain, x[1], turned[:, 2]]),
        ]  # fmt: skip
        return [eb.sum([eb.sum(eb.square(x)) if x.shape else x for x in found]), *found]

    with eb.Graph(policy="sufficient"):
        calls = []
        for label in range(3):
            x, v = (eb.input(random.normal(size=shape)) for shape in ((40, 50), 1500))
            calls.append(cell(x, v, label))
        loss = eb.sum([call[0] for call in calls])
        values = eb.forward([value for call in calls for value in call])
        loss.backward()
    return values, [on_host(parameter.grad()) for parameter in model]


def many():
    """Values and gradients of a cell that reaches more than CUDA passes to one kernel."""

    @eb.cell
    def cell(*xs):
        return reduce(lambda total, x: eb.tanh(total + eb.transpose(x, (2, 1, 0))), xs)

    with eb.Graph():
        xs = [eb.input(x) for x in np.random.default_rng(0).normal(size=(80, 3, 3, 3))]
        found = cell(*xs)
        eb.sum(found).backward()
        return [found.value()], [x.gradient() for x in xs]


def of_workload(name):
    """The loss of a model, and the gradients of its parameters."""
    workload = WORKLOADS[name]
    samples, sizes, _ = workload.number(workload.generate(3, seed=0))
    model = eb.ParameterCollection(seed=0)
    network = workload.network(model, *sizes, dim=6)
    with eb.Graph():
        found = workload.outputs(network, samples)
        loss = -eb.sum([eb.log(p[0]) for of_sample in found for p in of_sample])
        loss.backward()
    weights = [parameter for parameter in model if not isinstance(parameter, LookupParameters)]
    return [loss.value()], [on_host(parameter.grad()) for parameter in weights]


def note_kernels(patch, backend):
    """The kernels that are asked for from now on."""
    wanted = {}
    handles = backend.handles

    def note(kernels):
        wanted.update(dict.fromkeys(kernels))
        return handles(kernels)

    patch.setattr(backend, "handles", note)
    return wanted


def compiled_together(cuda):
    """A block in which a GPU that is emulated computes nothing; see `EmulatedDriver.together`."""
    return getattr(cuda.backend._driver, "together", nullcontext)()


def check_ops(cuda, cases, dtype, every=False):
    """Run ops, and compare values with an oracle, gradients with those of the CPU.

    Returns:
        The kernels.
    """
    unit = 1 if dtype == "float32" else 1e-7
    with pytest.MonkeyPatch.context() as patch, eb.options(record=False):
        for module in (test_gradients, test_edges):  # no need for finite differences
            patch.setattr(module, "numeric", lambda function, x: np.zeros(np.shape(x)))
        patch.setattr(type_table, "_shared", {})
        wanted = note_kernels(patch, cuda.backend)
        all_runs = [(case, *run) for case in cases for run in runs(*case.values, every)]
        places = [(case, how) for case in cases for how in (test_ops.OPERANDS if every else ["rows"])]
        with cuda, compiled_together(cuda), np.errstate(all="ignore"):
            for case, how in places:
                values(*case.values, how, dtype)
            for case, run, how in all_runs:
                run(*case.values, how, dtype)
        wrong = []
        for case, how in places:
            with cuda:
                got, wants = values(*case.values, how, dtype)
            wrong += differences(f"{case.id} {how}", got, wants, 2e-5 * unit, 2e-6 * unit)
        for case, run, how in all_runs:
            with cuda:
                got = run(*case.values, how, dtype)
            with eb.device("cpu"):
                wants = run(*case.values, how, dtype)
            wrong += differences(f"{case.id} {run.__name__} {how}", got, wants, 1e-4 * unit, 1e-5 * unit)
        assert not wrong, "\n".join(wrong)
    return list(wanted)


def differences(name, got, wants, rtol, atol):
    """What is wrong, in words."""
    try:
        for value, want in zip(got, wants, strict=True):
            np.testing.assert_allclose(value, want, rtol=rtol, atol=atol)
    except AssertionError as wrong:
        return [f"{name}: {wrong}"]
    return []


def check_compiled(kernels, capabilities):
    """NVRTC compiles kernels, each for one of the capabilities that it knows."""
    for at, capability in enumerate(capabilities):
        some = kernels[at :: len(capabilities)]
        if capability not in nvrtc.supported() or not some:
            continue
        ptx, cubin = nvrtc.compile_for(capability, source_of({f"kernel{at}": x for at, x in enumerate(some)}))
        assert len(re.findall(r"\.visible \.entry kernel[0-9]+\(", ptx)) == len(some)
        assert re.findall(r"(?:div|rem)\.[su]64", ptx) == []  # slow
        assert cubin.startswith(b"\x7fELF")


def parts(cases):
    """Parts of a table: the kernels of one are compiled together, as one by one would take minutes."""
    return [pytest.param(cases[first : first + 15], id=cases[first].id) for first in range(0, len(cases), 15)]


@pytest.mark.parametrize("cases", parts([case for case in one_of_each(CASES, -1) if not case.marks]))
def test_every_op(cuda, cases):
    """Values and gradients, alone and in cells; stopped or not."""
    check_compiled(check_ops(cuda, cases, "float32")[::4], CAPABILITIES)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("cases", parts(CASES))
def test_every_op_however_operands_lie(cuda, cases, dtype):
    kernels = check_ops(cuda, cases, dtype, every=True)
    for capability in CAPABILITIES:
        check_compiled(kernels, [capability])


SOME = {"tree-lstm", "child-sum"}  # more of them, and what is asked of the device: tests/runtime/test_on_gpu.py
CELLS = [
    pytest.param(wide, id="wide"),
    pytest.param(many, id="many"),
    *(
        pytest.param(partial(of_workload, name), id=name, marks=[pytest.mark.slow] * (name not in SOME))
        for name in WORKLOADS
    ),
]


@pytest.mark.parametrize("run", CELLS)
def test_cells(cuda, monkeypatch, run):
    """Models; and rows that many threads share, or that do not lie in order."""
    monkeypatch.setattr(type_table, "_shared", {})
    wanted = note_kernels(monkeypatch, cuda.backend)
    with cuda, eb.options(record=False):
        with compiled_together(cuda), np.errstate(all="ignore"):
            run()
        of_gpu = run()
    with eb.device("cpu"):
        of_cpu = run()
    for got, want in zip(itertools.chain(*of_gpu), itertools.chain(*of_cpu), strict=True):
        # Where softmax takes away what all its operands have in common, gradients are nothing but rounding.
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-9 + 1e-4 * np.abs(want).max())
    check_compiled(list(wanted)[::4], CAPABILITIES)


@pytest.mark.parametrize("limit", [np.inf, 1e9, 1e-30, 0.1])
def test_attributes_of_any_size(cuda, limit):
    """Infinity has no literal."""
    x, y = np.array([1, 2, 3], np.float32), np.array([0.5, 4, -1], np.float32)
    found = []
    for device in (cuda, eb.device("cpu")):
        with device, eb.Graph(policy="sufficient"):
            found.append([eb.huber(x, y, limit).value(), eb.hinge(x, 1, min(limit, 1e9)).value()])
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_rows_of_any_size(cuda):
    """Neither squares nor what large numbers have in common are too large for float32; constant rows have no spread."""
    ones, zeros = np.ones(3, np.float32), np.zeros(3, np.float32)
    rows = np.array([[3e19, 0, 0], [1e-30, 2e-30, 0], [1e30, 1e30, 1], [1e7, 1e7 + 1, 1e7 - 1], [2, 2, 2]], np.float32)
    found = []
    for device in (cuda, eb.device("cpu")):
        with device, eb.Graph(policy="sufficient"):
            of_rows = [[eb.std(x), eb.layer_norm(x, ones, zeros), eb.cross_entropy(x, 0)] for x in rows]
            found.append(np.concatenate([np.ravel(x.value()) for of_row in of_rows for x in of_row]))
    np.testing.assert_allclose(*found, rtol=1e-5)
