"""`edbatch warm-up`: everything compiled ahead, for container images and machines without a place to write."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from time import process_time
from typing import Any

import edbatch as eb
from edbatch.base.later import Later
from edbatch.cli.arguments import Commands, add_command
from edbatch.cli.output import counted
from edbatch.cli.run import RULES as COMPARED
from edbatch.policy import TypedGraph, get_policy, lower_bound
from edbatch.policy.heuristics import RULES

code_cache = Later("edbatch.compiling.cache")
compiled = Later("edbatch.compiling.compiled")
encodings = Later("edbatch.policy.encodings")
tqdm = Later("tqdm")
trainer = Later("edbatch.policy.trainer")
workloads = Later("edbatch.models.workloads")

DESCRIPTION = """\
Compile ahead what programs would have compiled when they first need it: schedulers, learning, the planner, the
interpreter of cells, optimisers, and the layers of edbatch.models, forward and backward. What training with the default
policy and the nine models of the papers need comes first: once that is said to be ready, Ctrl-C loses nothing of it.
Cells of your own are compiled when they are first called, in some tenths of a second.

The code is kept in the folder edbatch/compiled of the user's cache folder (XDG_CACHE_HOME, ~/.cache); every environment
with the same versions of Python, NumPy and Numba, and the same processor, finds it there. The folder is this user's
alone: code is read only where this user or root has written it, and nobody else can. For an image whose programs run as
another user, root warms up and lets all read it: XDG_CACHE_HOME=/opt/cache edbatch warm-up && chmod -R a+rX /opt/cache
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    add_command(commands, "warm-up", run, "compile everything ahead", DESCRIPTION)


def run(arguments: argparse.Namespace) -> None:
    """Run small programs of every kind, with nothing interpreted, and say what there is then."""
    start = process_time()
    first, others = [*first_programs()], [*other_programs()]
    with compiled.at_once(), tqdm.tqdm([*first, *others], unit="program", disable=None, leave=False) as bar:
        for number, (name, program) in enumerate(bar, 1):
            bar.set_description(f"compiling {name}")
            program()
            if number == len(first):
                seconds = process_time() - start
                bar.write(f"training and the nine models of the papers: ready in {seconds:.1f} s of processor time")
    ready = sum(bool(function.overloads) for function in compiled.functions)
    folder = code_cache.cache_folder()
    sizes = [file.stat().st_size for file in folder.glob("*.bin")]
    print(f"{counted(ready, 'function')} ready in {process_time() - start:.1f} s of processor time")
    print(f"{folder}{os.sep}: {counted(len(sizes), 'file')}, {sum(sizes) / 2**20:.1f} MiB")


def first_programs() -> Iterator[tuple[str, Callable[[], object]]]:
    """Programs that are run first, by name: all that training and `edbatch run` need of the nine models."""
    for name in workloads.NINE:
        yield name, partial(_train, name)
    yield "ops", _op_by_op
    yield "threads", _share
    for rule in COMPARED:
        yield f"the policy {rule}", partial(_schedule, rule)
    yield "learning", partial(_learn, "sort")
    for name in eb.training.__all__:
        kind = getattr(eb.training, name)
        if isinstance(kind, type) and issubclass(kind, eb.training.Trainer) and kind is not eb.training.Trainer:
            yield name, partial(_update, kind)


def other_programs() -> Iterator[tuple[str, Callable[[], object]]]:
    """Programs that are run next: together they need all else that a user's program may need."""
    for rule in RULES:
        if rule not in COMPARED:
            yield f"the policy {rule}", partial(_schedule, rule)
    for encoding in encodings.ENCODINGS:
        yield f"learning with {encoding}", partial(_learn, encoding)
    for name in workloads.WORKLOADS:
        if name not in workloads.NINE:
            yield name, partial(_train, name)
    yield "vertex functions", _gather


def _graph() -> Any:
    """A graph that leaves policies a choice."""
    draw = Random(2).random
    operands = [[below for below in range(node) if draw() < 2 / (node + 1)] for node in range(24)]
    return TypedGraph.from_lists(["abc"[int(3 * draw())] for _ in range(24)], operands)


def _schedule(rule: str) -> None:
    graph = _graph()
    get_policy(rule).schedule(graph)
    lower_bound(graph)


def _learn(encoding: str) -> None:
    graph = _graph()
    # An eighth of the episodes explores, and what was found is looked at after so many of these.
    eb.learn([graph], encoding=encoding, episodes=8 * trainer.CHECK_EVERY, progress=False).schedule(graph)


def _train(name: str) -> None:
    workload = workloads.WORKLOADS[name]
    samples, sizes, _ = workload.number(workload.generate(3, 0))
    model = eb.ParameterCollection(seed=0)
    # With matrices of that size, products of equal words are shared.
    network = workload.network(model, *sizes, 256 if name == "tree-lstm" else 8)
    for policy, trains in (("critical-path", True), ("none", True), ("critical-path", False)):
        with eb.Graph(policy=policy) as graph:
            outputs = [p for sample in samples for p in workload.probabilities(network, sample)]
            loss = eb.sum([eb.pick(p, 0) for p in outputs])
        if trains:
            loss.backward()
        eb.forward(outputs)
        graph.report()
        model.zero_grad()


def _op_by_op() -> None:
    """README's example, and its training."""
    model = eb.ParameterCollection(seed=0)
    embed = model.add_lookup_parameters((9, 8), name="embed")
    W, b = model.add_parameters((5, 8), name="W"), model.add_parameters((5,), name="b")
    for trains in (False, True):
        with eb.Graph():
            x, y, z = (eb.lookup(embed, word) for word in range(3))
            total = eb.sum([eb.cross_entropy(W @ eb.tanh(eb.tanh(x + y) + z) + b, 2) for _ in range(2)])
        if trains:
            total.backward()
        total.value()


def _share() -> None:
    with eb.options(threads=2), eb.Graph(policy="critical-path"):
        eb.tanh(eb.ones(3)).value()


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


def _update(kind: Any) -> None:
    model = eb.ParameterCollection(seed=0)
    W, E = model.add_parameters((4, 4), name="W"), model.add_lookup_parameters((5, 4), name="E")
    with eb.Graph(policy="critical-path"):
        loss = eb.sum([eb.dot(W @ eb.lookup(E, at), eb.lookup(E, 0)) for at in range(3)])
    loss.backward()
    kind(model, lr=0.1).update()
