"""A convolution of many images, and pooling after it, against PyTorch's batched calls, one thread each.

    python -m scripts.bench.images [--json] [--rounds 9] [--channels 16] [--size 14] [--samples 64]

Each image is recorded by itself; PyTorch has all in one tensor. "train" has the gradients of the weights, and of an
array that is added to all images, so that gradients flow to them, too. Compared is the processor's time of the thread,
as other processes may be in the way: of "all", and of "computing", which is all but construction, lowering, scheduling
and planning.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.experiments.measure import STAGES, interleaved
from scripts.bench.report import Tables, command, figure

ASKED = "<= 1.5"
RECORDING = tuple(stage for stage in STAGES if stage != "execution")


def conv2d(library: Any, x: Any, weight: Any) -> Any:
    """3 x 3, as many channels out as in."""
    return library.conv2d(x, weight, padding=1)


def and_pool(library: Any, x: Any, weight: Any) -> Any:
    """Followed by pooling of 2 x 2 windows."""
    return library.max_pool2d(conv2d(library, x, weight), 2)


LAYERS = {"conv2d": conv2d, "conv2d, max_pool2d": and_pool}


class Ours:
    """A layer over images.

    Args:
        layer: (library, image, weights) -> what is computed.
        images: [samples, channels, height, width].
    """

    def __init__(self, layer: Callable[..., Any], images: np.ndarray) -> None:
        self.layer, self.images = layer, images
        channels = images.shape[1]
        self.model = eb.ParameterCollection(seed=0)
        self.weight = self.model.add_parameters((channels, channels, 3, 3), name="weight")
        self.added = self.model.add_parameters(images.shape[1:], init=0.1, name="added")

    def forward(self) -> eb.Graph:
        """Values."""
        with eb.Graph(policy="sufficient") as graph:
            for image in self.images:
                self.layer(eb, eb.input(image), self.weight)
            graph.run()
            return graph

    def loss(self) -> tuple[eb.Graph, eb.Expression]:
        """The sum of all that comes out."""
        with eb.Graph(policy="sufficient") as graph:
            found = [self.layer(eb, eb.input(image) + self.added, self.weight) for image in self.images]
            return graph, eb.sum([eb.sum(y) for y in found])

    def train(self) -> eb.Graph:
        """Gradients."""
        self.model.zero_grad()
        graph, loss = self.loss()
        loss.backward()
        return graph


class Theirs:
    """The same in PyTorch, with the weights of ours."""

    def __init__(self, ours: Ours) -> None:
        import torch

        torch.set_num_threads(1)
        self.torch, self.layer = torch, ours.layer
        self.images = torch.tensor(ours.images)
        self.weight, self.added = (
            torch.tensor(np.array(x.value()), requires_grad=True) for x in (ours.weight, ours.added)
        )

    def forward(self) -> None:
        """Values."""
        with self.torch.no_grad():
            self.layer(self.torch.nn.functional, self.images, self.weight)

    def loss(self) -> Any:
        """The sum of all that comes out."""
        return self.layer(self.torch.nn.functional, self.images + self.added, self.weight).sum()

    def train(self) -> None:
        """Gradients."""
        self.weight.grad = self.added.grad = None
        self.loss().backward()


def alike(ours: Ours, theirs: Theirs) -> bool:
    """Whether sums and gradients are the same."""
    ours.train()
    theirs.train()
    pairs = [(float(ours.loss()[1].value()), theirs.loss().item())]
    pairs += [
        (np.array(x.grad()), t.grad.numpy()) for x, t in ((ours.weight, theirs.weight), (ours.added, theirs.added))
    ]
    return all(np.allclose(a, b, rtol=1e-3, atol=1e-3 * np.abs(b).max()) for a, b in pairs)


def measure(name: str, given: argparse.Namespace) -> Tables:
    """A layer's times, and its figures beside those that are asked for."""
    shape = (given.samples, given.channels, given.size, given.size)
    ours = Ours(LAYERS[name], np.random.default_rng(0).normal(size=shape).astype(np.float32))
    theirs = Theirs(ours)
    ways = {
        f"{whose}{what}": getattr(one, what)
        for what in ("forward", "train")
        for whose, one in (("", ours), ("PyTorch ", theirs))
    }
    runs = interleaved(ways, given.rounds, warm_ups=given.warm_ups)
    reports = {way: (lambda run=ways[way]: run().report().seconds) for way in ("forward", "train")}
    stages = {way: run.medians() for way, run in interleaved(reports, given.rounds).items()}
    rows = [
        {"": way, **run.ms(), **{f"{stage} ms": 1e3 * stages.get(way, {}).get(stage, 0.0) for stage in RECORDING}}
        for way, run in runs.items()
    ]
    figures = [figure(f"{name}: values and gradients as PyTorch's", str(alike(ours, theirs)), "True")]
    for what in ("forward", "train"):
        own, other = (median(runs[way].cpu) for way in (what, f"PyTorch {what}"))
        computing = own - sum(stages[what][stage] for stage in RECORDING)
        figures.append(figure(f"{name}: {what}, computing, times of PyTorch's", computing / other, ASKED))
        figures.append(figure(f"{name}: {what}, all, times of PyTorch's", own / other, ""))
    return {f"Images: {name}, milliseconds": rows, f"Images: {name}": figures}


def tables(given: argparse.Namespace) -> Tables:
    """Everything that is measured."""
    found: Tables = {}
    for name in LAYERS:
        found |= measure(name, given)
    return found


main = command(
    __doc__,
    tables,
    channels={"type": int, "default": 16, "help": "of an image, and of what comes out (default: 16)"},
    size={"type": int, "default": 14, "help": "height and width of an image (default: 14)"},
    samples={"type": int, "default": 64, "help": "images in a mini-batch (default: 64)"},
    warm_ups={"type": int, "default": 60, "help": "runs before the first that is timed (default: 60)"},
)

if __name__ == "__main__":
    main()
