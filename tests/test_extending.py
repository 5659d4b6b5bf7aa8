"""What docs/extending.md shows: ops of every sort pass all tests of the op table, the rest does what it should."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import edbatch as eb
from edbatch.cli import main
from edbatch.graph.op import OPS, Op, declare
from edbatch.models.workloads import WORKLOADS
from tests import reviews
from tests.graph import test_gradients, test_ops
from tests.graph.test_ops import cases_of
from tests.kernels.cuda import test_ops as test_on_gpu
from tests.oracle import ORACLE
from tests.runtime import test_edges

pytestmark = pytest.mark.filterwarnings("ignore:backward. no parameter got a gradient")


def read():
    """The module, and the ops that it declares, which are taken out again."""
    before = dict(OPS)
    try:
        module = importlib.import_module("tests.extensions")
        return module, {name: op for name, op in OPS.items() if name not in before}
    finally:
        OPS.clear()
        OPS.update(before)


extensions, MADE_UP = read()
CASES = cases_of(MADE_UP.values())
TOLERANCES = {"float32": (2e-4, 2e-5), "float64": (1e-6, 1e-7)}  # of gradients
WAYS = [("rows", "float64"), ("mixed", "float64"), ("shuffled", "float32")]


def additive_attention(query, gain, *both):
    keys, values = both[: len(both) // 2], both[len(both) // 2 :]
    weights = np.exp([gain @ np.tanh(key + query) for key in keys])
    return sum(weight * value for weight, value in zip(weights / weights.sum(), values, strict=True))


MEANINGS = {
    "soft_cap": lambda x, limit: limit * np.tanh(x / limit),
    "log_add": np.logaddexp,
    "peak": lambda x, axes: np.max(x, axis=axes),
    "norm_list": lambda *xs: np.sqrt(sum(x * x for x in xs)),
    "additive_attention": additive_attention,
    "rms_norm": lambda x, gain, epsilon: x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * gain,
}


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    """The ops, in the table and in the oracle, for one test."""
    for name, op in MADE_UP.items():
        monkeypatch.setitem(OPS, name, op)
        monkeypatch.setitem(ORACLE, name, MEANINGS[name])


def test_their_declarations_are_complete():
    test_ops.test_every_op_has_samples_and_an_oracle()
    test_gradients.test_every_op_has_a_gradient_or_says_that_it_has_none()


@pytest.mark.parametrize(("how", "dtype"), WAYS)
@pytest.mark.parametrize(("op", "sample"), CASES)
def test_batched_equals_unbatched_equals_oracle(op, sample, how, dtype):
    rtol, atol = (2e-5, 4e-6) if dtype == "float32" else (1e-9, 1e-11)
    test_ops.compare_values(op, sample, how, dtype, rtol, atol)


@pytest.mark.parametrize(("how", "dtype"), WAYS)
@pytest.mark.parametrize(("op", "sample"), CASES)
def test_gradients_equal_finite_differences(op, sample, how, dtype):
    test_gradients.compare_gradients(op, sample, how, dtype, *TOLERANCES[dtype])


@pytest.mark.parametrize(("op", "sample"), [case for case in CASES if not case.values[0].variadic])
def test_in_a_cell(op, sample):
    test_gradients.test_in_a_cell(op, sample)


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_stopped_and_scaled_operands(op, sample):
    test_edges.test_edges_into_every_op(op, sample)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_on_an_emulated_gpu(cuda, dtype):
    test_on_gpu.check_ops(cuda, CASES, dtype)


def test_an_op_that_says_nothing_is_refused():
    with pytest.raises(eb.EdBatchError, match="op 'empty': expected a scalar, a reduction, a composite or places"):
        declare(Op("empty", lambda shape: shape))


@pytest.mark.parametrize("in_cell", [False, True])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_function_on_whole_arrays(device, in_cell, cuda):
    X, G = np.random.default_rng(0).normal(size=(4, 2, 3)), np.array([1.0, -2.0, 3.0])
    step = eb.cell(lambda x: extensions.moments(x, k=3)) if in_cell else lambda x: extensions.moments(x, k=3)
    with cuda if device == "cuda" else eb.device("cpu"), eb.Graph(dtype="float64"):
        xs = eb.array(X)
        ys = [step(x) for x in xs]
        eb.sum([eb.dot(y, G) for y in ys]).backward()
        got, gradient = [y.value() for y in ys], xs.gradient()
    np.testing.assert_allclose(got, np.stack([np.mean(X**power, axis=(1, 2)) for power in (1, 2, 3)], axis=1))
    np.testing.assert_allclose(gradient, (1 - 4 * X + 9 * X**2) / 6)


def test_the_interface():
    assert extensions.norms([[3.0, 4.0], [0.0, 2.0]]) == [5, 2]


def test_the_workload(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(WORKLOADS, "reviews", reviews.REVIEWS)
    path, out = tmp_path / "reviews.txt", tmp_path / "predictions.txt"
    path.write_text("".join(f"{label} {' '.join(words)}\n" for label, words in reviews.random_reviews(9, 0)))
    assert main(["run", "reviews", "--data", str(path), "--hidden", "4", "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["samples"], found["places"], found["labels"]) == (9, 9, 2)
    assert all(row["largest_difference"] < 1e-6 for row in found["policies"])
    assert {line.split()[0] for line in out.read_text().splitlines()} <= {"bad", "good"}
    assert (
        main(["train", "reviews", "--data", str(path), "--hidden", "4", "--lr", "0.05", "--save", str(tmp_path)]) == 0
    )
    epochs = json.loads((tmp_path / "curve.json").read_text())["epochs"]
    assert epochs[-1]["loss"] < epochs[0]["loss"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_optimizer(device, dtype, cuda):
    random = np.random.default_rng(1)
    p, mean = random.standard_normal(5), np.zeros(5)
    with cuda if device == "cuda" else eb.device("cpu"):
        model = eb.ParameterCollection(dtype=dtype)
        W = model.add_parameters(5, init=p)
        trainer = extensions.Lion(model, lr=0.1, weight_decay=0.2, beta1=0.5)
        for _ in range(4):
            g = random.standard_normal(5)
            with eb.Graph(policy="sufficient", dtype=dtype):
                eb.dot(eb.input(g), W).backward()
            trainer.update()
            p -= 0.1 * (np.sign(0.5 * mean + 0.5 * g) + 0.2 * p)
            mean = 0.99 * mean + 0.01 * g
            np.testing.assert_allclose(W.value(), p, rtol=1e-5 if dtype == "float32" else 1e-12)


ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_page_shows_the_module():
    def lines(text):
        return [line for line in text.splitlines() if line]

    assert lines("\n".join(blocks("python"))) == lines((ROOT / "tests" / "extensions.py").read_text(encoding="utf-8"))


def apply(diff, folder):
    """Change the files in a folder as a diff says; a place is found by its lines, which are there once."""
    for part in re.split(r"^(?=--- )", diff, flags=re.MULTILINE)[1:]:
        header, *hunks = re.split(r"^@@\n", part, flags=re.MULTILINE)
        path = folder / re.search(r"^\+\+\+ b/(.*)$", header, flags=re.MULTILINE)[1]
        text = "" if header.startswith("--- /dev/null") else path.read_text(encoding="utf-8")
        assert path.exists() == bool(text)
        for hunk in hunks:
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] in " -")
            after = "".join(line[1:] for line in lines if line[0] in " +")
            assert not before or text.count(before) == 1, before
            text = text.replace(before, after, 1)
        path.write_text(text, encoding="utf-8")


USES = {
    "tests.fake_device": """
import edbatch as eb

with eb.device("fake"):
    W = eb.ParameterCollection().add_parameters(2, init=[1.0, 2.0])
    with eb.Graph(policy="sufficient"):
        loss = eb.sum([eb.dot(W, eb.tanh(eb.input([0.0, 3.0]))), eb.sum(W)])
    loss.backward()
assert W.device.kind == "fake" and abs(loss.value() - 4.990109) < 1e-5
assert abs(W.grad() - [1, 1.9950548]).max() < 1e-6
""",
}


@pytest.mark.parametrize("diff", blocks("diff"), ids=["device"])
def test_a_diff_adds_what_it_says(diff, tmp_path):
    shutil.copytree(ROOT / "edbatch", tmp_path / "edbatch", ignore=shutil.ignore_patterns("__pycache__"))
    apply(diff, tmp_path)
    (use,) = [use for name, use in USES.items() if name in diff]
    path = os.pathsep.join(map(str, (tmp_path, ROOT)))
    ran = subprocess.run(
        [sys.executable, "-c", use], env=os.environ | {"PYTHONPATH": path}, cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
