"""What was asked for, from rows of points."""

import pytest

pytest.importorskip("torch", reason="the extra bench")


def row(model, by, ratio, **more):
    return {"model": model, "mode": "forward", "batch": 64, "hidden": 256, "precision": "float32", "by": by,
            "ratio": ratio, "ratio prepared": ratio / 2, "ratio in a row": ratio, **more}  # fmt: skip


def test_fastest_by_hand_of_every_model_counts():
    from scripts.gpu.figures import figures

    rows = [
        row("A", "EdBatch", 1),
        row("A", "PyTorch per sample", 0.1),
        row("A", "PyTorch packed", 9.0),
        row("A", "PyTorch by position", 4.0),
        row("A", "PyTorch by position, CUDA graph", 0.5),
        row("B", "PyTorch by level", 1.0),
        row("B", "PyTorch by level", 0.2, precision="tf32"),
        row("B", "PyTorch by level", 0.2, hidden=512),
        {**row("B", "PyTorch by level, compiled", 1.0), "error": "OutOfMemoryError"},
    ]
    found = {figure["figure"]: figure for figure in figures(rows)}
    (mean,) = (figure for name, figure in found.items() if name.endswith("by hand, geometric mean of A, B"))
    assert mean["measured"] == pytest.approx(2.0)  # of 4 and 1
    assert mean["asked"] == ">= 1.5"
    (best,) = (figure for name, figure in found.items() if "fastest of all" in name)
    assert best["measured"] == pytest.approx((0.25 * 0.5) ** 0.5)
    assert best["asked"] == ""


def test_latency_is_compared_with_the_paper():
    from scripts.gpu.figures import figures

    rows = [row("TreeLSTM", "EdBatch", 1, batch=20, hidden=512, ms=1.5), row("TreeLSTM", "PyTorch by level", 2)]
    paper = [figure for figure in figures(rows) if "paper" in figure["figure"]]
    assert [(figure["measured"], figure["asked"]) for figure in paper] == [(1.5, "<= 1.607")]


@pytest.mark.parametrize(("host", "below"), [(0.5, "yes"), (2.0, "no")])
def test_host_is_compared_with_device(host, below):
    from scripts.gpu.figures import figures

    rows = [row("A", "EdBatch", 1, **{"host ms": host, "device ms": 1.0, "waits": 3})]
    rows += [row("A", "EdBatch", 1, **{"host ms": 9.0, "device ms": 1.0, "waits": 3})]  # of a point with other peers
    assert [figure["measured"] for figure in figures(rows)] == [below, 3]
