"""`edbatch learn`: a policy from recorded graphs, or from the mini-batches of a script."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from typing import Any

import edbatch as eb
from edbatch.base.later import Later
from edbatch.cli.arguments import JSON, Options, check_output, number, option
from edbatch.cli.output import counted, print_json, print_table
from edbatch.cli.schedule import DEFAULT, batches_of, facts_of
from edbatch.cli.script import graphs_from_script
from edbatch.errors import EdBatchError
from edbatch.policy import Heuristic, TypedGraph, get_policy, read_graph

qlearning = Later("edbatch.policy.qlearning")
tqdm = Later("tqdm")

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
    **JSON,
}


def run(arguments: argparse.Namespace) -> None:
    """Learn, write, report."""
    check_output(arguments.output, *(re.sub(r":\w+$", "", source) for source in arguments.sources))
    if arguments.encoding not in qlearning.ENCODING_NAMES:
        raise EdBatchError(f"--encoding {arguments.encoding}: expected one of {qlearning.KNOWN}")
    found = _graphs(arguments.sources)
    named = list(tqdm.tqdm(found, "reading", unit=" graphs", delay=1, leave=False, disable=None))
    given = {name: getattr(arguments, name) for name in ("encoding", "episodes", "seed", "seconds")}
    policy: Any = eb.learn([graph for _, graph in named], **given)
    policy.save(arguments.output)
    policies = {rule: get_policy(rule) for rule in DEFAULT} | {"learned": policy}
    rows = [facts_of(name, graph) | {x: batches_of(of, graph) for x, of in policies.items()} for name, graph in named]
    if arguments.json:
        print_json({"file": arguments.output, "policy": policy.name, "training": policy.training, "graphs": rows})
        return
    print_table([key.replace("_", " ") for key in rows[0]], [list(row.values()) for row in rows])
    how = f"{policy.training.seconds:.2f} s, {counted(policy.training.episodes, 'episode')}"
    what = f"the rule {policy.name!r}, which nothing that was learned could beat"
    if not isinstance(policy, Heuristic):
        what = f"{policy.name} with {counted(len(policy.table()), 'state')}"
    print(f"wrote {arguments.output}: {what} ({how})")


def _graphs(sources: Sequence[str]) -> Iterator[tuple[str, TypedGraph]]:
    """Every graph of every source, with a name."""
    for source in sources:
        if script := re.fullmatch(r"(.+\.py):(\w+)", source):
            for number, graph in enumerate(graphs_from_script(*script.groups())):
                yield f"{source} {number}", graph
        elif source.endswith(".py"):
            raise EdBatchError(f"{source}: expected {source}:FUNCTION, a generator function of the script")
        else:
            graph = read_graph(source)
            if not len(graph):
                raise EdBatchError(f"{source}: the graph has no nodes")
            yield source, graph
