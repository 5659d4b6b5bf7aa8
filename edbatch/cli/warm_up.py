"""`edbatch warm-up`: everything compiled ahead, for container images and machines without a place to write."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from random import Random
from time import process_time
from typing import Any

import edbatch as eb
from edbatch.base.lazy import LazyModule
from edbatch.cli.arguments import Options
from edbatch.cli.output import counted
from edbatch.cli.run import RULES as COMPARED
from edbatch.cli.train import OPTIMIZERS
from edbatch.policy import TypedGraph, get_policy
from edbatch.policy.heuristics import RULES

code_cache = LazyModule("edbatch.compiling.cache")
compiled = LazyModule("edbatch.compiling.compiled")
encodings = LazyModule("edbatch.policy.encodings")
tqdm = LazyModule("tqdm")
trainer = LazyModule("edbatch.policy.trainer")
workloads = LazyModule("edbatch.models.workloads")

HELP = "compile everything ahead"
DESCRIPTION = """\
Compile ahead what programs would have compiled when they first need it. What training with the default policy and the
nine models of the papers need comes first: once that is said to be ready, Ctrl-C loses nothing of it. Cells of your own
are compiled when they are first called, in some tenths of a second.

The code is kept in the user's cache folder (XDG_CACHE_HOME, ~/.cache), and read only where this user or root has
written it. For an image whose programs run as another user, root warms up and lets all read it:

    XDG_CACHE_HOME=/opt/cache edbatch warm-up && chmod -R a+rX /opt/cache
"""
OPTIONS: Options = {}


def run(arguments: argparse.Namespace) -> None:
    """Run small programs of every kind, with nothing interpreted, and say what there is then."""
    with compiled.at_once(), tqdm.tqdm([*programs()], unit="program", disable=None, leave=False) as bar:
        for name, program in bar:
            bar.set_description(f"compiling {name}")
            program()
    folder = code_cache.cache_folder()
    sizes = [file.stat().st_size for file in folder.glob("*.bin")]
    print(f"{folder}{os.sep}: {counted(len(sizes), 'file')}, {sum(sizes) / 2**20:.1f} MiB")


def programs() -> Iterator[tuple[str, Callable[[], object]]]:
    """Programs by name that together need all that a user's may need; first what training and the nine models need."""
    trained = {name: partial(_train, name) for name in workloads.WORKLOADS}
    yield from [(name, trained.pop(name)) for name in workloads.NINE]
    yield "policies", partial(_decide, COMPARED, ["sort"])
    for name in OPTIMIZERS.values():
        yield name, partial(_update, getattr(eb, name))
    yield "", partial(_say_ready, "training and the nine models of the papers")
    yield from trained.items()
    yield "all policies", partial(_decide, RULES, encodings.ENCODINGS)
    yield "vertex functions", _gather
    yield "", partial(_say_ready, "all else")


def _say_ready(what: str) -> None:
    print(f"{what}: ready after {process_time():.1f} s of processor time", flush=True)


def _decide(rules: Iterable[str], states: Iterable[str]) -> None:
    """Schedule, and learn from, a graph that leaves policies a choice."""
    draw = Random(2).random
    operands = [[below for below in range(node) if draw() < 2 / (node + 1)] for node in range(24)]
    graph = TypedGraph.from_lists(["abc"[int(3 * draw())] for _ in range(24)], operands)
    for rule in rules:
        get_policy(rule).schedule(graph)
    for encoding in states:
        # An eighth of the episodes explores, and what was found is looked at after so many of these.
        eb.learn([graph], encoding=encoding, episodes=8 * trainer.CHECK_EVERY, progress=False).schedule(graph)


def _train(name: str) -> None:
    workload = workloads.WORKLOADS[name]
    samples, sizes, _ = workload.number(workload.generate(3, 0))
    model = eb.ParameterCollection(seed=0)
    # With matrices of that size, products of equal words are shared.
    network = workload.network(model, *sizes, 256 if name == "tree-lstm" else 8)
    of = workload.probabilities
    passes = [("critical-path", True, of), ("none", True, of), ("critical-path", False, of)]
    if name in workloads.NINE:  # others read values on the way, or run as coroutines
        replayed = eb.replay(of)
        passes += [("critical-path", True, replayed)] * 2
    for policy, trains, probabilities in passes:
        samples.reverse()
        with eb.Graph(policy=policy) as graph:
            outputs = [p for sample in samples for p in probabilities(network, sample)]
            loss = eb.sum([eb.pick(p, 0) for p in outputs])
        if trains:
            loss.backward()
        eb.forward(outputs)
        graph.report()
        model.zero_grad()


def _update(kind: Any) -> None:
    """README's example, op by op, its training, and an update; by two threads."""
    model = eb.ParameterCollection(seed=0)
    embed = model.add_lookup_parameters((9, 8), name="embed")
    W, b = model.add_parameters((5, 8), name="W"), model.add_parameters((5,), name="b")
    for computes in (eb.Expression.value, eb.Expression.backward):
        with eb.options(threads=2), eb.Graph():
            x, y, z = (eb.lookup(embed, word) for word in range(3))
            total = eb.sum([eb.cross_entropy(W @ eb.tanh(eb.tanh(x + y) + z) + b, 2) for _ in range(2)])
            computes(total)
    kind(model, lr=0.1).update()


def _gather() -> None:
    """Over vertices in no order, which gather results of two forms."""
    E = eb.ParameterCollection(seed=0).add_lookup_parameters((2, 2), name="E")

    @eb.vertex
    def leaf(v: eb.Vertex) -> None:
        v.scatter(eb.lookup(E, v.pull()))

    @eb.vertex
    def inner(v: eb.Vertex) -> None:
        both = eb.concatenate([v.gather(0), v.gather(1)])
        v.scatter(both)
        v.push(both.sum())

    graph = eb.InputGraph([0, 2, 2, 4, 4], [1, 2, 1, 3], [1, 0, 1, 0])
    with eb.Graph(policy="critical-path"):
        found = eb.vertex(leaf, inner)(graph, [0, 1])
        eb.forward([x for x, vertex in zip(found.pushed, found.pushed_by, strict=True) if vertex in graph.roots])
