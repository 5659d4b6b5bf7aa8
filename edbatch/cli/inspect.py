"""`edbatch inspect`: what a policy does, as a sentence, a table and a picture."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, cast

from edbatch.base.text import printable
from edbatch.cli.arguments import Options, check_output, option
from edbatch.cli.output import counted, print_table
from edbatch.errors import EdBatchError
from edbatch.policy import Heuristic, get_policy

if TYPE_CHECKING:
    from edbatch.policy.fsm import FSM
    from edbatch.policy.policy_file import Training

HELP = "show what a policy does"
DESCRIPTION = "Show a policy: a learned one as a table, one row per state; a heuristic as a sentence."
OPTIONS: Options = {
    "policy": option("policy file, or a heuristic by name", "POLICY"),
    "--svg": option("draw a learned policy; a name that ends with .png or .pdf works too", "FILE"),
}


def run(arguments: argparse.Namespace) -> None:
    """Print the policy.

    Raises:
        EdBatchError: the policy cannot be read, `--svg` for a heuristic, or the picture cannot be drawn.
    """
    policy = get_policy(arguments.policy)
    if isinstance(policy, Heuristic):
        if arguments.svg:
            raise EdBatchError(f"{arguments.policy}: the rule {policy.name!r} has no states to draw")
        print(f"{policy.name}: {policy.meaning}")
        _print_training(policy.training)
        return
    machine = cast("FSM", policy)
    if arguments.svg:
        check_output(arguments.svg, arguments.policy)
        machine.draw(arguments.svg)
    print(f"{machine.name}: {counted(len(machine.table()), 'state')} over {counted(len(machine.types), 'type')}")
    _print_training(machine.training)
    print()
    short = machine.short_names()  # long names are explained in a second table
    rows = []
    for row in machine.table():
        text, runs = machine.described(int(row["number"]), short), short[str(row["choice"])]
        rows.append([row["number"], text, runs, f"{row['q']:.2f}"])
    print_table(["state", "ready types", "runs", "Q"], rows, left=3)
    if list(short.values()) != list(machine.types):
        print()
        print_table(["type", "is"], [[short[name], name] for name in machine.types], left=2)


def _print_training(training: Training | None) -> None:
    if training is None:
        return
    how = f"{counted(training.episodes, 'episode')}, seed {training.seed}, {training.seconds:.2f} s"
    print(
        f"trained on {counted(training.graphs, 'graph')}: {how}\n"
        f"reached {counted(sum(training.batches), 'batch')}; lower bound {sum(training.bounds):,}, "
        f"best heuristic {sum(training.heuristic_batches):,} ({printable(training.heuristic)})"
    )
