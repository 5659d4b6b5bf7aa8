"""Models as they are written for DyNet; EdBatch's own `dynet` is there in the place of DyNet."""

import pytest

import edbatch.dynet as dy

pytest.importorskip("torch", reason="the extra bench")


class InProcess:
    """Answers as a process with DyNet does."""

    def __init__(self, command):
        assert command[0] == "a Python"

    def __enter__(self):
        return self

    def __exit__(self, *error):
        dy.close_cg()

    def ask(self, what, *of):
        from scripts.dynet.in_dynet import Task

        if what == "task":
            self.task = Task(dy, *of)
            return True
        dy.close_cg()
        answer = self.task.timed(what, *of) if what in ("forward", "train") else getattr(self.task, what)(*of)
        dy.close_cg()
        return answer

    def timed(self, *question):
        return dict(zip(("wall", "cpu"), self.ask(*question), strict=True))


@pytest.mark.parametrize("model", ["TreeLSTM", "BiLSTM tagger", "LatticeLSTM"])
def test_both_compute_the_same_and_are_timed(tables_of, monkeypatch, model):
    from scripts.bench import dynet_tasks

    monkeypatch.setattr(dynet_tasks, "Process", InProcess)
    monkeypatch.setenv("DYNET_PYTHON", "a Python")
    beside, parts = tables_of(dynet_tasks.main, "--hidden=4", "--batch=2", f"--model={model}").values()
    assert [row[""] for row in beside] == ["forward", "train"]
    assert all(row["replayed, times as fast"] > 0 for row in beside)
    assert parts[0]["recording, CPU ms"] > 0


def test_numbers_that_differ_end_it(tables_of, monkeypatch):
    from scripts.bench import dynet_tasks

    class Wrong(InProcess):
        def ask(self, what, *of):
            found = super().ask(what, *of)
            return found + 1 if what == "checked" else found

    monkeypatch.setattr(dynet_tasks, "Process", Wrong)
    monkeypatch.setenv("DYNET_PYTHON", "a Python")
    with pytest.raises(SystemExit, match="TreeLSTM: loss"):
        tables_of(dynet_tasks.main, "--hidden=4", "--batch=2", "--model=TreeLSTM")


def test_nothing_is_measured_without_dynet(tables_of, monkeypatch):
    from scripts.bench import dynet_tasks

    monkeypatch.delenv("DYNET_PYTHON", raising=False)
    with pytest.raises(SystemExit, match="DYNET_PYTHON"):
        tables_of(dynet_tasks.main)
