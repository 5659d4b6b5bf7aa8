"""ED-Batch's figure 8: milliseconds of a mini-batch by stage; with DyNet's rule, and op by op, as DyNet itself runs.

The fastest run counts. The paper prints no numbers of figure 8; its text says that construction and scheduling take
about as long as in DyNet with its cells ("agenda"), and that execution is what is saved.
"""

from __future__ import annotations

import argparse
from functools import partial
from statistics import fmean
from typing import Any

from tqdm import tqdm

import edbatch as eb
from scripts import data_folder
from scripts.bench.measure import STAGES, interleaved
from scripts.bench.mini_batches import NINE, split
from scripts.bench.report import Chart, Tables, command, source

RUNS = {"learned": (True, None), "agenda": (True, "agenda"), "agenda, op by op": (False, "agenda")}


def rows_of(name: str, hidden: int, size: int, rounds: int) -> list[dict[str, Any]]:
    """One workload."""
    found, learned, held_out = split(name, hidden, size, data_folder())
    policies = {
        run: eb.learn(found.graphs(learned), progress=False) if rule is None else eb.get_policy(rule)
        for run, (_, rule) in RUNS.items()
    }

    def run(name: str) -> dict[str, float]:
        with eb.options(cells=RUNS[name][0]):
            of = [found.stages(number, policies[name]) for number in held_out]
        return {stage: fmean(one[stage] for one in of) for stage in STAGES}

    runs = interleaved({name: partial(run, name) for name in RUNS}, rounds, limit=20)
    rows = []
    for side, of in runs.items():
        fastest = min(zip(*(of.figures[stage] for stage in STAGES), strict=True), key=sum)
        rows.append({"workload": name, "run": side, **dict(zip(STAGES, fastest, strict=True)), "all": sum(fastest)})
    return rows


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    (hidden,), (size,) = given.hidden, given.batch
    rows = [row for name in tqdm(given.workload, disable=None) for row in rows_of(name, hidden, size, given.rounds)]
    return {f"Milliseconds by stage, hidden {hidden}, batch {size}, {source()}": rows}


chart = Chart("run", STAGES, panel="workload")
main = command(__doc__, tables, rounds=15, chart=chart, hidden=(128,), batch=(64,), workload=NINE)
