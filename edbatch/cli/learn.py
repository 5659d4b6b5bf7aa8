"""`edbatch learn`: a policy from recorded graphs, or from the mini-batches of a script."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import edbatch as eb
from edbatch.base.lazy import LazyModule
from edbatch.cli.arguments import Options, check_output, number, option
from edbatch.cli.inspect import print_summary
from edbatch.cli.script import graphs_from_script
from edbatch.errors import EdBatchError
from edbatch.policy import Heuristic, TypedGraph, read_graph

tqdm = LazyModule("tqdm")

HELP = "learn a batching policy and write it to a file"
DESCRIPTION = """\
Learn a batching policy for graphs like the given ones and write it to a file.

SOURCE is a recorded graph (see eb.Graph.save), or script.py:function: a generator function that builds
a mini-batch, in the graph that is current, before each of its yields. Nothing of it has to run; where
it has, as programs over values do (eb.run), each run is learned from, as it was scheduled:

    def mini_batches():
        for sentences in batches:
            for sentence in sentences:
                loss(model, sentence)
            yield
"""
OPTIONS: Options = {
    "sources": option("recorded graph, or script.py:function", "SOURCE", nargs="+"),
    "-o --output": option("policy file to write", "FILE", required=True),
    "--encoding": option(
        "what a state is: base, max, sort, phase, critical, ahead, or the better of sort and ahead", "NAME", "auto"
    ),
    "--episodes": number("of Q-learning, at most", 1000, least=0),
    "--seconds": option("about how long episodes may take", default=1.0, type=float),
    "--seed": number("of the exploration", 0, least=0),
}


def run(arguments: argparse.Namespace) -> None:
    """Learn, write, report."""
    check_output(arguments.output, *(source.rpartition(".py:")[0] or source for source in arguments.sources))
    graphs = [*tqdm.tqdm(_graphs(arguments.sources), "reading", unit=" graphs", delay=1, leave=False, disable=None)]
    policy = eb.learn(
        graphs, **{name: getattr(arguments, name) for name in ("encoding", "episodes", "seed", "seconds")}
    )
    policy.save(arguments.output)
    print_summary(policy)
    if isinstance(policy, Heuristic):
        print("nothing that was learned could beat this rule")
    print(f"wrote {arguments.output}")


def _graphs(sources: Sequence[str]) -> Iterator[TypedGraph]:
    """Every graph of every source."""
    for source in sources:
        if source.endswith(".py") or ".py:" in source:
            yield from graphs_from_script(source)
        else:
            graph = read_graph(source)
            if not len(graph):
                raise EdBatchError(f"{source}: the graph has no nodes")
            yield graph
