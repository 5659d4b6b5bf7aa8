"""`edbatch demo`: what EdBatch is for, in a table and a picture: trees, a tagger and lattices under every policy."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import edbatch as eb
from edbatch.base.drawing import bars
from edbatch.base.files import write_atomically
from edbatch.base.later import Later
from edbatch.cli.arguments import Commands, add_command, add_json, check_output, integer
from edbatch.cli.output import print_json, print_table
from edbatch.errors import EdBatchError
from edbatch.policy import Policy, read_graph

np = Later("numpy")
tqdm = Later("tqdm")
workloads = Later("edbatch.models.workloads")

MODELS = {"trees": "tree-lstm", "tagger": "tagger", "lattices": "lattice-lstm"}
UNBATCHED, LEARNED = "unbatched", "learned"
RULES = {UNBATCHED: "none"} | {name: name for name in ("depth", "agenda", "critical-path")}  # the first is right
SAMPLES, LEARN_FROM, HIDDEN, ROUNDS = 12, 4, 64, 7
SEED = 1  # of the samples; learning from the first of them takes no search, which would have to be compiled
MOST_APART = 1e-5  # that probabilities in float32 may be from unbatched ones

DESCRIPTION = f"""\
A TreeLSTM over trees, a BiLSTM tagger and a lattice LSTM, over made-up samples, one operation at a time and batched: by
depth (TensorFlow Fold's rule), by agenda (DyNet's), by the default rule `critical-path`, and by machines learned from
{LEARN_FROM} other samples, by another process while this one compiles. One table, and one picture of it. `edbatch run`
does the same for any model on your data, in full.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "demo", run, "see what batching policies do, in half a minute", DESCRIPTION)
    parser.add_argument(
        "--samples", type=integer(1), default=SAMPLES, help="of each model, in one mini-batch (default: %(default)s)"
    )
    parser.add_argument("--hidden", type=integer(1), default=HIDDEN, help="size of states (default: %(default)s)")
    parser.add_argument(
        "--svg", metavar="FILE", default="edbatch-demo.svg", help="picture to write (default: %(default)s)"
    )
    add_json(parser)


@dataclass
class Row:
    """What a policy did for a model.

    Attributes:
        model: a key of `MODELS`.
        policy: its name.
        batches: of the mini-batch.
        bound: the least batches that any schedule needs.
        ms: to compute the mini-batch when it has come before, the fastest of several times.
        difference: the largest of any probability from unbatched.
    """

    model: str
    policy: str
    batches: int
    bound: int
    ms: float = float("inf")
    difference: float = 0.0


class Model:
    """A model with a mini-batch, and others that a policy is learned from."""

    def __init__(self, name: str, samples: int, hidden: int) -> None:
        self._workload = workloads.get_workload(name)
        numbered, sizes, _ = self._workload.number(self._workload.generate(LEARN_FROM + samples, SEED))
        self._others, self._samples = numbered[:LEARN_FROM], range(LEARN_FROM, LEARN_FROM + samples)
        self._network = self._workload.network(eb.ParameterCollection(seed=0), *sizes, hidden)

        @eb.replay
        def probabilities(sample: int) -> list[eb.Expression]:
            return self._workload.probabilities(self._network, numbered[sample])

        self._probabilities = probabilities

    def record(self, path: Path) -> None:
        """Write the graph that a policy is learned from."""
        with eb.Graph() as graph:
            self._workload.outputs(self._network, self._others)
        graph.save(path)

    def compute(self, policy: Policy) -> tuple[Any, float, eb.Graph]:
        """All probabilities of the mini-batch, how many milliseconds it took to compute them, and the graph.

        Samples are recorded once: when the mini-batch comes again it is neither scheduled nor planned again.
        """
        with eb.Graph(policy=policy) as graph:
            outputs = [p for sample in self._samples for p in self._probabilities(sample)]
            start = time.perf_counter()
            values = eb.forward(outputs)
            taken = 1e3 * (time.perf_counter() - start)
        return np.stack(values), taken, graph


def run(arguments: argparse.Namespace) -> None:
    """Compute, compare, print, draw.

    Raises:
        EdBatchError: the picture cannot be written, or a policy's values are not those of unbatched.
    """
    check_output(arguments.svg)
    with TemporaryDirectory() as folder, eb.options(threads=1):
        rows = _measure({name: Model(of, arguments.samples, arguments.hidden) for name, of in MODELS.items()}, folder)
    for row in rows:
        if not row.difference <= MOST_APART:
            raise EdBatchError(f"{row.model}: {row.policy} is {row.difference:.1e} from unbatched; this is a fault")
    write_atomically(arguments.svg, _picture(rows))
    if arguments.json:
        print_json({"samples": arguments.samples, "hidden": arguments.hidden, "svg": arguments.svg, "rows": rows})
        return
    print(
        f"{arguments.samples} made-up samples of each model in one mini-batch, hidden size {arguments.hidden}, "
        f"one thread;\nlearned from {LEARN_FROM} others of each\n"
    )
    print_table(["", "", *dict.fromkeys(row.policy for row in rows)], _lines(rows), left=2)
    print(f"wrote {arguments.svg}: a picture of this table")


def _measure(models: dict[str, Model], folder: str) -> list[Row]:
    """A row for each model and policy; what is learned is learned meanwhile by another process."""
    paths = {name: Path(folder) / f"{name}.txt" for name in models}
    for name, path in paths.items():
        models[name].record(path)
    steps = len(models) * (2 + ROUNDS)
    with tqdm.tqdm(total=steps, unit="run", delay=1, leave=False, disable=None) as bar, _learner(paths) as learner:
        rules = {name: eb.get_policy(rule) for name, rule in RULES.items()}
        right = {}
        for name, model in models.items():
            bar.set_description(f"{name}, untimed (and compiling, the first time)")
            right[name] = model.compute(rules[UNBATCHED])[0]
            for rule in rules.values():  # so much that what they need is compiled here, while the other process learns
                model.compute(rule)
            bar.update()
        bar.set_description("waiting for what is learned")
        while learner.poll() is None:  # nothing is timed beside it
            time.sleep(0.05)
            bar.refresh()
        if learner.returncode:
            raise EdBatchError(f"learning failed: {(learner.communicate()[1].splitlines() or ['no reason'])[-1]}")
        rows = []
        for name, model in models.items():
            bar.set_description(name)
            policies = rules | {LEARNED: eb.get_policy(paths[name].with_suffix(".json"))}
            rows += _compare(name, model, policies, right[name], bar)
    return rows


def _compare(name: str, model: Model, policies: dict[str, Policy], right: Any, bar: Any) -> list[Row]:
    """The rows of a model; policies take turns, so that what disturbs the machine hits all alike."""
    rows: dict[str, Row] = {}
    for _ in range(1 + ROUNDS):
        for title, policy in policies.items():
            values, ms, graph = model.compute(policy)
            if title not in rows:
                report = graph.report()
                rows[title] = Row(name, title, report.batches, report.lower_bound)
            row = rows[title]
            row.ms = min(row.ms, ms)
            row.difference = max(row.difference, float(np.abs(values - right).max()))
        bar.update()
    return list(rows.values())


@contextmanager
def _learner(paths: dict[str, Path]) -> Iterator[subprocess.Popen[str]]:
    """Another process that learns a policy from each recorded graph; it ends with the block."""
    call = [sys.executable, "-c", "import sys; from edbatch.cli.demo import learn_from; learn_from(sys.argv[1:])"]
    process = subprocess.Popen(
        [*call, *map(str, paths.values())], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def learn_from(paths: Sequence[str]) -> None:
    """Learn a policy from each recorded graph, and write it beside it, as JSON: what the other process does."""
    for path in paths:
        eb.learn([read_graph(path)], encoding="ahead", progress=False).save(Path(path).with_suffix(".json"))


def _lines(rows: list[Row]) -> list[list[Any]]:
    lines: list[list[Any]] = []
    for name in MODELS:
        of = [row for row in rows if row.model == name]
        lines += [
            [name, "batches", *(row.batches for row in of)],
            [None, f"batches / bound ({of[0].bound})", *(f"{row.batches / row.bound:.2f}" for row in of)],
            [None, "ms, when it comes again", *(f"{row.ms:.2f}" for row in of)],
            [None, "largest difference", *(f"{row.difference:.0e}" for row in of)],
            [],
        ]
    return lines[:-1]


def _picture(rows: list[Row]) -> str:
    sides = [*list(RULES)[1:], LEARNED]
    over: dict[str, list[float]] = {}
    faster: dict[str, list[float]] = {}
    for name in MODELS:
        unbatched, *others = [row for row in rows if row.model == name]
        over[name] = [row.batches / row.bound for row in others]
        faster[name] = [unbatched.ms / row.ms for row in others]
    panels = {
        "batches, over the least that any schedule needs": over,
        "times as fast as one operation at a time": faster,
    }
    return bars("EdBatch: what a batching policy decides", panels, sides)
