"""`edbatch demo`: what EdBatch is for, in a table and a picture: trees, a tagger and lattices under every policy."""

from __future__ import annotations

import argparse
from typing import Any

import edbatch as eb
from edbatch.base.drawing import bars
from edbatch.base.files import write_atomically
from edbatch.base.later import Later
from edbatch.cli.arguments import JSON, Options, check_output, number, option
from edbatch.cli.output import print_json, print_table
from edbatch.cli.run import compare
from edbatch.devices import current_device
from edbatch.errors import EdBatchError

workloads = Later("edbatch.models.workloads")

MODELS = {"trees": "tree-lstm", "tagger": "tagger", "lattices": "lattice-lstm"}
LEARNED = "learned"
RULES = {"unbatched": "none", "depth": "depth", "agenda": "agenda", "critical-path": "critical-path"}
LEARN_FROM, ROUNDS = 4, 7
SEED = 1  # of the samples; learning from the first of them takes no search, which would have to be compiled
MOST_APART = 1e-5  # that probabilities in float32 may be from unbatched ones

HELP = "see what batching policies do, in half a minute"
DESCRIPTION = f"""\
A TreeLSTM over trees, a BiLSTM tagger and a lattice LSTM, over made-up samples, one operation at a time and batched: by
depth (TensorFlow Fold's rule), by agenda (DyNet's), by the default rule `critical-path`, and by machines learned from
{LEARN_FROM} other samples. One table, and one picture of it. `edbatch run` does the same for any model on your data, in
full.
"""
OPTIONS: Options = {
    "--samples": number("of each model, in one mini-batch", 12),
    "--hidden": number("size of states", 64),
    "--svg": option("picture to write", "FILE", "edbatch-demo.svg"),
    **JSON,
}


def run(arguments: argparse.Namespace) -> None:
    """Compute, compare, print, draw."""
    check_output(arguments.svg)
    if not arguments.svg.lower().endswith(".svg"):
        raise EdBatchError(f"{arguments.svg}: expected a name that ends with .svg")
    with eb.options(threads=1):
        rows = {model: _rows(model, arguments.samples, arguments.hidden) for model in MODELS}
    for row in (every := [row for of in rows.values() for row in of]):
        if not row["difference"] <= MOST_APART:
            apart = f"{row['policy']} is {row['difference']:.1e} from unbatched"
            raise EdBatchError(f"{row['model']}: {apart}; this is a fault")
    write_atomically(arguments.svg, _picture(rows))
    given = {"samples": arguments.samples, "hidden": arguments.hidden, "device": current_device().name}
    if arguments.json:
        print_json({**given, "svg": arguments.svg, "rows": every})
        return
    where = "one thread" if given["device"] == "cpu" else f"on {given['device']}"
    print(f"{arguments.samples} made-up samples of each model, hidden size {arguments.hidden}, {where};")
    print(f"learned from {LEARN_FROM} others of each\n")
    lines: list[list[Any]] = []
    for name, of in rows.items():
        lines += [
            [name, "batches", *(row["batches"] for row in of)],
            [None, f"batches / bound ({of[0]['bound']})", *(f"{row['batches'] / row['bound']:.2f}" for row in of)],
            [None, "ms, when it comes again", *(f"{row['ms']:.2f}" for row in of)],
            [None, "largest difference", *(f"{row['difference']:.0e}" for row in of)],
            [],
        ]
    print_table(["", "", *RULES, LEARNED], lines[:-1], left=2)
    print(f"wrote {arguments.svg}: a picture of this table")


def _rows(model: str, samples: int, hidden: int) -> list[dict[str, Any]]:
    """What each policy did for a model: batches, the least that any schedule needs, time, and how far values are."""
    workload = workloads.get_workload(MODELS[model])
    numbered, sizes, _ = workload.number(workload.generate(LEARN_FROM + samples, SEED))
    network = workload.network(eb.ParameterCollection(seed=0), *sizes, hidden)

    @eb.replay
    def probabilities(sample: int) -> Any:
        return workload.probabilities(network, numbered[sample])

    graph = compare.record(lambda given: workload.outputs(network, given), numbered[:LEARN_FROM])
    policies = {name: eb.get_policy(rule) for name, rule in RULES.items()}
    policies[LEARNED] = eb.learn([graph], encoding="ahead", progress=False)
    others = range(LEARN_FROM, len(numbered))
    measured = compare.compare(lambda given: [probabilities(at) for at in given], [others], policies, ROUNDS)
    rows: list[dict[str, Any]] = []
    for name, of in measured.items():
        found = {"batches": of.sums["batches"], "bound": of.sums["lower_bound"], "ms": 1e3 * of.total_seconds}
        rows.append({"model": model, "policy": name, **found, "difference": of.difference})
    return rows


def _picture(rows: dict[str, list[dict[str, Any]]]) -> str:
    over, faster = "batches, over the least that any schedule needs", "times as fast as one operation at a time"
    panels: dict[str, dict[str, list[float]]] = {
        over: {name: [row["batches"] / row["bound"] for row in of[1:]] for name, of in rows.items()},
        faster: {name: [of[0]["ms"] / row["ms"] for row in of[1:]] for name, of in rows.items()},
    }
    return bars("EdBatch: what a batching policy decides", panels, [*list(RULES)[1:], LEARNED])
