import re
import shutil
import subprocess

import pytest

from edbatch.policy import TypedGraph, learn
from edbatch.policy.fsm import FSM


def renamed(graph, names):
    return TypedGraph(graph.types, graph.indptr, graph.operands, tuple(names))


def test_short_names_stand_in_the_boxes(tree):
    text = learn([tree(4)], encoding="base", progress=False).to_dot()
    assert text.startswith('digraph "fsm-base" {')
    assert "<b>I</b>" in text
    assert "legend" not in text
    assert " -> end" in text


def test_long_names_go_to_a_legend_and_are_escaped(tree):
    graph = tree(4)
    names = [f"TreeLSTM[{name}]<64 & more>" for name in graph.names]
    text = learn([renamed(graph, names)], encoding="base", progress=False).to_dot()
    assert "TreeLSTM[I]&lt;64 &amp; more&gt;" in text
    assert "<b>t" in text


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("encoding", ["base", "sort", "phase", "critical"])
def test_graphviz_reads_it(random_graph, encoding):
    graphs = [random_graph(seed, 60, 4, ["<a>", 'b"', "c & d", "a very long type name"]) for seed in range(9)]
    fsm = learn(graphs, encoding=encoding, episodes=50, progress=False)
    if isinstance(fsm, FSM):
        subprocess.run(["dot", "-Tsvg"], input=fsm.to_dot().encode(), check=True, capture_output=True)


def test_as_many_arrows_begin_as_end(tree):
    graphs = [tree(depth) for depth in (3, 4, 5)]
    text = learn(graphs, encoding="base", progress=False).to_dot()
    arrows = re.findall(r'(\w+) -> (\w+) \[label="(\d+)"\]', text)
    begun, ended = (sum(int(n) for *ends, n in arrows if ends[at] == name) for at, name in ((0, "start"), (1, "end")))
    assert begun == ended > 0
