"""Figures that pages quote are those of the tables in docs/benchmarks.md, which is where they were measured."""

import re
from functools import partial

import pytest

from tests.pages import README, ROOT

DOCS = ROOT / "docs"
BATCHING, FASTER, INDEX, TRAINING = (DOCS / f"{name}.md" for name in ("batching", "faster", "index", "training"))
MEASURED = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
N = r"\**(\d+(?:\.\d+)?)\**"  # a figure, which may be bold

# The title of a table, or what stands above it, and what begins a row in it.
BATCHES = "### Batches over the lower bound"
TREES = "## Training beside PyTorch"
PEERS = "## Nine models beside PyTorch"
CURVES = "| model | held-out accuracy, last epoch | the most frequent label, always |"
CELLS = "#### Cells: mini-batches over their products"
DYNET = "## Beside DyNet"
SIXTY_FOUR = "`EDBATCH_DATA=... python -m scripts.bench peers --workload tree-lstm --batch 64`"


def row(title, *first):
    """The figures in the row of a table that begins with these cells."""
    table = re.search(r"^\|.*(\n\|.*)+", MEASURED[MEASURED.index(f"\n{title}") + 1 :], re.MULTILINE)[0]
    begin = r" *\| *".join(map(re.escape, first))
    (found,) = re.findall(rf"^\| *{begin} *\|(.*)", table, re.MULTILINE)
    return [float(figure) for figure in re.findall(r"\d+(?:\.\d+)?(?:e[+-]\d+)?", found)]


def batches(name):
    """By Fold's rule, by DyNet's, and without a policy."""
    _, depth, agenda, _, own, *_ = row(BATCHES, f"{name}, 64")
    return [depth, agenda, own]


def by_batch_256(hidden):
    """Times as fast as PyTorch tree by tree, and by level."""
    own, _, per_sample, _, by_hand, _ = row(TREES, str(hidden), "256")
    return [own / per_sample, by_hand]


def on_64_trees(column):
    """Times as fast as PyTorch: forward and in training, hidden 64 and 256."""
    return [row(SIXTY_FOUR, mode, hidden)[column] for mode in ("forward", "training") for hidden in ("64", "256")]


def over_peers(which):
    """Times as fast, recorded and replayed, at hidden size 64; then at 256."""
    return [figure for hidden in (64, 256) for figure in row(PEERS, f"{which}, hidden {hidden}")[:2]]


def over_dynet(hidden, mode):
    """Times as fast, recorded, 64 trees."""
    return row(DYNET, "tree-lstm", str(hidden), "64", mode)[3]


WORKLOADS = {
    "trees": "tree-lstm", "BiLSTM tagger": "tagger", "encoder-decoder": "encoder-decoder",
    "trees of two types": "tree-lstm-2type", "lattices": "lattice-lstm",
}  # fmt: skip
# Of figures on a page, how they are said there and what was measured.
TABLE = [(rf"\| {said} \| {N} \| {N} \| {N} \|", partial(batches, name)) for said, name in WORKLOADS.items()]
OF_INDEX = [
    (rf"TreeLSTM on 256 trees is {N} times .*?, and {N} times .*? {N} and {N} times at 64",
     lambda: by_batch_256(256) + by_batch_256(64)),
]  # fmt: skip
OF_README = [
    (rf"\| PyTorch, sample by sample \| {N} \| {N} \| {N} \| {N} \|", lambda: on_64_trees(4)),
    (rf"\| PyTorch, hand-batched level by level \| {N} \| {N} \| {N} \| {N} \|", lambda: on_64_trees(5)),
    (rf"\| nine models: PyTorch, hand-batched \| {N} \| {N} \| {N} \| {N} \|",
     lambda: over_peers("forward")[::2] + over_peers("training")[::2]),
    (rf"\| nine models, where samples come again \(`@eb.replay`\) \| {N} \| {N} \| {N} \| {N} \|",
     lambda: over_peers("forward")[1::2] + over_peers("training")[1::2]),
    (rf"DyNet 2.1.2, autobatching \| {N} \| {N} \| {N} \| {N} \|",
     lambda: [over_dynet(hidden, mode) for mode in ("forward", "train") for hidden in (64, 256)]),
    (rf"{N} times the lower bound on trees, .* {N} on lattices; DyNet's rule needs {N} and {N} on",
     lambda: [batches(WORKLOADS[of])[at] for at in (2, 1) for of in ("trees", "lattices")]),
]  # fmt: skip
OF_FASTER = [
    (rf"takes {N} times the time of its bare matrix products with cells, and {N} times op by op",
     lambda: row(CELLS, "tree-lstm", "forward", "256", "64")[2:0:-1]),
]  # fmt: skip
OF_TRAINING = [
    (rf"a TreeLSTM reaches {N} % root accuracy",
     lambda: row(CURVES, "tree-lstm: SST, 5 classes, random embeddings")[:1]),
]  # fmt: skip
QUOTED = [(page, *quote) for page, quotes in
          ((README, OF_README), (BATCHING, TABLE), (FASTER, OF_FASTER), (INDEX, OF_INDEX), (TRAINING, OF_TRAINING))
          for quote in quotes]  # fmt: skip


@pytest.mark.parametrize(("page", "said", "measured"), QUOTED)
def test_a_page_quotes_what_was_measured(page, said, measured):
    """Rounded to as many places as the page has."""
    found = re.findall(said, page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(found) == 1, f"{page.name}: expected one place that says {said}"
    quoted = [found[0]] if isinstance(found[0], str) else list(found[0])
    places = [len(figure.partition(".")[2]) for figure in quoted]
    assert quoted == [f"{figure:.{n}f}" for figure, n in zip(measured(), places, strict=True)]
