"""The command that checks a GPU, run on the CPU; and its parts that decide what is right and what runs."""

import json
import os
import signal

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra bench")

from scripts.bench.contest import Task  # noqa: E402
from scripts.gpu import check, correctness  # noqa: E402

SMALL = ["--json", "--device=cpu", "--tests=0", "--rounds=2", "--batch=3", "--hidden=8", "--model=tree-lstm"]


@pytest.fixture(autouse=True)
def _made_up_data(monkeypatch):
    monkeypatch.delenv("EDBATCH_DATA", raising=False)


def run(capsys, *more):
    tables = check.main([*SMALL, *more])
    found = json.loads(capsys.readouterr().out)
    found.pop("machine")
    assert found == json.loads(json.dumps(tables))
    return found


@pytest.mark.cpu
def test_everything_is_in_the_tables(capsys):
    found = run(capsys)
    assert found.keys() == {"Correctness", "Times"}
    assert {row["compared"] for row in found["Correctness"]} == {"float32 with the CPU's", "float32 with float64"}
    assert check.right(found)
    sides = ["EdBatch", "PyTorch per sample", "PyTorch by hand"]
    assert [(row["mode"], row["by"]) for row in found["Times"]] == [
        (of, by) for of in ("forward", "training") for by in sides
    ]
    for row in found["Times"]:
        assert row["ms"] >= max(row["host ms"], row["ms prepared"]) > 0
        assert row["ms, times"] > 0


@pytest.mark.cpu
def test_what_there_is_no_time_for_is_listed(capsys):
    found = run(capsys, "--minutes=0")
    assert found.keys() == {"Not run"}
    assert found["Not run"][0]["part"] == "tree-lstm, correctness at hidden 8"
    assert {"part": "tree-lstm forward, batch 3, hidden 8, float32"} in found["Not run"]


def point_that_may_die(point, device, rounds):
    """In place of `check.measured`: one raises an error, and one takes the process along."""
    if point.batch == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if point.training:
        raise torch.OutOfMemoryError("CUDA out of memory")
    return [{"model": point.model, "mode": point.mode, "batch": point.batch, "hidden": point.hidden, "by": "EdBatch"}]


def nothing(*given):
    """In place of other parts."""
    return []


@pytest.mark.cpu
@pytest.mark.slow
def test_points_that_fail_leave_the_others_alone(capsys, monkeypatch):
    monkeypatch.setattr(check, "measured", point_that_may_die)
    monkeypatch.setattr(check, "correct", nothing)
    found = run(capsys, "--batch", "3", "10")
    assert [(row["mode"], row["batch"]) for row in found["Times"]] == [("forward", 10)]
    errors = {row["part"].split(",")[0]: row["error"] for row in found["Failed"]}
    assert errors["tree-lstm forward"] == "its process died (signal SIGKILL)"
    assert errors["tree-lstm training"] == "OutOfMemoryError: CUDA out of memory"
    assert not check.right(found)


@pytest.mark.cpu
@pytest.mark.slow
def test_what_was_measured_is_kept_when_the_run_is_ended(capsys, monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(check.Check, "_points", interrupted)
    found = run(capsys)
    assert found["Correctness"]
    assert found["Failed"] == [{"part": "all", "error": "interrupted"}]


def test_a_gpu_that_is_missing_is_said():
    if not torch.cuda.is_available():
        with pytest.raises(SystemExit, match=r"no NVIDIA driver was found|finds no GPU"):
            check.main([])


@pytest.mark.parametrize("model", check.MODELS)
def test_a_gpu_computes_what_the_cpu_does(cuda, model):
    """Emulated, if there is none."""
    rows = correctness.check(Task(model, 20, None), cuda.name, 8, 3)
    assert all(row["right"] for row in rows), rows
    (again,) = (row for row in rows if "CUDA graphs" in row["compared"])
    assert again["by"] == 0
    assert "(0 CUDA graphs served)" not in again["compared"]


def test_wrong_results_are_found(cuda, monkeypatch):
    right = correctness.Own.values

    def values(self, samples, **how):
        found = right(self, samples, **how)
        if self.device != "cpu":
            found["U"] = found["U"] * np.float32(1.002)
        return found

    monkeypatch.setattr(correctness.Own, "values", values)
    rows = correctness.check(Task("tree-lstm", 20, None), cuda.name, 8, 3)
    assert {row["compared"]: row["right"] for row in rows if "sixth" not in row["compared"]} == {
        "float32 with the CPU's": False, "float32 with float64": False, "float64 with the CPU's": False,
        "tf32 with float64": True, "bf16 with float64": True,
    }  # fmt: skip
    assert {row["most off"] for row in rows[:3]} == {"U"}


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_is_wrong(bad):
    assert correctness.difference(np.array([bad, 1.0]), np.array([1.0, 1.0])) == np.inf
