"""Every op of the table on a GPU: all values and gradients are those of the CPU."""

import itertools
import re
import sys
from functools import partial

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.model.parameters import LookupParameters, Parameter
from edbatch.kernels.cuda.loops import source_of
from edbatch.models.workloads import WORKLOADS
from edbatch.runtime import type_table
from tests.arrays import on_host
from tests.graph import test_gradients, test_ops
from tests.graph.test_ops import CASES
from tests.kernels import nvrtc

# Comparisons have no gradient.
pytestmark = pytest.mark.filterwarnings("ignore:backward. no parameter got a gradient")
with_nvrtc = pytest.mark.skipif(sys.platform == "darwin", reason="NVIDIA makes no compiler for macOS")
NOTHING = 'extern "C" __global__ void nothing(long long) {}'


def ways(op, sample):
    """How operands lie (see `test_ops.OPERANDS`): those that are found in other ways than on the CPU; and the dtype."""
    found = ["rows", "shuffled"] + ["parameter", "parameter first"] * (len(sample.shapes) > 1 and not op.variadic)
    return [*((how, "float32") for how in found), ("rows", "float64")]


def values(op, sample, how, dtype):
    """Of a batch of nodes, and what an oracle says."""
    got, expected, _ = test_ops.build(op, sample, how, "sufficient", np.random.default_rng(3), dtype)
    return got, expected


def gradients(op, sample, how, dtype):
    """Of all operands of a batch of nodes; read inside a cell where they are read in order."""
    loss, wants, _ = test_gradients.build(op, sample, how, "sufficient", how == "rows", dtype)
    loss.backward()
    return [on_host(x.grad()) if isinstance(x, Parameter) else x.gradient() for x, _ in wants]


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


def of_workload(name):
    """The loss of a model, and the gradients of its parameters."""
    workload = WORKLOADS[name]
    samples, sizes, _ = workload.number(workload.generate(3, seed=0))
    model = eb.ParameterCollection(seed=0)
    network = workload.network(model, *sizes, dim=6)
    with eb.Graph():
        loss = eb.sum([network.cross_entropy(h, 0) for sample in samples for h in network.hidden(*sample)])
        loss.backward()
    weights = [parameter for parameter in model if not isinstance(parameter, LookupParameters)]
    return [loss.value()], [on_host(parameter.grad()) for parameter in weights]


@pytest.fixture(scope="module")
def kernels(cuda):
    """All kernels that the tests need, compiled together: one by one would take minutes.

    A first run, with kernels that do nothing, shows which.
    """
    wanted = {}
    (nothing,) = cuda.backend._driver.load(NOTHING, ["nothing"])
    loops = cuda.backend.loops

    def note(kernels):
        wanted.update(dict.fromkeys(kernels))
        return [nothing] * len(kernels)

    with pytest.MonkeyPatch.context() as patch:
        # Gradients are compared with the CPU's: no need for finite differences.
        patch.setattr(test_gradients, "numeric", lambda function, x: np.zeros(np.shape(x)))
        with pytest.MonkeyPatch.context() as first, cuda, eb.options(record=False), np.errstate(all="ignore"):
            first.setattr(loops, "handles", note)
            first.setattr(type_table, "_shared", {})
            for case in CASES:
                for way in ways(*case.values):
                    values(*case.values, *way)
                    gradients(*case.values, *way)
            wide()
            for name in WORKLOADS:
                of_workload(name)
        loops.handles(list(wanted))
        yield list(wanted)


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_values_and_gradients(cuda, kernels, monkeypatch, op, sample):
    monkeypatch.setattr(type_table, "_shared", {})
    for how, dtype in ways(op, sample):
        with cuda, eb.options(record=False):
            got, expected = values(op, sample, how, dtype)
            of_gpu = gradients(op, sample, how, dtype)
        unit = 1 if dtype == "float32" else 1e-7
        for value, want in zip(got, expected, strict=True):
            np.testing.assert_allclose(value, want, rtol=2e-5 * unit, atol=2e-6 * unit)
        with eb.device("cpu"):
            of_cpu = gradients(op, sample, how, dtype)
        for value, want in zip(of_gpu, of_cpu, strict=True):
            np.testing.assert_allclose(value, want, rtol=1e-4 * unit, atol=1e-5 * unit)


CELLS = [
    pytest.param(wide, id="wide"),
    *(pytest.param(partial(of_workload, name), id=name) for name in WORKLOADS),
]


@pytest.mark.parametrize("run", CELLS)
def test_cells(cuda, kernels, monkeypatch, run):
    """Models; and rows that many threads share, or that do not lie in order."""
    monkeypatch.setattr(type_table, "_shared", {})
    with cuda, eb.options(record=False):
        of_gpu = run()
    with eb.device("cpu"):
        of_cpu = run()
    for got, want in zip(itertools.chain(*of_gpu), itertools.chain(*of_cpu), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


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


@with_nvrtc
@pytest.mark.parametrize("capability", [70, 80, 90, 100])
def test_nvrtc_compiles(kernels, capability):
    """Every kernel that the tests of all ops have run."""
    if capability not in nvrtc.supported():
        pytest.skip(f"this NVRTC does not compile for sm_{capability}")
    ptx, cubin = nvrtc.compile_for(capability, source_of({f"kernel{at}": x for at, x in enumerate(kernels)}))
    assert len(re.findall(r"\.visible \.entry kernel[0-9]+\(", ptx)) == len(kernels) > 100
    assert re.findall(r"(?:div|rem)\.[su]64", ptx) == []  # slow
    assert cubin.startswith(b"\x7fELF")
