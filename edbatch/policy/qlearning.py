"""Learning an FSM: tabular Q-learning, and refinement (section 2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tqdm import tqdm

from edbatch.base.numbers import checked_integer, checked_real
from edbatch.base.stopwatch import working_time
from edbatch.errors import EdBatchError, checked_flag, shown
from edbatch.policy.encodings import ENCODINGS
from edbatch.policy.fsm import FSM
from edbatch.policy.heuristics import Heuristic
from edbatch.policy.policy import Policy
from edbatch.policy.trainer import CHECK_EVERY, Exploration, Trainer
from edbatch.policy.typed_graph import TypedGraph, require_typed_graph

COMPETING = ("sort", "ahead")  # encodings; a schedule by the first costs least
ENCODING_NAMES = (*ENCODINGS, "auto")
KNOWN = ", ".join(ENCODING_NAMES)

WORK_PER_SECOND = 100_000_000  # as Trainer.work counts
MOST_STEPS = 2**31 - 1  # which compiled loops add to numbers of decisions


def learn(
    graphs: Sequence[TypedGraph],
    *,
    encoding: str = "auto",
    episodes: int = 1000,
    seed: int = 0,
    seconds: float = 1.0,
    progress: bool | None = None,
    **exploration: float,
) -> Policy:
    """Learn a batching policy for graphs like these.

    Tabular Q-learning over the frontier states of Algorithm 1, an episode being the schedule of one graph. The reward
    of a batch is equation (1), -1 + alpha * |READY| / |TOTAL|, see `frontier`. (The paper prints the inverse ratio; its
    text and Lemma 1 need this.) A table begins with what the rule `critical-path` chooses. Then come two steps, each of
    which stops as soon as every graph reaches its lower bound:

    1. Q-learning with n-step returns for an eighth of the episodes, checked every 50.
    2. What the best table so far chooses is changed, in many states at once and then in fewer, keeping what saves
       batches.

    The result never runs more batches on `graphs`, in sum, than the best run-time heuristic: where none of the tables
    does, it is that heuristic; with "auto" and "ahead" also where the table misses the bound and saves less than 5 % of
    the batches, which other mini-batches would not. It is deterministic in all but `training.seconds`.

    Args:
        graphs: training mini-batches; several make the policy general. Each run of one is a graph to learn from.
        encoding: what a state is: base, max, sort, phase, critical or ahead (see `encodings`). "auto": `sort`, whose
            schedules cost least, or, where that misses the bound, `ahead`.
        episodes: how many at most. Large graphs get fewer, see `seconds`, but at least 50.
        seed: of the exploration.
        seconds: about how long episodes may take, counted by what they do: the result is the same on a slow machine.
        progress: show a progress bar; None shows it on a terminal when learning takes more than a second.
        exploration: alpha (0.5), weight of the ratio in the reward; epsilon (0.5), the share of random decisions at
            first; rate (0.1), how far a Q value moves towards its target; discount (0.95), of the rewards of later
            decisions; steps (5), the n of the n-step return.

    Raises:
        EdBatchError: no graphs, a graph with a cycle, an unknown encoding or number of how to explore, or a number that
            is none or out of range.

    Example:
        >>> from edbatch.policy import TypedGraph, learn
        >>> tree = TypedGraph.from_lists(["I", "O", "I", "O"], [[], [0], [0], [2]])
        >>> policy = learn([tree])
        >>> policy.training.batches, policy.training.bounds, policy.training.episodes
        ([3], [3], 0)
    """
    graphs = _checked(graphs)
    if not isinstance(encoding, str) or encoding not in ENCODING_NAMES:
        raise EdBatchError(f"learn: no state encoding is named {shown(encoding)}; there are {KNOWN}")
    how = _checked_exploration(exploration)
    episodes = checked_integer("learn", "episodes", episodes, least=0)
    seed = checked_integer("learn", "seed", seed, least=0)
    seconds = checked_real("learn", "seconds", seconds)
    started = working_time()
    names = COMPETING if encoding == "auto" else (encoding,)
    trainers = [Trainer(graphs, ENCODINGS[name], seed) for name in names]
    episodes = min(episodes, max(CHECK_EVERY, int(seconds * WORK_PER_SECOND / trainers[0].work)))
    found: list[FSM | Heuristic] = []
    with tqdm(
        total=episodes * len(names), desc="learning to batch", unit="episode",
        disable=None if progress is None else not checked_flag("learn: progress", progress),
        delay=1.0 if progress is None else 0.0, leave=False,
    ) as bar:  # fmt: skip
        for name, trainer in zip(names, trainers, strict=True):
            trainer.bar = bar
            trainer.explore(episodes, how)
            trainer.refine(episodes)
            found.append(trainer.policy(name, seed, how, started, certain=encoding in ("auto", "ahead")))
            if trainer.optimal:
                break
    return min(found, key=lambda policy: sum(policy.training.batches) if policy.training else 0)


def _checked_exploration(given: dict[str, Any]) -> Exploration:
    known = Exploration._field_defaults
    if unknown := [name for name in given if name not in known]:
        raise EdBatchError(f"learn: there is no {unknown[0]!r}; there are {', '.join(known)}")
    every = known | given
    steps = checked_integer("learn", "steps", every.pop("steps"), most=MOST_STEPS)
    how = Exploration(**{name: checked_real("learn", name, value) for name, value in every.items()}, steps=steps)
    if not (how.epsilon <= 1 and 0 < how.rate <= 1 and how.discount <= 1):
        raise EdBatchError("learn: needs 0 <= epsilon <= 1, 0 < rate <= 1, 0 <= discount <= 1")
    return how


def _checked(graphs: Sequence[TypedGraph]) -> list[TypedGraph]:
    try:
        found = list(graphs)
    except TypeError:
        raise EdBatchError(f"learn: expected a list of graphs, got {shown(graphs)}") from None
    for at, graph in enumerate(found):
        require_typed_graph(f"learn: graph {at}", graph)
    if not found:
        raise EdBatchError("learn: expected at least one graph, got none")
    return [run for graph in found for run in graph.runs()]
