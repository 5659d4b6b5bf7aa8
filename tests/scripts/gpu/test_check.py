"""The command that checks a GPU, run on the CPU; and its parts that decide what is right and what runs."""

import json
import os
import signal

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra bench")

QUICK = ["--device", "cpu", "--quick", "--models", "TreeLSTM"]


@pytest.fixture(autouse=True)
def made_up_data(monkeypatch):
    """The same on every machine, and as many threads afterwards as before."""
    monkeypatch.delenv("EDBATCH_DATA", raising=False)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def run(tmp_path, *more):
    from scripts.gpu import check

    file = tmp_path / "results.json"
    code = check.main([*QUICK, "--json", str(file), *more])
    return code, json.loads(file.read_text())


def test_everything_is_in_the_tables_and_in_the_file(tmp_path, capsys):
    code, found = run(tmp_path)
    assert code == 0
    assert found["data"] == "made-up"
    assert {row["compared"] for row in found["correctness"]} == {"float32 with the CPU's", "float32 with float64"}
    assert all(row["right"] for row in found["correctness"])
    assert found["ceilings"].keys() == {"copy, B/s", "float32, FLOP/s"}
    key = [row["by"] for row in found["points"] if (row["mode"], row["batch"]) == ("training", 4)]
    assert key == ["EdBatch", "PyTorch per sample", "PyTorch by level"]
    own = next(row for row in found["points"] if row["batch"] == 4)
    assert own["batches"] > 0
    assert own["stages, ms"].keys() >= {"construction", "execution"}
    assert 0 < own["% of matrix rate"] < 100
    assert own["host ms"] <= own["ms"]
    assert found["asked for"][0]["figure"] == "TreeLSTM forward, hidden 256, batch 10; the paper: 2.78 ms"
    assert found["not run"] == found["failed"] == []
    printed = capsys.readouterr().out
    assert "### TreeLSTM, training, made-up data" in printed
    assert "- torch: " in printed
    from scripts.gpu import check

    assert check.main(["--show", str(tmp_path / "results.json")]) == 0
    assert capsys.readouterr().out == printed


def test_what_was_measured_is_kept_when_the_run_is_ended(tmp_path, capsys, monkeypatch):
    from scripts.gpu import check

    def point(_, point, *given):
        seen.append(json.loads((tmp_path / "results.json").read_text()))
        if point.training:
            raise KeyboardInterrupt
        return [{**point.place, "by": "EdBatch", "ratio": 1.0, "ms": 1.0}]

    seen = []
    monkeypatch.setattr(check.parts, "measured", point)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    found = json.loads((tmp_path / "results.json").read_text())
    assert [row["mode"] for row in found["points"]] == ["forward", "forward"]
    assert found["correctness"]
    assert [len(before["points"]) for before in seen] == [0, 1, 2]
    assert seen[0]["correctness"] == found["correctness"]
    assert seen[0]["ceilings"].keys() == {"copy, B/s", "float32, FLOP/s"}
    assert "### TreeLSTM, forward" in capsys.readouterr().out  # and shown


def test_what_there_is_no_time_for_is_listed(tmp_path, capsys):
    code, found = run(tmp_path, "--minutes", "0")
    assert code == 0
    assert found["points"] == []
    assert found["not run"][0] == "TreeLSTM, correctness at hidden 16"
    assert "TreeLSTM forward 4 16 float32 per_sample" in found["not run"]
    assert "Not run, for want of time: TreeLSTM, correctness" in capsys.readouterr().out


def test_side_that_fails_is_reported_and_the_rest_goes_on(tmp_path, capsys, monkeypatch):
    from edbatch.experiments.peers.trees import TreeByLevel

    def hidden(self, batch):
        raise RuntimeError("no kernel image")

    monkeypatch.setattr(TreeByLevel, "hidden", hidden)
    code, found = run(tmp_path)
    assert code == 1
    errors = {row["by"]: row.get("error") for row in found["points"] if row["batch"] == 4}
    assert errors == {"EdBatch": None, "PyTorch per sample": None, "PyTorch by level": "RuntimeError: no kernel image"}
    assert "### Failed" in capsys.readouterr().out


def test_parts_that_fail_are_reported_and_the_rest_goes_on(tmp_path, capsys, monkeypatch):

    def fail(*given):
        raise MemoryError("too large")

    from scripts.gpu import correctness, measure

    monkeypatch.setattr(measure, "measure", fail)
    monkeypatch.setattr(correctness, "values", fail)
    code, found = run(tmp_path)
    assert code == 1
    assert found["correctness"] == found["points"] == []
    assert {row["error"] for row in found["failed"]} == {"MemoryError: too large"}
    parts = [row["part"] for row in found["failed"]]
    assert parts[:2] == ["TreeLSTM, correctness at hidden 16", "TreeLSTM forward 10 256 float32"]
    assert "TreeLSTM training 4 16 float32 per_sample" in parts
    printed = capsys.readouterr().out
    assert all(part in printed for part in parts)
    assert "### Ceilings" in printed


def point_that_may_die(tasks, point, *given):
    """In place of `parts.measured`: of three points one raises an error, and one takes the process along."""
    at = point.place["mode"], point.batch
    if at == ("forward", 4):
        os.kill(os.getpid(), signal.SIGKILL)
    if at == ("training", 4):
        raise torch.OutOfMemoryError("CUDA out of memory")
    return [{**point.place, "by": "EdBatch", "ratio": 1.0, "ms": 1.0}]


def nothing(*given):
    """In place of other parts."""
    return {}


def test_points_that_take_their_process_along_leave_the_others_alone(tmp_path, capsys, monkeypatch):
    """As on a GPU: parts run in another process."""
    from scripts.gpu import check
    from scripts.gpu.worker import Elsewhere

    monkeypatch.setattr(check, "Here", Elsewhere)
    monkeypatch.setattr(check.parts, "measured", point_that_may_die)
    for name in ("correctness", "machine", "ceilings"):
        monkeypatch.setattr(check.parts, name, nothing)
    code, found = run(tmp_path)
    assert code == 1
    assert [row["batch"] for row in found["points"]] == [10]
    assert found["failed"] == [
        {"part": "TreeLSTM forward 4 16 float32 per_sample", "error": "its process died (signal SIGKILL)"},
        {"part": "TreeLSTM training 4 16 float32 per_sample", "error": "OutOfMemoryError: CUDA out of memory"},
    ]
    printed = capsys.readouterr().out
    assert "signal SIGKILL" in printed
    assert "### TreeLSTM, forward" in printed


def test_ceilings_and_a_machine_that_cannot_be_asked_keep_nothing_from_being_measured(tmp_path, monkeypatch):
    from scripts.gpu import ceilings, parts

    def fail(*given):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(ceilings, "copy_rate", fail)
    monkeypatch.setattr(parts.host, "machine", fail)
    code, found = run(tmp_path)
    assert code == 1
    assert found["machine"] == {"device": "cpu"}
    assert [row["part"] for row in found["failed"]] == ["machine", "ceilings"]
    assert {row["mode"] for row in found["points"]} == {"forward", "training"}
    assert "% of matrix rate" not in found["points"][0]


def test_profiler_that_fails_leaves_times(tmp_path, monkeypatch):

    def fail(*given):
        raise RuntimeError("no CUPTI")

    from scripts.gpu import measure

    monkeypatch.setattr(measure, "_inside", fail)
    code, found = run(tmp_path)
    assert code == 0
    assert {row["profile"] for row in found["points"]} == {"RuntimeError: no CUPTI"}
    assert all(row["ms"] > 0 for row in found["points"])


@pytest.mark.parametrize("model", ["TreeLSTM", "BiLSTM tagger", "LatticeLSTM"])
def test_a_gpu_computes_what_the_cpu_does(cuda, model):
    """Emulated, if there is none."""
    from edbatch.experiments.peers.tasks import MODELS
    from scripts.gpu.correctness import check

    rows = check(MODELS[model](None), cuda.name, 8, 3)
    assert all(row["right"] for row in rows), rows
    (again,) = (row for row in rows if "CUDA graphs" in row["compared"])
    assert again["by"] == 0
    assert "(0 CUDA graphs served)" not in again["compared"]


def test_wrong_results_are_found(cuda, monkeypatch):
    from edbatch.experiments.peers.tasks import MODELS
    from scripts.gpu import correctness

    right = correctness.values

    def values(task, samples, hidden, device, dtype="float32", times=1):
        found = right(task, samples, hidden, device, dtype, times)
        if device != "cpu":
            found["gradient of U"] = found["gradient of U"] * np.float32(1.001 + 0.001 * times)
        return found

    monkeypatch.setattr(correctness, "values", values)
    rows = correctness.check(MODELS["TreeLSTM"](None), cuda.name, 8, 3)
    assert {row["compared"].split(",")[0]: row["right"] for row in rows} == {
        "float32 with the CPU's": False,
        "float32 with float64": False,
        "float64 with the CPU's": False,
        "float32": False,  # the third time
        "tf32 with float64": True,
        "bf16 with float64": True,
    }
    assert {row["most off"] for row in rows[:4]} == {"gradient of U"}


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_is_wrong(bad):
    from scripts.gpu.correctness import difference

    assert difference(np.array([bad, 1.0]), np.array([1.0, 1.0])) == np.inf


def test_all_points_are_there_once_the_important_ones_first():
    from scripts.gpu.points import Point, asked_for, points

    models = ["TreeLSTM", "BiLSTM tagger", "LatticeLSTM"]
    found = points(models, "cuda")
    assert len(set(found)) == len(found)
    assert found[:3] == [Point(model, 64, 256, per_sample=True) for model in models]
    assert [asked_for(point) for point in found] == [at < 7 for at in range(len(found))]  # and the paper's
    places = {(point.model, point.batch, point.hidden, point.training) for point in found}
    assert places >= {
        (model, batch, hidden, training)
        for model in models
        for batch in (1, 4, 16, 64, 256)
        for hidden in (64, 256, 512, 1024)
        for training in (False, True)
    }


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
def test_precision_is_put_back(precision):
    from scripts.gpu.ceilings import torch_precision

    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    with torch_precision(precision):
        assert torch.backends.cudnn.allow_tf32 == (precision != "float32")
    assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == before


def test_gpu_that_is_missing_and_models_that_are_unknown_are_said(capsys):
    from scripts.gpu import check

    assert check.main(["--device", "cpu", "--models", "GPT"]) == 1
    assert "GPT; expected some of TreeLSTM, BiLSTM tagger, LatticeLSTM" in capsys.readouterr().err
    if not torch.cuda.is_available():
        assert check.main([]) == 1
        assert "PyTorch finds no GPU; --device cpu runs without one" in capsys.readouterr().err
