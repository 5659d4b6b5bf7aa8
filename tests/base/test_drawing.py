"""Boxes and arrows: where they lie, and what is said when they cannot be drawn."""

import re
import sys
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from edbatch.base.drawing import Arrow, Box, Diagram, _layers
from edbatch.errors import EdBatchError

pytest.importorskip("matplotlib")
pytest.importorskip("igraph")


def texts(path):
    """The texts of an SVG, which Matplotlib notes beside their outlines."""
    return re.findall(r"<!-- (.*?) -->", path.read_text(), re.DOTALL)


def test_all_texts_are_there(tmp_path):
    made = Diagram("two\nlines", [Box("a <b> & $c$"), Box("d", 3)], [Arrow(0, 1, "7")], ["what it means"])
    made.write(tmp_path / "made.svg")
    ElementTree.parse(tmp_path / "made.svg")
    assert {"two", "lines", "a &lt;b> &amp; $c$", "d", "7", "what it means"} <= {
        line.replace("&gt;", ">") for text in texts(tmp_path / "made.svg") for line in text.splitlines()
    }


def test_boxes_of_one_layer_do_not_lie_on_one_another():
    """Nor parts that do not hang together: these are beside one another."""
    ends = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (5, 6), (3, 6), (8, 7), (7, 9), (8, 9)]
    layers = _layers(11, ends)
    assert [sorted(layer) for layer in layers] == [[0, 3, 8, 10], [1, 4, 7], [2, 5, 9], [6]]
    for layer in layers:
        places = [layer[box] for box in sorted(layer, key=[0, 1, 2, 3, 4, 5, 6, 8, 7, 9, 10].index)]
        assert all(before + 1 <= after for before, after in pairwise(places))


def test_another_ending(tmp_path):
    with pytest.raises(EdBatchError, match=r"made.gif: expected a name that ends with .png, .svg, .pdf"):
        Diagram("title", [Box("a")]).write(tmp_path / "made.gif")
    assert not list(tmp_path.iterdir())


def test_more_than_a_picture_holds(tmp_path):
    with pytest.raises(EdBatchError, match="2,000 boxes do not fit into one picture"):
        Diagram("title", [Box("a")] * 2000).write(tmp_path / "made.png")


@pytest.mark.parametrize(("module", "name"), [("matplotlib.figure", "Matplotlib"), ("igraph", "igraph")])
def test_what_is_not_installed(tmp_path, monkeypatch, module, name):
    from edbatch.base import drawing
    from edbatch.base.lazy import LazyModule

    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(drawing, {"igraph": "igraph"}.get(module, "figures"), LazyModule(module))
    with pytest.raises(EdBatchError, match=rf"{name} is not installed; expected pip install 'edbatch\[plot\]'"):
        Diagram("title", [Box("a")]).write(tmp_path / "made.png")
