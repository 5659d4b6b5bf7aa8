"""`edbatch inspect`: what a policy does, as a sentence, a table and a picture."""

from __future__ import annotations

import argparse
from typing import Any

from edbatch.base.table import printable
from edbatch.cli.arguments import Options, check_output, option
from edbatch.cli.output import counted, print_table
from edbatch.policy import Heuristic, get_policy

HELP = "show what a policy does"
DESCRIPTION = "Show a policy: a learned one as a table, one row per state; a heuristic as a sentence."
OPTIONS: Options = {
    "policy": option("policy file, or a heuristic by name", "POLICY"),
    "--svg": option("draw a learned policy; a name that ends with .png or .pdf works too", "FILE"),
}


def run(arguments: argparse.Namespace) -> None:
    """Print the policy."""
    policy: Any = get_policy(arguments.policy)
    learned = not isinstance(policy, Heuristic)
    if arguments.svg:
        check_output(arguments.svg, arguments.policy)
        policy.draw(arguments.svg)
    print_summary(policy)
    if learned:
        _print_states(policy)
    if arguments.svg:
        print(f"wrote {arguments.svg}: a picture of this machine")


def print_summary(policy: Any) -> None:
    """Print what a policy is, and what it was learned from, if it was."""
    learned = not isinstance(policy, Heuristic)
    what = f"{counted(len(policy.table()), 'state')} over {counted(len(policy.types), 'type')}" if learned else ""
    print(f"{policy.name}: {what or policy.meaning}")
    if training := policy.training:
        graphs, episodes = counted(training.graphs, "graph"), counted(training.episodes, "episode")
        print(f"trained on {graphs}: {episodes}, seed {training.seed}, {training.seconds:.2f} s")
        reached = f"{counted(sum(training.batches), 'batch')}; lower bound {sum(training.bounds):,}"
        best = f"{sum(training.heuristic_batches):,} ({printable(training.heuristic)})"
        print(f"reached {reached}, best heuristic {best}")


def _print_states(policy: Any) -> None:
    """One row per state; long type names get a short one, explained in a second table."""
    short = policy.short_names()
    rows = [[row["number"], row["state"], row["choice"], f"{row['q']:.2f}"] for row in policy.table(short)]
    print()
    print_table(["state", "ready types", "runs", "Q"], rows, left=3)
    if list(short.values()) != list(policy.types):
        print()
        print_table(["type", "is"], [[short[name], name] for name in policy.types], left=2)
