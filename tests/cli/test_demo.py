"""`edbatch demo`: one table and one picture of what policies do."""

import re
import sys

import numpy as np

import edbatch as eb
from edbatch.base import drawing
from edbatch.base.lazy import LazyModule
from edbatch.cli import demo
from edbatch.models.workloads import WORKLOADS
from tests.pages import README


def test_what_is_measured():
    for model in ("trees", "tagger", "lattices"):
        found = demo._measured(model, samples=3, hidden=4)
        assert list(found) == ["unbatched", "depth", "agenda", "critical-path", "learned"]
        unbatched, learned = found["unbatched"].sums, found["learned"].sums
        for of in found.values():
            assert unbatched["lower_bound"] == of.sums["lower_bound"] <= of.sums["batches"] <= unbatched["batches"]
            assert of.difference < 1e-6
            assert 0 < of.seconds.total() < 60
        assert model == "lattices" or learned["batches"] == learned["lower_bound"]


def test_what_it_says_is_so(edbatch, monkeypatch, tmp_path):
    """At its own sizes, as README has it: depth, agenda and the learned machines differ by 2 x in batches."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "ROUNDS", 1)
    status, out, err = edbatch("demo", "--hidden", 4)
    assert (status, err) == (0, "")
    assert "wrote edbatch-demo.svg" in out
    texts = re.findall(r"<!-- (.*?) -->", (tmp_path / "edbatch-demo.svg").read_text())
    assert {"trees", "tagger", "lattices", "depth", "agenda", "critical-path", "learned"} <= set(texts)
    over = [line.split()[-5:] for line in out.splitlines() if "batches / bound" in line]
    trees, tagger, lattices = ([float(of) for of in line] for line in over)
    said = " ".join(README.read_text(encoding="utf-8").split())
    assert "trees {1} by depth, {2} by agenda, {4} learned; ".format(*over[0]) in said
    assert "tagger {1}, {2}, {4}; lattices {5}, {6}, {7}.".format(*over[1], *(over[2][at] for at in (1, 2, 4))) in said
    assert f"{len(WORKLOADS)}, on your data" in said
    for _, depth, _, _, learned in (trees, tagger, lattices):
        assert depth > 1.8 * learned
    assert trees[2] > 1.8 * trees[4]  # agenda
    assert lattices[2] > 1.5 * lattices[4]
    assert (trees[4], tagger[4]) == (1, 1)
    assert 1 <= lattices[4] <= lattices[3]
    assert max(map(len, out.splitlines())) <= 100


def test_values_that_differ_are_a_fault(fails, monkeypatch, tmp_path):
    forward = eb.forward

    def wrong(outputs):
        return forward(outputs) + np.float32(outputs[0].graph.policy.name == "agenda")

    monkeypatch.setattr(eb, "forward", wrong)
    path = tmp_path / "picture.svg"
    said = fails("demo", "--samples", 1, "--hidden", 4, "--svg", path)
    assert said == "trees: agenda differs from unbatched by 1.0e+00; please report it"
    assert not path.exists()


def test_without_a_library_that_draws_the_table_is_there(edbatch, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr(drawing, "figures", LazyModule("matplotlib.figure"))
    status, out, _ = edbatch("demo", "--samples", 1, "--hidden", 4)
    assert status == 0
    assert "batches / bound" in out
    assert "no picture: edbatch-demo.svg: Matplotlib is not installed; expected pip install 'edbatch[plot]'" in out
    assert not list(tmp_path.iterdir())
