"""Results are saved after every point; a run goes on with what there is."""

import json

import pytest

from edbatch.errors import EdBatchError
from edbatch.experiments.charts import Bars
from edbatch.experiments.experiment import Experiment, Setting, grid
from edbatch.experiments.papers import CAVS
from edbatch.experiments.running import run
from edbatch.experiments.saved import Results


class Counting:
    """An experiment of four points that counts them, and is interrupted at one."""

    def __init__(self, until=None):
        self.measured, self.until = [], until
        self.experiment = Experiment(
            "counting", CAVS, "table 9", "That it counts.", lambda _: grid(model="ab", batch=(1, 2)), self.measure,
            [Bars("batch", "n", panel="model")], theirs=[{"model": "a", "batch": 1, "side": "Cavs", "n": 7}],
        )  # fmt: skip

    def measure(self, setting, point):
        if len(self.measured) == self.until:
            raise KeyboardInterrupt
        self.measured.append(point)
        return [{"side": "EdBatch", "n": len(self.measured)}]


def test_an_interrupted_run_goes_on(tmp_path):
    path = tmp_path / "found.json"
    first, second = Counting(until=3), Counting()
    with pytest.raises(KeyboardInterrupt):
        run(first.experiment, Setting(), Results(Setting(), path))
    rows = run(second.experiment, Setting(), Results(Setting(), path))
    assert second.measured == [{"model": "b", "batch": 2}]
    assert [row["n"] for row in rows] == [1, 2, 3, 1]
    assert rows[0] == {"model": "a", "batch": 1, "side": "EdBatch", "n": 1}
    saved = json.loads(path.read_text())
    assert saved["machine"]["cores"]
    assert saved["date"]
    assert saved["experiments"]["counting"]["theirs"][0]["n"] == 7
    third = Counting(until=0)
    assert run(third.experiment, Setting(), Results(Setting(), path)) == rows


def test_nothing_is_saved_without_a_file():
    assert len(run(Counting().experiment, Setting(), Results(Setting()))) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda saved: "{", "no results of `edbatch bench` to go on from"),
        (lambda saved: json.dumps({**saved, "more": 1}), "no results of `edbatch bench` to go on from"),
        (lambda saved: json.dumps({**saved, "edbatch_bench": 9}), "results of format 9; expected 1"),
        (lambda saved: json.dumps({**saved, "quick": True}), "was measured with quick True, and this is with False"),
        (lambda saved: json.dumps({**saved, "machine": {}}), "another machine .processor missing"),
        (
            lambda saved: json.dumps({**saved, "machine": {**saved["machine"], "torch": "0.1"}}),
            "another machine .torch 0.1, here",
        ),
    ],
)
def test_a_file_that_cannot_be_gone_on_from(tmp_path, change, message):
    path = tmp_path / "found.json"
    Results(Setting(), path)
    text = change(json.loads(path.read_text()))
    path.write_text(text)
    with pytest.raises(EdBatchError, match=message):
        Results(Setting(), path)
    assert path.read_text() == text


def test_a_file_that_cannot_be_written(tmp_path):
    with pytest.raises(EdBatchError, match="cannot be written"):
        Results(Setting(), tmp_path / "none" / "found.json")
