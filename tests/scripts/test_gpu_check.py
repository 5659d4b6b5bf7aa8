"""The command that checks a GPU, run on the CPU; and its parts that decide what is right and what runs."""

import json
from contextlib import nullcontext

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
    import gpu_check

    file = tmp_path / "results.json"
    code = gpu_check.main([*QUICK, "--json", str(file), *more])
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
    own = found["points"][0]
    assert own["batches"] > 0
    assert own["stages, ms"].keys() >= {"construction", "execution"}
    assert 0 < own["% of matrix rate"] < 100
    assert own["host ms"] <= own["ms"]
    assert found["asked for"][0]["figure"] == "TreeLSTM forward, hidden 256, batch 10; the paper: 2.78 ms"
    assert found["not run"] == []
    printed = capsys.readouterr().out
    assert "### TreeLSTM, training, made-up data" in printed
    assert "- torch: " in printed
    import gpu_check

    assert gpu_check.main(["--show", str(tmp_path / "results.json")]) == 0
    assert capsys.readouterr().out == printed


def test_what_was_measured_is_kept_when_the_run_is_killed(tmp_path, monkeypatch):
    import gpu_check

    def point(point, *given, **named):
        if point.training:
            raise KeyboardInterrupt
        return [{**point.place, "by": "EdBatch"}]

    monkeypatch.setattr(gpu_check, "run_point", point)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    found = json.loads((tmp_path / "results.json").read_text())
    assert [row["mode"] for row in found["points"]] == ["forward"]
    assert found["correctness"]


def test_what_there_is_no_time_for_is_listed(tmp_path, capsys):
    code, found = run(tmp_path, "--minutes", "0")
    assert code == 0
    assert found["points"] == []
    assert found["not run"][0] == "TreeLSTM forward 4 16 float32 per_sample"
    assert "Not run, for want of time: TreeLSTM forward" in capsys.readouterr().out


def test_side_that_fails_is_reported_and_the_rest_goes_on(tmp_path, capsys, monkeypatch):
    from torch_trees import TreeByLevel

    def hidden(self, batch):
        raise RuntimeError("no kernel image")

    monkeypatch.setattr(TreeByLevel, "hidden", hidden)
    code, found = run(tmp_path)
    assert code == 1
    errors = {row["by"]: row.get("error") for row in found["points"] if row["batch"] == 4}
    assert errors == {"EdBatch": None, "PyTorch per sample": None, "PyTorch by level": "RuntimeError: no kernel image"}
    assert "### Failed" in capsys.readouterr().out


def test_point_and_comparison_that_fail_are_reported(tmp_path, monkeypatch):
    import gpu_correctness
    import gpu_points

    def fail(*given):
        raise MemoryError("too large")

    monkeypatch.setattr(gpu_points, "measure", fail)
    monkeypatch.setattr(gpu_correctness, "values", fail)
    code, found = run(tmp_path)
    assert code == 1
    assert [row["compared"] for row in found["correctness"]] == ["MemoryError: too large"]
    assert {row["error"] for row in found["points"]} == {"MemoryError: too large"}


def test_wrong_results_are_found(tmp_path, monkeypatch):
    import gpu_correctness

    right = gpu_correctness.values

    def values(task, samples, hidden, device, dtype="float32"):
        found = right(task, samples, hidden, device, dtype)
        if device == "other":
            found["gradient of U"] *= np.float32(1.001)
        return found

    monkeypatch.setattr(gpu_correctness, "values", values)
    monkeypatch.setattr(gpu_correctness, "on", lambda device: nullcontext())
    monkeypatch.setattr(gpu_correctness.eb, "options", lambda **changed: nullcontext())
    from gpu_tasks import all_tasks

    rows = gpu_correctness.check(all_tasks(None)["TreeLSTM"], "other", 8, 3)
    assert {row["compared"]: row["right"] for row in rows} == {
        "float32 with the CPU's": False,
        "float32 with float64": False,
        "float64 with the CPU's": False,
        "tf32 with float64": True,
        "bf16 with float64": True,
    }
    assert {row["most off"] for row in rows} == {"gradient of U"}


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_is_wrong(bad):
    from gpu_correctness import difference

    assert difference(np.array([bad, 1.0]), np.array([1.0, 1.0])) == np.inf


def test_all_points_are_there_once_the_important_ones_first():
    from gpu_points import Point, points

    models = ["TreeLSTM", "BiLSTM tagger", "LatticeLSTM"]
    found = points(models, "cuda")
    assert len(set(found)) == len(found)
    assert found[:3] == [Point(model, 64, 256, per_sample=True, graphed=True) for model in models]
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
    from gpu_ceilings import torch_precision

    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    with torch_precision(precision):
        assert torch.backends.cudnn.allow_tf32 == (precision != "float32")
    assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == before


def test_gpu_that_is_missing_and_models_that_are_unknown_are_said(capsys):
    import gpu_check

    assert gpu_check.main(["--device", "cpu", "--models", "GPT"]) == 1
    assert "GPT; expected some of TreeLSTM, BiLSTM tagger, LatticeLSTM" in capsys.readouterr().err
    if not torch.cuda.is_available():
        assert gpu_check.main([]) == 1
        assert "PyTorch finds no GPU; --device cpu runs without one" in capsys.readouterr().err
