"""ED-Batch's figure 9: batches over the lower bound of rules, and of what is learned with every state encoding.

On mini-batches that were not learned from. The paper prints (section 5.3) 1.23 for trees of two types, 1.44 for
lattices and 1 for the others, of what is learned with "sort" and measured on the same data; depth and agenda take up to
3.27 times the batches on lattices. Encodings base, sort and max are its, phase is of its appendix.
"""

from __future__ import annotations

import argparse
from typing import Any

from tqdm import tqdm

from edbatch.policy import get_policy, learn, lower_bound
from edbatch.policy.encodings import ENCODINGS
from scripts import data_folder
from scripts.bench.mini_batches import NINE, split
from scripts.bench.report import Chart, Tables, command, source

RULES = ("depth", "agenda", "sufficient", "critical-path")


def row_of(name: str, size: int) -> dict[str, Any]:
    """One workload."""
    found, learned, held_out = split(name, 8, size, data_folder())  # a policy does not see sizes
    seen, graphs = found.graphs(learned), found.graphs(held_out)
    policies = {rule: get_policy(rule) for rule in RULES}
    policies |= {f"learned, {encoding}": learn(seen, encoding=encoding, progress=False) for encoding in ENCODINGS}
    bound = sum(map(lower_bound, graphs))
    ratios = {policy: sum(len(of.schedule(graph)) for graph in graphs) / bound for policy, of in policies.items()}
    return {"workload": name, "bound": bound, **ratios}


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    rows = [row_of(name, given.batch[0]) for name in tqdm(given.workload, disable=None)]
    return {f"Batches over the bound, batch {given.batch[0]}, {source()}": rows}


chart = Chart("workload", (*RULES, "learned"))
main = command(__doc__, tables, chart=chart, batch=(64,), workload=NINE)
