"""The pictures of the guide, drawn by the library itself.

`python docs/pictures.py` writes docs/pictures/*.svg: made-up lattices and trees,
the same every time.
"""

from __future__ import annotations

import sys
from pathlib import Path

import edbatch as eb
import numpy as np
from edbatch.base.drawing import write_figure
from edbatch.data.lattices import random_lattices
from matplotlib.figure import Figure

FOLDER = Path(__file__).parent / "pictures"
SAID = {
    "none": "unmodified PyTorch",
    "depth": "depth (TensorFlow Fold)",
    "agenda": "agenda (DyNet)",
    "sufficient": "sufficient (ED-Batch)",
    "critical-path": "critical-path (the default)",
}
TREES = (((3, 7), 9), (4, (8, (1, 2))), (5, 6))
COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#8172b3")


MODEL = eb.ParameterCollection(seed=0)
EMBED = MODEL.add_lookup_parameters((400, 4), name="embed")
U, V, O = (MODEL.add_parameters((4, 4), name=name) for name in ("U", "V", "O"))
W = MODEL.add_parameters((4, 8), name="W")


@eb.cell
def character(h, number: int):
    return eb.tanh(U @ h + eb.lookup(EMBED, number))


@eb.cell
def word(h, number: int):
    return eb.tanh(V @ h + eb.lookup(EMBED, number))


@eb.cell
def tag(h):
    return eb.softmax(O @ h)


@eb.cell
def leaf(number: int):
    return eb.tanh(eb.lookup(EMBED, number))


@eb.cell
def inner(left, right):
    return eb.tanh(W @ eb.concatenate([left, right]))


def encode(tree) -> eb.Expression:
    """A tree op by op."""
    if isinstance(tree, int):
        return eb.lookup(EMBED, tree)
    return eb.tanh(W @ eb.concatenate([encode(part) for part in tree]))


def trees() -> eb.Graph:
    """Three of them."""
    with eb.Graph(policy="sufficient") as graph:
        eb.forward([encode(tree) for tree in TREES])
    return graph


def tags_of_tree(tree, found: list[eb.Expression]) -> eb.Expression:
    """The state of the root; a tag of every node comes to those that were found."""
    h = (
        leaf(tree)
        if isinstance(tree, int)
        else inner(*(tags_of_tree(part, found) for part in tree))
    )
    found.append(tag(h))
    return h


def tagged_trees() -> eb.Graph:
    """The same trees of cells, with a tag at every node."""
    found: list[eb.Expression] = []
    with eb.options(split=False), eb.Graph(policy="sufficient") as graph:
        for tree in TREES:
            tags_of_tree(tree, found)
        eb.forward(found)
    return graph


def tags_of_lattice(arcs) -> list[eb.Expression]:
    """Of every node; where several arcs end, there is their mean."""
    states = [eb.zeros(4)]
    for node in range(1, len(arcs)):
        ends = [
            (character if at == node - 1 else word)(states[at], number)
            for at, number in arcs[node]
        ]
        states.append(eb.mean(ends) if len(ends) > 1 else ends[0])
    return [tag(state) for state in states[1:]]


def tagged_lattices(lattices, policy) -> eb.Graph:
    """A mini-batch of lattices."""
    with eb.options(split=False), eb.Graph(policy=policy) as graph:
        eb.forward(
            [tag for lattice in lattices for tag in tags_of_lattice(lattice.arcs)]
        )
    return graph


def draw_schedules(path: Path, typed) -> None:
    """A row for eager code and each policy: bars as high as batches have nodes."""
    schedules = {name: eb.get_policy(name).schedule(typed) for name in SAID}
    width = max(len(schedules[name]) for name in list(SAID)[1:])
    figure = Figure(figsize=(8, 6.6), layout="constrained")
    rows = figure.subplots(len(schedules), 1, sharex=True, sharey=True)
    for axes, (name, schedule) in zip(rows, schedules.items(), strict=True):
        shown = min(len(schedule), width)
        axes.bar(
            range(shown),
            np.diff(schedule.offsets)[:shown] - 0.5,
            width=1.0,
            bottom=0.5,  # of a logarithmic axis
            color=[COLOURS[kind] for kind in schedule.types[:shown]],
            edgecolor="white",
            linewidth=0.4,
        )
        title = f"{SAID[name]}: {len(schedule)} batches"
        if name == "none":
            title += f" of one node (the first {shown} are shown)"
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_ylabel("nodes")
        axes.set_yscale("log")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlim(-1, width)
    rows[-1].set_xlabel("batches, one after the other")
    names = [name.split("(")[0] for name in typed.names]
    handles = [rows[0].bar(0, 0, color=colour) for colour in COLOURS[: len(names)]]
    figure.legend(
        handles, names, loc="outside upper right", ncols=len(names), frameon=False
    )
    write_figure(figure, path)


def main(folder: Path = FOLDER) -> None:
    """Draw all of them."""
    trees().draw(folder / "trees.svg")
    eb.learn([tagged_trees().typed_graph()]).draw(folder / "machine.svg")
    lattices = [
        lattice for lattice in random_lattices(600, seed=0) if len(lattice) <= 24
    ]
    twelve = tagged_lattices(lattices[60:72], "sufficient").typed_graph()
    draw_schedules(folder / "schedules.svg", twelve)
    two = [lattice for lattice in random_lattices(200, seed=5) if len(lattice) <= 6][:2]
    for name in ("depth", "critical-path"):
        tagged_lattices(two, name).draw(folder / f"lattices-{name}.svg")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
