"""Models as they are written for DyNet; EdBatch's own `dynet` is there in the place of DyNet."""

import pytest

import edbatch as eb
import edbatch.dynet as dy
from scripts.bench import dynet
from scripts.dynet.in_dynet import MODELS, Task


class InProcess:
    """Answers as a process with DyNet does."""

    more = 0

    def __init__(self, command):
        assert command[0] == "a Python"

    def __enter__(self):
        return self

    def __exit__(self, *error):
        dy.close_cg()

    def ask(self, what, *of):
        if what == "task":
            self.task = Task(dy, *of)
            return True
        dy.close_cg()
        answer = self.task.timed(what, *of) if what in ("forward", "train") else self.task.checked(*of) + self.more
        dy.close_cg()
        return answer

    def timed(self, *question):
        return dict(zip(("wall", "cpu"), self.ask(*question), strict=True))


@pytest.fixture(autouse=True)
def _with_dynet(monkeypatch):
    monkeypatch.setattr(dynet, "Process", InProcess)
    monkeypatch.setenv("DYNET_PYTHON", "a Python")


@pytest.mark.parametrize("model", MODELS)
def test_both_compute_the_same_and_are_timed(tables_of, model):
    (rows,) = tables_of(dynet.main, "--hidden=4", "--batch=2", f"--model={model}").values()
    assert [row[""] for row in rows] == ["forward", "train"]
    assert all(row["replayed, times as fast"] > 0 for row in rows)


def test_numbers_that_differ_end_it(tables_of, monkeypatch):
    monkeypatch.setattr(InProcess, "more", 1)
    with pytest.raises(eb.EdBatchError, match="tree-lstm, DyNet, by gates: loss differ by 1"):
        tables_of(dynet.main, "--hidden=4", "--batch=2", "--model=tree-lstm")


def test_nothing_is_measured_without_dynet(tables_of, monkeypatch):
    monkeypatch.delenv("DYNET_PYTHON")
    with pytest.raises(SystemExit, match="DYNET_PYTHON"):
        tables_of(dynet.main)
