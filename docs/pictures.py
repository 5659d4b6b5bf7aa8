"""The pictures of the guide, drawn by the library itself: `python docs/pictures.py` writes docs/pictures/*.svg anew.

They are of made-up lattices and trees; the same every time.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from matplotlib.figure import Figure

import edbatch as eb
from edbatch.base.picture import write_figure
from edbatch.data.random_lattices import random_lattices

FOLDER = Path(__file__).parent / "pictures"
POLICIES = ("depth", "agenda", "sufficient", "learned")
COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#8172b3")


def tree_graph(policy: str = "sufficient") -> eb.Graph:
    """Three trees of the README, op by op."""
    model = eb.ParameterCollection(seed=0)
    embed, W = model.add_lookup_parameters((10, 4), name="embed"), model.add_parameters((4, 8), name="W")

    def encode(tree):
        if isinstance(tree, int):
            return eb.lookup(embed, tree)
        return eb.tanh(W @ eb.concatenate([encode(part) for part in tree]))

    with eb.Graph(policy=policy) as graph:
        eb.forward([encode(tree) for tree in (((3, 7), 9), (4, (8, (1, 2))), (5, 6))])
    return graph


class Lattice:
    """Cells for characters and for words, and scores of a tag: three types of node, and means where arcs meet."""

    def __init__(self) -> None:
        model = eb.ParameterCollection(seed=0)
        self.U, self.V, self.O = (model.add_parameters((4, 4), name=name) for name in ("U", "V", "O"))
        self.embed = model.add_lookup_parameters((400, 4), name="embed")

    @eb.cell
    def character(self, h, number: int):
        return eb.tanh(self.U @ h + eb.lookup(self.embed, number))

    @eb.cell
    def word(self, h, number: int):
        return eb.tanh(self.V @ h + eb.lookup(self.embed, number))

    @eb.cell
    def tag(self, h):
        return eb.softmax(self.O @ h)

    def tags(self, arcs):
        states = [eb.zeros(4)]
        for node in range(1, len(arcs)):
            ends = [
                (self.character if source == node - 1 else self.word)(states[source], number)
                for source, number in arcs[node]
            ]
            states.append(eb.mean(ends) if len(ends) > 1 else ends[0])
        return [self.tag(state) for state in states[1:]]


class Tree:
    """Cells for leaves, for inner nodes, and for the label of either."""

    def __init__(self) -> None:
        model = eb.ParameterCollection(seed=0)
        self.embed = model.add_lookup_parameters((10, 4), name="embed")
        self.W, self.O = model.add_parameters((4, 8), name="W"), model.add_parameters((4, 4), name="O")

    @eb.cell
    def leaf(self, word: int):
        return eb.tanh(eb.lookup(self.embed, word))

    @eb.cell
    def inner(self, left, right):
        return eb.tanh(self.W @ eb.concatenate([left, right]))

    @eb.cell
    def label(self, h):
        return eb.softmax(self.O @ h)

    def labels(self, tree, found):
        h = self.leaf(tree) if isinstance(tree, int) else self.inner(*(self.labels(part, found) for part in tree))
        found.append(self.label(h))
        return h


def labelled_tree_graph(network: Tree) -> eb.Graph:
    """Three trees with a label at every node."""
    found: list[eb.Expression] = []
    with eb.options(split=False), eb.Graph(policy="sufficient") as graph:
        for tree in (((3, 7), 9), (4, (8, (1, 2))), (5, 6)):
            network.labels(tree, found)
        eb.forward(found)
    return graph


def lattice_graph(network: Lattice, lattices, policy) -> eb.Graph:
    """A mini-batch of lattices."""
    with eb.options(split=False), eb.Graph(policy=policy) as graph:
        eb.forward([tag for lattice in lattices for tag in network.tags(lattice.arcs)])
    return graph


def draw_schedules(path: Path, typed, learned) -> None:
    """A row for each policy: batches in their order, as high as they have nodes, in the colours of types."""
    schedules = {name: (learned if name == "learned" else eb.get_policy(name)).schedule(typed) for name in POLICIES}
    longest = max(map(len, schedules.values()))
    figure = Figure(figsize=(8, 6), layout="constrained")
    rows = figure.subplots(len(POLICIES), 1, sharex=True, sharey=True)
    for axes, (name, schedule) in zip(rows, schedules.items(), strict=True):
        sizes, colours = schedule.offsets[1:] - schedule.offsets[:-1], [COLOURS[kind] for kind in schedule.types]
        axes.bar(range(len(schedule)), sizes, width=1.0, color=colours, edgecolor="white", linewidth=0.4)
        axes.set_title(f"{name}: {len(schedule)} batches", loc="left", fontsize=10)
        axes.set_ylabel("nodes")
        axes.set_yscale("log")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlim(-1, longest)
    rows[-1].set_xlabel("batches, one after the other")
    names = [name.split("(")[0] for name in typed.names]
    handles = [rows[0].bar(0, 0, color=colour) for colour in COLOURS[: len(names)]]
    figure.legend(handles, names, loc="outside upper right", ncols=len(names), frameon=False)
    write_figure(figure, path)


def main(folder: Path = FOLDER) -> None:
    """Draw all of them."""
    os.environ["SOURCE_DATE_EPOCH"] = "0"  # no date in the files
    tree_graph().draw(folder / "trees.svg")
    network = Lattice()
    small = [lattice for lattice in random_lattices(200, seed=5) if len(lattice) <= 8][:2]
    lattice_graph(network, small, "depth").draw(folder / "lattices-depth.svg")
    eb.learn([labelled_tree_graph(Tree()).typed_graph()]).draw(folder / "machine.svg")
    short = [lattice for lattice in random_lattices(600, seed=0) if len(lattice) <= 24]
    parts = [short[at : at + 12] for at in range(0, 72, 12)]
    *train, other = [lattice_graph(network, part, "sufficient").typed_graph() for part in parts]
    learned = eb.learn(train)
    lattice_graph(network, small, learned).draw(folder / "lattices-learned.svg")
    draw_schedules(folder / "schedules.svg", other, learned)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
