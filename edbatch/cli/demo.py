"""`edbatch demo`: what EdBatch is for, in a table and a picture: trees, a tagger and lattices under every policy."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import edbatch as eb
from edbatch.base.drawing import missing, write_figure
from edbatch.base.lazy import LazyModule
from edbatch.cli.arguments import Options, check_output, number, option
from edbatch.cli.output import print_table
from edbatch.cli.run import compare, record
from edbatch.devices import current_device
from edbatch.errors import EdBatchError

workloads = LazyModule("edbatch.models.workloads")
figures = LazyModule("matplotlib.figure")

MODELS = {"trees": "tree-lstm", "tagger": "tagger", "lattices": "lattice-lstm"}
LEARNED = "learned"
COLOURS = ("#d1495b", "#edae49", "#4aa3df", "#1f4e79", "#7b5ea7", "#2a9d8f")
RULES = {"unbatched": "none", "depth": "depth", "agenda": "agenda", "critical-path": "critical-path"}
LEARN_FROM, ROUNDS = 4, 7
SEED = 1  # of the samples; learning from the first of them takes no search, which would have to be compiled
MOST_APART = 1e-5  # that probabilities in float32 may be from unbatched ones

HELP = "see what batching policies do, in a minute"
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
}


def run(arguments: argparse.Namespace) -> None:
    """Compute, compare, print, draw."""
    check_output(arguments.svg)
    if not arguments.svg.lower().endswith(".svg"):
        raise EdBatchError(f"{arguments.svg}: expected a name that ends with .svg")
    with eb.options(threads=1):
        found = {model: _measured(model, arguments.samples, arguments.hidden) for model in MODELS}
    for model, policies in found.items():
        for name, of in policies.items():
            if not of.difference <= MOST_APART:
                raise EdBatchError(f"{model}: {name} differs from unbatched by {of.difference:.1e}; please report it")
    device = current_device().name
    where = "one thread" if device == "cpu" else f"on {device}"
    print(f"{arguments.samples} made-up samples of each model, hidden size {arguments.hidden}, {where};")
    print(f"learned from {LEARN_FROM} others of each\n")
    lines: list[list[Any]] = []
    for model, policies in found.items():
        every, bound = policies.values(), policies[LEARNED].sums["lower_bound"]
        lines += [
            [model, "batches", *(of.sums["batches"] for of in every)],
            [None, f"batches / bound ({bound})", *(f"{of.sums['batches'] / bound:.2f}" for of in every)],
            [None, "ms, when it comes again", *(f"{1e3 * of.seconds.total():.2f}" for of in every)],
            [None, "largest difference", *(f"{of.difference:.0e}" for of in every)],
            [],
        ]
    print_table(["", "", *RULES, LEARNED], lines[:-1], left=2)
    try:
        write_figure(_picture(found), arguments.svg)
    except ImportError as error:
        print(f"no picture: {missing(arguments.svg, error)}")
    else:
        print(f"wrote {arguments.svg}: a picture of this table")


def _measured(model: str, samples: int, hidden: int) -> Any:
    """What each policy did for a model."""
    workload = workloads.get_workload(MODELS[model])
    numbered, sizes, _ = workload.number(workload.generate(LEARN_FROM + samples, SEED))
    network = workload.network(eb.ParameterCollection(seed=0), *sizes, hidden)

    @eb.replay
    def probabilities(sample: int) -> Any:
        return workload.probabilities(network, numbered[sample])

    graph = record(lambda given: workload.outputs(network, given), numbered[:LEARN_FROM])
    policies = {name: eb.get_policy(rule) for name, rule in RULES.items()}
    policies[LEARNED] = eb.learn([graph], encoding="ahead", progress=False)
    others = range(LEARN_FROM, len(numbered))
    return compare(lambda given: [probabilities(at) for at in given], [others], policies, ROUNDS)


def _picture(found: dict[str, Any]) -> Any:
    over, faster = "batches, over the least that any schedule needs", "times as fast as one operation at a time"
    panels: dict[str, dict[str, list[float]]] = {over: {}, faster: {}}
    for model, policies in found.items():
        seconds = [of.seconds.total() for of in policies.values()]
        panels[over][model] = [of.sums["batches"] / of.sums["lower_bound"] for of in policies.values()][1:]
        panels[faster][model] = [seconds[0] / of for of in seconds[1:]]
    return _bars("EdBatch: what a batching policy decides", panels, [*list(RULES)[1:], LEARNED])


def _bars(title: str, panels: Mapping[str, Mapping[str, Sequence[float]]], sides: Sequence[str]) -> Any:
    """A figure of bars in groups, with a line across at 1.

    Args:
        panels: by their titles, each to a scale of its own: by the name of a group a value for each side.
        sides: their names; each has a colour.
    """
    figure = figures.Figure(figsize=(5.5 * len(panels), 3.6), layout="constrained")
    figure.suptitle(title)
    for axes, (name, groups) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        axes.set_title(name, fontsize="medium")
        axes.axhline(1, color="#444444", linestyle="--", linewidth=0.8)
        width = 1 / (len(sides) + 1)
        for at, (side, colour) in enumerate(zip(sides, COLOURS, strict=False)):
            heights = [values[at] for values in groups.values()]
            places = [group + at * width for group in range(len(groups))]
            made = axes.bar(places, heights, width, label=side, color=colour)
            axes.bar_label(made, [f"{value:.2f}" if value < 10 else f"{value:.0f}" for value in heights], fontsize=8)
        axes.set_xticks([group + (len(sides) - 1) * width / 2 for group in range(len(groups))], list(groups))
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend()
    return figure
