"""The steps of learning: teachers, Q-learning, improvement; see `qlearning.learn`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from edbatch.base.stopwatch import Moment
from edbatch.policy.bounds import lower_bound
from edbatch.policy.fsm import FSM
from edbatch.policy.heuristics import RUN_TIME_RULES, Heuristic
from edbatch.policy.policy import Policy
from edbatch.policy.rollouts import NO_TEACHER, TABLE_FULL, episode, learn_from, new_arena, take_best, work_of
from edbatch.policy.state_table import StateTable, new_table
from edbatch.policy.training import Training
from edbatch.policy.typed_graph import Int32s, TypedGraph

CHECK_EVERY = 50  # episodes between checks of the greedy policy, as in the paper
TEACHERS = ("sufficient", "greedy", "sufficient-direct", "agenda", "agenda-remaining", "beam")
EVALUATIONS = 20  # passes over the graphs after which the Q of the final choices has settled
LEAST_EPSILON = 0.02
LEAST_VISITS = 3  # what Q-learning met less often, the path ratio knows better


class Exploration(NamedTuple):
    """How Q-learning explores and what it values.

    Attributes:
        alpha: weight of the ratio in the reward.
        epsilon: the share of random decisions in the first episode; falls linearly to 0.02.
        rate: how far a Q value moves towards its target.
        discount: of the rewards of later decisions. Below 1, because a state recurs: the same frontier
            stands at the start and at the end of a graph.
        steps: the n of the n-step return.
    """

    alpha: float = 0.5
    epsilon: float = 0.5
    rate: float = 0.1
    discount: float = 0.95
    steps: int = 5

    def is_possible(self) -> bool:
        """Whether all are in range."""
        shares = 0 <= self.epsilon <= 1 and 0 < self.rate <= 1 and 0 <= self.discount <= 1
        return shares and 0 <= self.alpha < float("inf") and self.steps >= 1


class Candidate(NamedTuple):
    """A table and what comes of following its choices."""

    table: StateTable
    batches: list[int]  # per graph
    met: Counter[int]  # how often each of its states decided

    @property
    def cost(self) -> int:
        """The batches in sum; what learning tries to make small."""
        return sum(self.batches)


class Trainer:
    """The state of one call of `learn`: arenas, and the tables tried so far."""

    bar: tqdm

    def __init__(self, graphs: Sequence[TypedGraph], encoding: int, seed: int) -> None:
        self.graphs = graphs
        self.encoding = encoding
        self.random = np.random.default_rng(seed)
        self.episodes = 0
        self.types = tuple(dict.fromkeys(name for graph in graphs for name in graph.names))
        letter = {name: index for index, name in enumerate(self.types)}
        self.arenas = [
            new_arena(graph, np.array([letter[name] for name in graph.names], np.int32), encoding) for graph in graphs
        ]
        self.work = 1 + sum(work_of(arena) for arena in self.arenas) / len(graphs)
        self.bounds = [lower_bound(graph) for graph in graphs]
        self.taught: dict[str, list[int]] = {}
        # in each state what the path ratio says at its first visit
        self.candidates = [self.check(_empty())]

    @property
    def best(self) -> Candidate:
        """The candidate of fewest batches; the first of equals."""
        return min(self.candidates, key=lambda candidate: candidate.cost)

    @property
    def optimal(self) -> bool:
        """Whether the best candidate reaches every lower bound."""
        return self.best.cost == sum(self.bounds)

    def run(
        self,
        table: StateTable,
        index: int,
        *,
        alpha: float = 0.0,
        epsilon: float = 0.0,
        greedy: bool = False,
        sequence: Int32s = NO_TEACHER,
    ) -> tuple[StateTable, int]:
        """One episode on graph `index`: (the table, grown if it had to be, the number of decisions)."""
        while True:
            arena = self.arenas[index]
            decisions = episode(arena, table, self.encoding, alpha, epsilon, greedy, sequence, self.random)
            if decisions != TABLE_FULL:
                return table, decisions
            table = table.grown()

    def check(self, table: StateTable) -> Candidate:
        """Follow the table's choices on every graph; states it does not hold enter it by path ratio."""
        batches: list[int] = []
        met: Counter[int] = Counter()
        for index, arena in enumerate(self.arenas):
            table, decisions = self.run(table, index)
            batches.append(int(arena.record.length[0]))
            met.update(arena.states[:decisions].tolist())
        return Candidate(table, batches, met)

    def count(self, episodes: int) -> None:
        """Note that so many episodes have run."""
        self.episodes += episodes
        self.bar.update(episodes)

    def follow_teachers(self) -> None:
        """One table per teacher, by majority vote over its decisions in each state."""
        for teacher in TEACHERS:
            if self.optimal:
                return
            table = _empty()
            votes: Counter[tuple[int, int]] = Counter()
            self.taught[teacher] = []
            for index, graph in enumerate(self.graphs):
                sequence = Heuristic(teacher).schedule(graph).types
                table, decisions = self.run(table, index, sequence=sequence)
                states, positions = self.arenas[index].states, self.arenas[index].positions
                votes.update(zip(states[:decisions].tolist(), positions[:decisions].tolist(), strict=True))
                self.taught[teacher].append(len(sequence))
            for (state, position), _ in sorted(votes.items(), key=lambda vote: (vote[1], vote[0])):
                table.choice[state] = position  # the most frequent comes last
            self.candidates.append(self.check(table))

    def explore(self, episodes: int, how: Exploration) -> None:
        """Q-learning proper."""
        table = _empty()
        for number in range(episodes):
            if number % CHECK_EVERY == 0 and self.optimal:
                return
            index = number % len(self.graphs)
            chance = max(LEAST_EPSILON, how.epsilon * (1 - number / episodes))
            table, decisions = self.run(table, index, alpha=how.alpha, epsilon=chance, greedy=True)
            learn_from(self.arenas[index], table, decisions, how.rate, how.discount, how.steps)
            self.count(1)
            if (number + 1) % CHECK_EVERY == 0:
                known = table.copied(least_visits=LEAST_VISITS)
                take_best(known)
                self.candidates.append(self.check(known))

    def improve(self, episodes: int) -> None:
        """Change the best table's choice of one state at a time, often met ones first, until nothing helps."""
        now, before = self.best, self.best.cost + 1
        while now.cost < before:
            before = now.cost
            for state, _ in sorted(now.met.items(), key=lambda item: (-item[1], item[0])):
                options = int(now.table.start[state + 1] - now.table.start[state])
                kept = int(now.table.choice[state])
                for change in range(1, options):
                    if self.optimal or self.episodes + len(self.graphs) > episodes:
                        return
                    self.count(len(self.graphs))
                    now.table.choice[state] = (kept + change) % options
                    changed = self.check(now.table)
                    if changed.cost < now.cost:
                        now = changed
                        self.candidates.append(now)
                        break
                    now.table.choice[state] = kept

    def evaluate(self, how: Exploration) -> None:
        """Let the best table's Q tell the value of its choices, however it came by them."""
        table = self.best.table
        for _ in range(EVALUATIONS):
            for index, arena in enumerate(self.arenas):
                table, decisions = self.run(table, index, alpha=how.alpha)
                learn_from(arena, table, decisions, how.rate, how.discount, how.steps)

    def policy(self, encoding: str, seed: int, started: Moment) -> Policy:
        """The best there is: the best table's FSM, or a run-time heuristic that runs fewer batches."""
        for rule in RUN_TIME_RULES:
            if rule not in self.taught:
                self.taught[rule] = [len(Heuristic(rule).schedule(graph)) for graph in self.graphs]
        heuristic = min(RUN_TIME_RULES, key=lambda rule: sum(self.taught[rule]))
        best = self.best
        learned = best.cost <= sum(self.taught[heuristic])
        training = Training(
            graphs=len(self.graphs),
            episodes=self.episodes,
            seconds=round(started.worked(), 3),
            seed=seed,
            batches=best.batches if learned else self.taught[heuristic],
            bounds=self.bounds,
            heuristic=heuristic,
            heuristic_batches=self.taught[heuristic],
        )
        if not learned:
            return Heuristic(heuristic, training)
        fsm = FSM(encoding, self.types, best.table, training)
        fsm.transitions = fsm.observe(self.graphs)
        return fsm


def _empty() -> StateTable:
    return new_table(64, 512)
