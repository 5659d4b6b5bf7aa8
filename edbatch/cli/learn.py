"""`edbatch learn`: a policy from recorded graphs, or from the mini-batches of a script."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

import edbatch as eb
from edbatch.base.later import Later
from edbatch.cli.arguments import Commands, add_command, add_json, check_output, integer
from edbatch.cli.output import counted, print_json, print_table
from edbatch.cli.script import graphs_from_script
from edbatch.errors import EdBatchError
from edbatch.policy import Heuristic, Policy, TypedGraph, get_policy, lower_bound, read_graph

if TYPE_CHECKING:
    from edbatch.policy.fsm import FSM

qlearning = Later("edbatch.policy.qlearning")
tqdm = Later("tqdm")

RULES = ("depth", "agenda", "critical-path")

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


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "learn", run, "learn a batching policy and write it to a file", DESCRIPTION)
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="recorded graph, or script.py:function")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="policy file to write")
    parser.add_argument(
        "--encoding",
        default="auto",
        metavar="NAME",
        help="what a state is: base, max, sort, phase, critical, ahead; auto: the better of sort and ahead (default)",
    )
    parser.add_argument(
        "--episodes", type=integer(0), default=1000, help="of Q-learning, at most (default: %(default)s)"
    )
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="about how long episodes may take (default: %(default)s)"
    )
    parser.add_argument("--seed", type=integer(0), default=0, help="of the exploration (default: %(default)s)")
    add_json(parser)


def run(arguments: argparse.Namespace) -> None:
    """Learn, write, report.

    Raises:
        EdBatchError: a source cannot be read or run, or the policy file cannot be written; a file that was
            there stays as it was.
    """
    check_output(arguments.output, *(re.sub(r":\w+$", "", source) for source in arguments.sources))
    if arguments.encoding not in qlearning.ENCODING_NAMES:
        raise EdBatchError(f"--encoding {arguments.encoding}: expected one of {qlearning.KNOWN}")
    bar = tqdm.tqdm(_graphs(arguments.sources), "reading", unit=" graphs", delay=1, leave=False, disable=None)
    named = list(bar)
    policy = eb.learn(
        [graph for _, graph in named],
        encoding=arguments.encoding,
        episodes=arguments.episodes,
        seed=arguments.seed,
        seconds=arguments.seconds,
    )
    policy.save(arguments.output)
    rows = [_row(name, graph, policy) for name, graph in named]
    if arguments.json:
        training = getattr(policy, "training", None)
        print_json({"file": arguments.output, "policy": policy.name, "training": training, "graphs": rows})
        return
    print_table([key.replace("_", " ") for key in rows[0]], [list(row.values()) for row in rows])
    print(_summary(policy, arguments.output))


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


def _row(name: str, graph: TypedGraph, policy: Policy) -> dict[str, str | int]:
    return {
        "graph": name,
        "nodes": len(graph),
        "edges": len(graph.operands),
        "types": len(graph.names),
        **{rule: _batches(get_policy(rule), graph) for rule in RULES},
        "learned": _batches(policy, graph),
        "lower_bound": sum(map(lower_bound, graph.runs())),
    }


def _batches(policy: Policy, graph: TypedGraph) -> int:
    """Of all runs of a graph."""
    return sum(len(policy.schedule(run)) for run in graph.runs())


def _summary(policy: Policy, path: str) -> str:
    training = getattr(policy, "training", None)
    assert training is not None
    how = f"{training.seconds:.2f} s, {counted(training.episodes, 'episode')}"
    if isinstance(policy, Heuristic):
        return f"wrote {path}: the rule {policy.name!r}, which nothing that was learned could beat ({how})"
    states = cast("FSM", policy).table()
    return f"wrote {path}: {policy.name} with {counted(len(states), 'state')} ({how})"
