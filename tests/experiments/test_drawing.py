"""Pictures of rows of every kind."""

import pytest

from edbatch.errors import EdBatchError
from edbatch.experiments.charts import Bars, Grid, Lines, Stack
from edbatch.experiments.drawing import _places, draw
from edbatch.experiments.experiment import Experiment, Pivot
from edbatch.experiments.papers import CAVS
from edbatch.experiments.text import shown

ROWS = [
    {"model": model, "batch": batch, "side": side, "n": batch * n}
    for model in "abcd"
    for batch in (1, 8)
    for n, side in enumerate(("EdBatch", "other"))
]
THEIRS = [{"model": "a", "batch": 1, "side": "EdBatch", "n": 3.0}]


def experiment(*charts, **more):
    return Experiment("x", CAVS, "figure 1", "A picture.", lambda _: [], lambda *_: [], charts, theirs=THEIRS, **more)


@pytest.mark.parametrize("kind", [Lines, Bars, Stack])
@pytest.mark.parametrize("wide", [False, True])
def test_panels(tmp_path, kind, wide):
    pytest.importorskip("matplotlib")
    missing = {"model": "a", "batch": 1, "side": "third", "missing": "it is not installed"}
    chart = kind("batch", "n", panel="model", wide=wide)
    assert list(chart.panels(ROWS)) == ["a", "b", "c", "d"]
    draw(experiment(chart), [*ROWS, missing], tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 10_000


def test_a_grid_of_numbers(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [{"experts": x, "batch": y, "speed-up": x * y + 0.5} for x in (1, 10) for y in (1, 100)]
    draw(experiment(Grid("experts", "speed-up", side="batch")), rows, tmp_path / "x.svg")
    assert b"100" in (tmp_path / "x.svg").read_bytes()


def test_wide_panels_have_lines_of_their_own():
    assert _places([False] * 4) == [(0, slice(0, 1)), (0, slice(1, 2)), (0, slice(2, 3)), (1, slice(0, 1))]
    assert _places([False, True, False]) == [(0, slice(0, 1)), (1, slice(0, 3)), (2, slice(0, 1))]


def test_a_picture_without_what_draws_it(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    monkeypatch.setattr(
        "edbatch.experiments.drawing.figures", __import__("edbatch").base.later.Later("matplotlib.figure")
    )
    with pytest.raises(EdBatchError, match=r"Matplotlib is not installed; expected pip install 'edbatch\[plot\]'"):
        draw(experiment(Bars("batch", "n")), ROWS, tmp_path / "x.png")


def test_tables_beside_the_papers_own_numbers():
    missing = {"model": "a", "batch": 1, "side": "third", "missing": "it is not installed"}
    text = shown(experiment(pivot=Pivot(("model", "batch"), "n")), [*ROWS, missing, missing])
    assert "| model   |   batch |   EdBatch |   other |" in text
    assert text.count("Not measured: third: it is not installed.") == 1
    assert "Theirs (Xu et al., USENIX ATC 2018; NVIDIA Titan X" in text
