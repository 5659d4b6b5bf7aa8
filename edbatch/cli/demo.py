"""`edbatch demo`: what EdBatch is for, in a table and a picture: trees, a tagger and lattices under every policy."""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import Any

import edbatch as eb
from edbatch.base.drawing import bars
from edbatch.base.files import write_atomically
from edbatch.base.later import Later
from edbatch.cli.arguments import Commands, add_command, add_json, add_option, check_output
from edbatch.cli.output import print_json, print_table
from edbatch.errors import EdBatchError

np = Later("numpy")
workloads = Later("edbatch.models.workloads")

MODELS = {"trees": "tree-lstm", "tagger": "tagger", "lattices": "lattice-lstm"}
UNBATCHED, LEARNED = "unbatched", "learned"
RULES = {UNBATCHED: "none"} | {name: name for name in ("depth", "agenda", "critical-path")}  # the first is right
LEARN_FROM, ROUNDS = 4, 7
SEED = 1  # of the samples; learning from the first of them takes no search, which would have to be compiled
MOST_APART = 1e-5  # that probabilities in float32 may be from unbatched ones

DESCRIPTION = f"""\
A TreeLSTM over trees, a BiLSTM tagger and a lattice LSTM, over made-up samples, one operation at a time and batched: by
depth (TensorFlow Fold's rule), by agenda (DyNet's), by the default rule `critical-path`, and by machines learned from
{LEARN_FROM} other samples. One table, and one picture of it. `edbatch run` does the same for any model on your data, in
full.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "demo", run, "see what batching policies do, in half a minute", DESCRIPTION)
    add_option(parser, "--samples", "of each model, in one mini-batch", 12)
    add_option(parser, "--hidden", "size of states", 64)
    default = "edbatch-demo.svg"
    parser.add_argument("--svg", metavar="FILE", default=default, help="picture to write (default: %(default)s)")
    add_json(parser)


def run(arguments: argparse.Namespace) -> None:
    """Compute, compare, print, draw.

    Raises:
        EdBatchError: the picture cannot be written, or a policy's values are not those of unbatched.
    """
    check_output(arguments.svg)
    with eb.options(threads=1):
        rows = [row for model in MODELS for row in _rows(model, arguments.samples, arguments.hidden)]
    for row in rows:
        if not row["difference"] <= MOST_APART:
            apart = f"{row['policy']} is {row['difference']:.1e} from unbatched"
            raise EdBatchError(f"{row['model']}: {apart}; this is a fault")
    write_atomically(arguments.svg, _picture(rows))
    if arguments.json:
        print_json({"samples": arguments.samples, "hidden": arguments.hidden, "svg": arguments.svg, "rows": rows})
        return
    print(
        f"{arguments.samples} made-up samples of each model in one mini-batch, hidden size {arguments.hidden}, "
        f"one thread;\nlearned from {LEARN_FROM} others of each\n"
    )
    print_table(["", "", *RULES, LEARNED], _lines(rows), left=2)
    print(f"wrote {arguments.svg}: a picture of this table")


def _rows(model: str, samples: int, hidden: int) -> list[dict[str, Any]]:
    """What each policy did for a model: batches, the least that any schedule needs, time, and how far values are."""
    workload = workloads.get_workload(MODELS[model])
    numbered, sizes, _ = workload.number(workload.generate(LEARN_FROM + samples, SEED))
    network = workload.network(eb.ParameterCollection(seed=0), *sizes, hidden)

    @eb.replay
    def probabilities(sample: int) -> list[eb.Expression]:
        found: list[eb.Expression] = workload.probabilities(network, numbered[sample])
        return found

    with eb.Graph() as graph:
        workload.outputs(network, numbered[:LEARN_FROM])
    policies = {name: eb.get_policy(rule) for name, rule in RULES.items()}
    policies[LEARNED] = eb.learn([graph.typed_graph()], encoding="ahead", progress=False)
    rows: dict[str, dict[str, Any]] = {}
    right: Any = None
    for _ in range(1 + ROUNDS):  # policies take turns, so that what disturbs the machine hits all alike
        for name, policy in policies.items():
            with eb.Graph(policy=policy) as graph:
                outputs = [p for sample in range(LEARN_FROM, len(numbered)) for p in probabilities(sample)]
            start = perf_counter()
            values = np.stack(eb.forward(outputs))
            ms = 1e3 * (perf_counter() - start)
            if name not in rows:
                right = values if right is None else right
                report, difference = graph.report(), float(np.abs(values - right).max())
                counts = {"batches": report.batches, "bound": report.lower_bound}
                rows[name] = {"model": model, "policy": name, **counts, "ms": ms, "difference": difference}
            rows[name]["ms"] = min(ms, rows[name]["ms"])
    return list(rows.values())


def _lines(rows: list[dict[str, Any]]) -> list[list[Any]]:
    lines: list[list[Any]] = []
    for name in MODELS:
        of = [row for row in rows if row["model"] == name]
        lines += [
            [name, "batches", *(row["batches"] for row in of)],
            [None, f"batches / bound ({of[0]['bound']})", *(f"{row['batches'] / row['bound']:.2f}" for row in of)],
            [None, "ms, when it comes again", *(f"{row['ms']:.2f}" for row in of)],
            [None, "largest difference", *(f"{row['difference']:.0e}" for row in of)],
            [],
        ]
    return lines[:-1]


def _picture(rows: list[dict[str, Any]]) -> str:
    over: dict[str, list[float]] = {}
    faster: dict[str, list[float]] = {}
    for name in MODELS:
        unbatched, *others = [row for row in rows if row["model"] == name]
        over[name] = [row["batches"] / row["bound"] for row in others]
        faster[name] = [unbatched["ms"] / row["ms"] for row in others]
    panels = {
        "batches, over the least that any schedule needs": over,
        "times as fast as one operation at a time": faster,
    }
    return bars("EdBatch: what a batching policy decides", panels, [*list(RULES)[1:], LEARNED])
