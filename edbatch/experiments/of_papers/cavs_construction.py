"""Cavs's figure 9 and table 1: what recording graphs takes of a training step, by size of the graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import thread_time
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.experiments.charts import Lines, Rows
from edbatch.experiments.contest import agree, timed
from edbatch.experiments.experiment import Experiment, Point, Row, Setting
from edbatch.experiments.mini_batches import MiniBatches, samples_of
from edbatch.experiments.papers import CAVS
from edbatch.models import TreeFC

LEAVES, QUICK_LEAVES = (32, 64, 128, 256, 512, 1024), (32, 128)
BATCHES, QUICK_BATCHES = (1, 16, 32, 64, 128, 256), (1, 32)
EPOCH = 8544  # trees
TABLE_1 = {  # computation, s per epoch: Cavs, Fold, DyNet
    "tree-fc": {
        32: (0.6, 3.1, 4.1), 64: (1.1, 3.9, 8.0), 128: (2, 6.2, 16), 256: (4, 10.6, 33.7), 512: (8, 18.5, 70.6),
        1024: (16, 32, 153),
    },
    "tree-lstm": {
        1: (76, 550, 62), 16: (9.8, 69, 12), 32: (6.2, 43, 9.9), 64: (4.1, 29, 7.4), 128: (2.9, 20.5, 5.9),
        256: (2.3, 15.8, 5.4),
    },
}  # fmt: skip
FOLD_1 = {1: 1.1, 16: 7.14, 32: 31.35, 64: 40.1, 128: 46.13, 256: 48.77}  # construction of Tree-LSTM, as printed

Record = Callable[[], eb.Expression]  # the loss of a mini-batch


def full_trees(leaves: int, hidden: int, batch: int) -> tuple[eb.ParameterCollection, dict[str, Record]]:
    """Tree-FC: by a loop over each tree, by a vertex function over all, and from recorded trees."""
    model = eb.ParameterCollection(seed=0)
    embed = model.add_lookup_parameters((1000, hidden), name="embed")
    network = TreeFC(model, hidden, hidden)
    words = np.random.default_rng(0).integers(0, 1000, (batch, leaves))

    def loss(tree: Sequence[int]) -> eb.Expression:
        return network.root([eb.lookup(embed, word) for word in tree]).sum()

    @eb.vertex
    def leaf(v: eb.Vertex) -> None:
        v.scatter(network.leaf(eb.lookup(embed, v.pull())))

    @eb.vertex
    def inner(v: eb.Vertex) -> None:
        v.scatter(network.compose(v.gather(0), v.gather(1)))

    def nested(tree: list[Any]) -> Any:
        while len(tree) > 1:
            tree = list(zip(tree[::2], tree[1::2], strict=True))
        return tree[0]

    graph, tokens = eb.InputGraph.of_tuples([nested(tree) for tree in words.tolist()])
    both, given = eb.vertex(leaf, inner), np.array(tokens)

    def by_vertices() -> eb.Expression:
        return eb.sum([h.sum() for h in both(graph, given).scattered[graph.roots]])

    samples, replayed = [tuple(tree) for tree in words.tolist()], eb.replay(loss)
    return model, {
        "loop": lambda: eb.sum([loss(tree) for tree in samples]),
        "vertex function": by_vertices,
        "replayed": lambda: eb.sum([replayed(tree) for tree in samples]),
    }


def parse_trees(setting: Setting, hidden: int, batch: int) -> tuple[eb.ParameterCollection, dict[str, Record]]:
    """TreeLSTM over the data's trees, the loss that of the roots' label 0."""
    found = MiniBatches("tree-lstm", samples_of("tree-lstm", batch, setting.folder), hidden, batch)
    network, samples = found.network, found.batches[0]

    def loss(sample: Any) -> eb.Expression:
        return network.cross_entropy(network.hidden(*sample)[-1], 0)

    @eb.vertex
    def leaf(v: eb.Vertex) -> None:
        v.scatter(*network.leaf(v.pull()))

    @eb.vertex
    def inner(v: eb.Vertex) -> None:
        v.scatter(*network.compose(*v.gather(0), *v.gather(1)))

    def nested(words: Any, children: Any) -> Any:
        nodes: list[Any] = []
        for word, below in zip(words, children, strict=True):
            nodes.append(tuple(nodes[child] for child in below) if word is None else word)
        return nodes[-1]

    graph, tokens = eb.InputGraph.of_tuples([nested(*sample) for sample in samples])
    both, given = eb.vertex(leaf, inner), np.array(tokens)

    def by_vertices() -> eb.Expression:
        hidden, _ = both(graph, given).scattered
        return eb.sum([network.cross_entropy(h, 0) for h in hidden[graph.roots]])

    replayed = eb.replay(loss)
    return found.model, {
        "loop": lambda: eb.sum([loss(sample) for sample in samples]),
        "vertex function": by_vertices,
        "replayed": lambda: eb.sum([replayed(sample) for sample in samples]),
    }


def step(model: eb.ParameterCollection, record: Record) -> dict[str, float]:
    """Forward and back; seconds of the thread in both, and in recording."""
    start = thread_time()
    with eb.Graph(policy="sufficient"):
        loss = record()
        recorded = thread_time() - start
    model.zero_grad()
    loss.backward()
    return {"construction": recorded, "total": thread_time() - start, "loss": float(loss.value())}


def points(setting: Setting) -> list[Point]:
    """Tree-FC by leaves of a tree, TreeLSTM by trees of a mini-batch."""
    sizes = (QUICK_LEAVES, QUICK_BATCHES) if setting.quick else (LEAVES, BATCHES)
    return [{"model": model, "size": size} for model, of in zip(TABLE_1, sizes, strict=True) for size in of]


def measure(setting: Setting, point: Point) -> list[Row]:
    """One mini-batch, in training."""
    hidden, batch = (64, 16) if setting.quick else (512, 64)
    if point["model"] == "tree-lstm":
        batch = point["size"]
        model, records = parse_trees(setting, hidden, batch)
    else:
        model, records = full_trees(point["size"], hidden, batch)
    sides = {name: partial(step, model, record) for name, record in records.items()}
    agree({name: side()["loss"] for name, side in sides.items()}, "the loss")
    rows = []
    for name, of in timed(sides, setting).items():
        found = of.medians()
        row = {
            "side": name,
            "construction, ms": 1e3 * found["construction"],
            "total, ms": 1e3 * found["total"],
            "construction, %": 100 * found["construction"] / found["total"],
        }
        if point["model"] == "tree-lstm":
            row["construction, s per epoch"] = EPOCH / batch * found["construction"]
            row["computation, s per epoch"] = EPOCH / batch * (found["total"] - found["construction"])
        rows.append(row)
    return rows


def _theirs() -> list[Row]:
    rows = []
    for model, table in TABLE_1.items():
        for size, values in table.items():
            for side, value in zip(("Cavs", "Fold", "DyNet"), values, strict=True):
                row = {"model": model, "size": size, "side": side, "computation, s per epoch": value}
                if (model, side) == ("tree-lstm", "Fold"):
                    row["construction, s per epoch"] = FOLD_1[size]
                rows.append(row)
    return rows


def _of(model: str) -> Callable[[Rows], Rows]:
    return lambda rows: [row for row in rows if row["model"] == model]


EXPERIMENT = Experiment(
    name="cavs-construction",
    paper=CAVS,
    place="figure 9, table 1",
    shows="Recording graphs in a training step: of Tree-FC by leaves of a tree (batch size 64), of TreeLSTM by batch "
    "size; size 512 (quick: 64, batch size 16).",
    points=points,
    measure=measure,
    charts=[
        Lines("size", "construction, ms", title=f"{model}: construction, ms", log=True, of=_of(model))
        for model in TABLE_1
    ]
    + [
        Lines("size", "construction, %", title=f"{model}: construction, % of total", of=_of(model))
        for model in TABLE_1
    ]
    + [Lines("size", "computation, s per epoch", title="tree-lstm: computation, s per epoch", log=True,
             of=_of("tree-lstm"))],
    theirs=_theirs(),
    remark="size: leaves of a tree of Tree-FC, trees of a mini-batch of TreeLSTM. Theirs: table 1, and what the text "
    "prints of Fold's construction with one thread, at size 512; how large an epoch of Tree-FC is, it does not "
    "say. Cavs's construction is said to take a twentieth of DyNet's on TreeLSTM, and 20% of the total on Tree-FC.",
)  # fmt: skip
