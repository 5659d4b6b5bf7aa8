"""ED-Batch's table 3: seconds and episodes that learning a policy takes."""

from __future__ import annotations

import statistics
from typing import Any

from edbatch.experiments.charts import Bars
from edbatch.experiments.experiment import Experiment, Point, Row, Setting, grid
from edbatch.experiments.measure import interleaved
from edbatch.experiments.nine import NINE, split
from edbatch.experiments.papers import ED_BATCH
from edbatch.policy import TypedGraph, learn
from edbatch.policy.encodings import ENCODINGS
from edbatch.policy.rollouts import learn_from
from edbatch.policy.state_table import new_table
from edbatch.policy.trainer import Trainer

THEIRS = {
    "tree-lstm": (0.154, 50),
    "tree-gru": (0.141, 50),
    "mv-rnn": (0.254, 50),
    "tree-lstm-2type": (2.217, 1000),
    "tagger": (1.629, 50),
    "tagger-characters": (6.268, 50),
    "lattice-lstm": (21.733, 1000),
    "lattice-gru": (4.911, 1000),
}


def thousand_episodes(graph: TypedGraph, rounds: int) -> float:
    """Seconds of 1,000 episodes of Q-learning itself: no teachers, no early stop."""

    def learn_anew(given: tuple[Trainer, Any]) -> None:
        trainer, table = given
        (arena,) = trainer.arenas
        for number in range(1000):
            table, decisions, _ = trainer.run(arena, table, alpha=0.5, epsilon=0.5 * (1 - number / 1000), greedy=True)
            learn_from(arena.trajectory, table, decisions, 0.1, 0.95, 5)

    def given(_: int) -> tuple[Trainer, Any]:
        return Trainer([graph], ENCODINGS["sort"], 0), new_table(64, 512)

    return min(interleaved({"": learn_anew}, rounds, given, warm_ups=0)[""].cpu)


def points(setting: Setting) -> list[Point]:
    """The nine."""
    return grid(workload=NINE)


def measure(setting: Setting, point: Point) -> list[Row]:
    """One workload, learned from one mini-batch, as the paper does."""
    found = split(point["workload"], setting, 8, 16 if setting.quick else 64)
    graphs = found.graphs(range(1))
    policies: list[Any] = [learn(graphs, progress=False) for _ in range(1 + setting.rounds)]
    learned = [policy.training for policy in policies[1:]]
    training = learned[0]
    return [
        {
            "side": "EdBatch",
            "seconds": statistics.median(of.seconds for of in learned),
            "episodes": training.episodes,
            "batches": sum(training.batches),
            "bound": sum(training.bounds),
            "1,000 episodes, seconds": thousand_episodes(graphs[0], 1 if setting.quick else 3),
        }
    ]


EXPERIMENT = Experiment(
    name="learning",
    paper=ED_BATCH,
    place="table 3",
    shows="Seconds and episodes of learning a policy from one mini-batch, and what it reaches on it.",
    points=points,
    measure=measure,
    charts=[
        Bars("workload", "seconds", title="seconds", log=True, wide=True),
        Bars("workload", "episodes", title="episodes", wide=True),
    ],
    theirs=[
        {"workload": name, "side": "ED-Batch", "seconds": seconds, "episodes": episodes}
        for name, (seconds, episodes) in THEIRS.items()
    ],
    remark="No episode is needed where a rule reaches the bound: the policy follows it. The last column is the time "
    "of 1,000 episodes without such help and without stopping early. The paper has no figure for its encoder-decoder.",
)
