"""EdBatch inside PyTorch: steps of training of tree networks, beside PyTorch tree by tree and batched by hand.

A step is forward, a loss at every node, and backward, without an optimizer. Gradients off: how far a step's are off
those of PyTorch tree by tree, over the largest entry of a parameter's; the worst.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from tqdm import tqdm

import edbatch as eb
import edbatch.torch
from edbatch.models.tree_network import TreeNetwork
from edbatch.models.workloads import Labelled
from scripts import data_folder
from scripts.bench.contest import Own, Task, loss_of
from scripts.bench.measure import interleaved
from scripts.bench.report import Rows, Tables, command, source
from scripts.gpu.correctness import difference
from scripts.peers import per_tree, trees

TREE_BY_TREE, OWN = "PyTorch tree by tree", "EdBatch alone"
#: What `edbatch.torch.Batched` is given: a module, and options.
BATCHED: dict[str, tuple[type[per_tree.Tree], dict[str, Any]]] = {
    "Batched, one module": (per_tree.TreeLSTM, {}),
    "Batched, nodes are submodules": (per_tree.Submodules, {}),
    "Batched, two functions are cells": (per_tree.TwoCells, {}),
    "Batched, and the loss": (per_tree.ThreeCells, {}),
    "Batched, nodes are submodules, replay=True": (per_tree.Submodules, {"replay": True}),
}


class Side(NamedTuple):
    """What takes a step, and the parameters that then have gradients, in the same order as other sides'."""

    step: Callable[[], Any]
    parameters: Sequence[Any]

    def gradients(self) -> list[np.ndarray]:
        """Of a step."""
        self.step()
        found = [p.grad() if isinstance(p, eb.Parameter) else p.grad.to_dense().numpy() for p in self.parameters]
        return [np.array(gradient, np.float64) for gradient in found]


def in_torch(losses: Callable[[], torch.Tensor], of: torch.nn.Module, parameters: Sequence[Any] = ()) -> Side:
    """A step with the sum of the losses."""

    def step() -> None:
        of.zero_grad()
        losses().sum().backward()

    return Side(step, parameters or list(of.parameters()))


def as_tensors(samples: Sequence[Labelled]) -> list[Any]:
    """The words, the children and the labels of all trees."""
    words = [[None if word is None else torch.tensor(word) for word in of.inputs[0]] for of in samples]
    return [words, [of.inputs[1] for of in samples], [list(torch.tensor(of.right)) for of in samples]]


def lstm_sides(task: Task, hidden: int) -> dict[str, Side]:
    """A TreeLSTM in all ways."""
    samples, own = task.samples, Own(task, hidden)
    given = as_tensors(samples)

    def alone(replays: bool = False) -> None:
        own.model.zero_grad()
        own.loss(samples, replays).backward()

    def by_hand(kind: Any) -> Side:
        peer = kind(own.model)
        prepared = [peer.prepare(sample) for sample in samples]
        return in_torch(lambda: peer.loss(peer.batch(prepared)), peer)

    def module_of(loss: Callable[..., eb.Expression]) -> Side:
        ours = Own(task, hidden)  # whose parameters become PyTorch's
        module = edbatch.torch.Module(partial(loss, ours.network), ours.model, stack=True, sparse=True)
        return in_torch(lambda: module(samples), module)

    def module_by_tree(kind: type[per_tree.Tree]) -> per_tree.Tree:
        module = kind(*task.sizes, hidden)
        per_tree.copy_parameters(module, own.model)
        return module

    first = module_by_tree(per_tree.TreeLSTM)
    found = {TREE_BY_TREE: in_torch(lambda: torch.stack(list(map(first, *given))), first)}
    found |= {
        f"{TREE_BY_TREE}, words and classes at once": by_hand(trees.PEERS["tree-lstm"]["per sample"]),
        "PyTorch by hand, level by level": by_hand(trees.TreeLSTM),
        OWN: Side(alone, list(own.model)),
        f"{OWN}, eb.replay": Side(lambda: alone(replays=True), list(own.model)),
        "Module": module_of(loss_of),
        "Module, eb.replay": module_of(eb.replay(loss_of)),
    }
    for name, (kind, options) in BATCHED.items():
        batched = edbatch.torch.Batched(module_by_tree(kind), stack=True, **options)
        found[name] = in_torch(lambda batched=batched: batched(*given), batched)
    return found


class DeepTree(TreeNetwork):
    """`per_tree.Deep`, whose layers are an op."""

    states = 1
    layers: Any

    def _add_parameters(self, model: eb.ParameterCollection, words: int) -> None:
        self.embed = model.add_lookup_parameters((words, self.dim), name="embed")

    def leaf(self, word: int) -> eb.Expression:
        return self.layers(eb.lookup(self.embed, word))

    def compose(self, left: eb.Expression, right: eb.Expression) -> eb.Expression:
        return self.layers(left + right)


def op_sides(task: Task, hidden: int) -> dict[str, Side]:
    """Layers of PyTorch's at every node."""
    first, given = per_tree.Deep(*task.sizes, hidden), as_tensors(task.samples)
    found = {TREE_BY_TREE: in_torch(lambda: torch.stack(list(map(first, *given))), first)}
    for name, loss in (("op in a Module", loss_of), ("op in a Module, eb.replay", eb.replay(loss_of))):
        model = eb.ParameterCollection()
        network, layers = DeepTree(model, *task.sizes, hidden), copy.deepcopy(first.layers)
        network.layers = edbatch.torch.op(layers)
        module = edbatch.torch.Module(partial(loss, network), model, stack=True, sparse=True)
        module.layers = layers
        parameters = [module.embed, *layers.parameters(), module.W_out, module.b_out]
        for mine, theirs in zip(parameters, first.parameters(), strict=True):
            mine.data = theirs.data.clone()
        found[name] = in_torch(lambda module=module: module(task.samples), module, parameters)
    return found


def rows_of(sides: dict[str, Side], rounds: int) -> Rows:
    """Times of the thread, and their ratios."""
    expected = sides[TREE_BY_TREE].gradients()
    runs = interleaved({name: side.step for name, side in sides.items()}, rounds)
    rows = []
    for name, side in sides.items():
        row = {"a step": name, "CPU ms": runs[name].ms(), "least": 1e3 * min(runs[name].cpu)}
        row |= {f"over {other}": row["CPU ms"] / runs[other].ms() for other in (TREE_BY_TREE, OWN) if other in sides}
        rows.append(row | {"gradients off": max(map(difference, side.gradients(), expected))})
    return rows


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    torch.set_num_threads(1)
    found: Tables = {}
    for batch, hidden in tqdm(list(product(given.batch, given.hidden)), disable=None):
        task = Task("tree-lstm", batch, data_folder())
        nodes = sum(len(sample.right) for sample in task.samples)
        for what, sides_of in (("TreeLSTM", lstm_sides), ("Linear, GELU, LayerNorm, Linear at every node", op_sides)):
            title = f"{what}: {len(task.samples)} trees, {nodes} nodes, hidden {hidden}, {source()}"
            found[title] = rows_of(sides_of(task, hidden), given.rounds)
    return found


main = command(__doc__, tables, hidden=(64, 256), batch=(64,))
