"""The steps of learning: teachers, Q-learning, improvement; see `qlearning.learn`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from edbatch.base.stopwatch import Moment
from edbatch.policy.bounds import lower_bound
from edbatch.policy.drawing import drawn
from edbatch.policy.encodings import AHEAD
from edbatch.policy.fsm import FSM
from edbatch.policy.heuristics import RUN_TIME_RULES, Heuristic
from edbatch.policy.policy import Policy
from edbatch.policy.refinement import LEVELS, Level, changes
from edbatch.policy.rollouts import (
    NO_TEACHER,
    TABLE_FULL,
    Arena,
    episode,
    learn_from,
    new_arena,
    plain_work_of,
    take_best,
    work_of,
)
from edbatch.policy.state_table import StateTable, new_table
from edbatch.policy.training import Training
from edbatch.policy.typed_graph import Int32s, TypedGraph

CHECK_EVERY = 50  # episodes between checks of the greedy policy, as in the paper
TEACHERS = ("critical-path", "sufficient", "greedy", "sufficient-direct", "agenda", "agenda-remaining", "beam")
EVALUATIONS = 20  # passes over the graphs after which the Q of the final choices has settled
LEAST_EPSILON = 0.02
LEAST_VISITS = 3  # what Q-learning met less often, the rule knows better
CERTAIN = 0.99  # times the rule's batches of what nothing was fitted to: a machine is better by more than chance
HOPELESS = 1.01  # times the batches of before: a change that costs so much on some of the graphs is not tried on others


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
    met: list[Counter[int]]  # per graph: how often each of its states decided

    @property
    def cost(self) -> int:
        """The batches in sum; what learning tries to make small."""
        return sum(self.batches)

    @property
    def decided(self) -> Counter[int]:
        """How often each of its states decided in all graphs."""
        return sum(self.met, Counter())


class Learned(NamedTuple):
    """A policy, its encoding ("" for a rule), and the batches that it makes of mini-batches it was not fitted to."""

    policy: Policy
    encoding: str
    batches: int


class Trainer:
    """The state of one call of `learn`: arenas, and the tables tried so far."""

    bar: tqdm

    def __init__(self, graphs: Sequence[TypedGraph], encoding: int, seed: int) -> None:
        self.graphs = graphs
        self.encoding = encoding
        self.random = np.random.default_rng(seed)
        self.spent = 0.0
        self.types = tuple(dict.fromkeys(name for graph in graphs for name in graph.names))
        self.arenas = [self.arena(graph) for graph in graphs]
        self.work = 1 + sum(work_of(arena) for arena in self.arenas) / len(graphs)
        self.bounds = [lower_bound(graph) for graph in graphs]
        self.unseen: list[TypedGraph] = []  # what tables are not changed for, but chosen by
        self.held_out: list[Arena] = []
        self.taught: dict[str, list[int]] = {}
        # in each state what the rule says at its first visit
        self.candidates = [self.check(_empty())]

    def arena(self, graph: TypedGraph) -> Arena:
        """Where a graph is scheduled again and again."""
        letters = {name: letter for letter, name in enumerate(self.types)}
        return new_arena(graph, np.array([letters[name] for name in graph.names], np.int32))

    def draw(self) -> None:
        """Have smaller mini-batches of the same samples beside the graphs, and judge all tables by them as well."""
        if self.optimal:
            return
        self.arenas += map(self.arena, drawn(self.graphs, self.random))
        self.candidates = [self.check(candidate.table) for candidate in self.candidates]
        self.unseen += drawn(self.graphs, self.random)
        self.held_out += map(self.arena, self.unseen)

    @property
    def best(self) -> Candidate:
        """The candidate of fewest batches; the first of equals."""
        return min(self.candidates, key=lambda candidate: candidate.cost)

    @property
    def optimal(self) -> bool:
        """Whether the best candidate reaches every lower bound."""
        return sum(self.best.batches[: len(self.graphs)]) == sum(self.bounds)

    def run(
        self,
        arena: Arena,
        table: StateTable,
        *,
        alpha: float = 0.0,
        epsilon: float = 0.0,
        greedy: bool = False,
        sequence: Int32s = NO_TEACHER,
    ) -> tuple[StateTable, int]:
        """One episode in an arena: (the table, grown if it had to be, the number of decisions)."""
        while True:
            decisions = episode(arena, table, self.encoding, alpha, epsilon, greedy, sequence, self.random)
            if decisions != TABLE_FULL:
                return table, decisions
            table = table.grown()

    def check(self, table: StateTable) -> Candidate:
        """Follow the table's choices on every graph; states it does not hold enter it by the rule."""
        found = Candidate(table, [0] * len(self.arenas), [Counter()] * len(self.arenas))
        for index in range(len(self.arenas)):
            found = self.check_on(index, found)
        return found

    def check_on(self, index: int, now: Candidate) -> Candidate:
        """Follow the table's choices on one graph, where they have changed."""
        table, decisions = self.run(self.arenas[index], now.table)
        batches, met = now.batches.copy(), now.met.copy()
        batches[index] = int(self.arenas[index].record.length[0])
        met[index] = Counter(self.arenas[index].states[:decisions].tolist())
        return Candidate(table, batches, met)

    @property
    def episodes(self) -> int:
        """Schedules so far, in mini-batches as large as the graphs."""
        return int(self.spent)

    def count(self, work: int) -> None:
        """Note that so much was done."""
        before = self.episodes
        self.spent += work / self.work
        self.bar.update(self.episodes - before)

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
                table, decisions = self.run(self.arenas[index], table, sequence=sequence)
                states, positions = self.arenas[index].states, self.arenas[index].positions
                votes.update(zip(states[:decisions].tolist(), positions[:decisions].tolist(), strict=True))
                self.taught[teacher].append(len(sequence))
            for (state, position), _ in sorted(votes.items(), key=lambda vote: (vote[1], vote[0])):
                table.choice[state] = position  # the most frequent comes last
            self.candidates.append(self.check(table))

    def explore(self, episodes: int, how: Exploration) -> None:
        """Q-learning proper, on the smaller mini-batches where there are such."""
        if self.optimal:
            return
        table = _empty()
        small = len(self.arenas) - len(self.graphs)
        number, start = 0, self.spent
        while self.spent - start < episodes:
            index = len(self.graphs) + number % small if small else number % len(self.graphs)
            chance = max(LEAST_EPSILON, how.epsilon * (1 - (self.spent - start) / episodes))
            table, decisions = self.run(self.arenas[index], table, alpha=how.alpha, epsilon=chance, greedy=True)
            learn_from(self.arenas[index], table, decisions, how.rate, how.discount, how.steps)
            self.count(work_of(self.arenas[index]))
            number += 1
            if number % CHECK_EVERY == 0:
                known = table.copied(least_visits=LEAST_VISITS)
                take_best(known)
                self.candidates.append(self.check(known))
                if self.optimal:
                    return

    def improve(self, episodes: int) -> None:
        """Improve the best table; on the graphs alone if what is best elsewhere is worse there than a rule."""
        self.refine(episodes)
        if not self.able():
            del self.arenas[len(self.graphs) :]
            self.candidates = [self.check(candidate.table) for candidate in self.candidates]
            self.refine(episodes)

    def refine(self, episodes: int) -> None:
        """Change what the best table chooses in many states at once, then in fewer, until nothing helps."""
        if self.optimal:
            return
        now = self.check(self.best.table.copied())
        before = now.cost + 1
        while now.cost < before:
            before = now.cost
            for level in LEVELS:
                now = self.improve_at(now, level, episodes)
                self.candidates.append(now._replace(table=now.table.copied()))

    def improve_at(self, now: Candidate, level: Level, episodes: int) -> Candidate:
        """What comes of changing the choices in states that are alike at a level."""
        for change in changes(now.table, self.encoding, level, now.decided):
            if self.episodes >= episodes:
                break
            table, (states, positions) = now.table, change
            kept = table.choice[states]
            if (kept == positions).all():
                continue
            table.choice[states] = positions
            changed = self.changed(now, set(states.tolist()))
            if changed.cost < now.cost:
                now = changed
            else:
                table.choice[states] = kept
        return now

    def changed(self, before: Candidate, states: Set[int]) -> Candidate:
        """What comes of a table in which the choices of some states have changed, unless it is soon seen to be bad."""
        now = before
        for index in range(len(self.arenas) - 1, -1, -1):  # the smaller ones first
            if not states.isdisjoint(before.met[index]):
                self.count(plain_work_of(self.arenas[index]))
                now = self.check_on(index, now)
                if now.cost > before.cost * HOPELESS:
                    break
        return now

    def evaluate(self, table: StateTable, how: Exploration) -> None:
        """Let a table's Q tell the value of its choices, however it came by them."""
        for _ in range(EVALUATIONS):
            for index in range(len(self.graphs)):
                table, decisions = self.run(self.arenas[index], table, alpha=how.alpha)
                learn_from(self.arenas[index], table, decisions, how.rate, how.discount, how.steps)

    def best_rule(self) -> str:
        """The run-time heuristic of fewest batches on the graphs."""
        for rule in RUN_TIME_RULES:
            if rule not in self.taught:
                self.taught[rule] = [len(Heuristic(rule).schedule(graph)) for graph in self.graphs]
        return min(RUN_TIME_RULES, key=lambda rule: sum(self.taught[rule]))

    def able(self) -> list[Candidate]:
        """The candidates that are no worse on the graphs than any run-time heuristic."""
        most = sum(self.taught[self.best_rule()])
        return [candidate for candidate in self.candidates if sum(candidate.batches[: len(self.graphs)]) <= most]

    def promise(self, candidate: Candidate) -> tuple[int, int]:
        """How few batches a table can be expected to make of other mini-batches; the lower, the better."""
        unseen = 0
        for arena in self.held_out:
            self.run(arena, candidate.table)
            unseen += int(arena.record.length[0])
        return unseen, candidate.cost

    def policy(self, encoding: str, seed: int, how: Exploration, started: Moment) -> Learned:
        """The FSM of the best table that is no worse on the graphs than the run-time heuristics, or one of these."""
        heuristic, own = self.best_rule(), len(self.graphs)
        by_rule = self.taught[heuristic]
        best = min(self.able(), key=self.promise, default=None)
        if best and self.unseen and self.encoding == AHEAD:  # whose first table is the rule
            certain = self.promise(best)[0] <= CERTAIN * self.promise(self.candidates[0])[0]
            best = best if certain else None
        if best:
            self.evaluate(best.table, how)
        training = Training(
            graphs=own,
            episodes=self.episodes,
            seconds=round(started.worked(), 3),
            seed=seed,
            batches=best.batches[:own] if best else by_rule,
            bounds=self.bounds,
            heuristic=heuristic,
            heuristic_batches=by_rule,
        )
        if not best:
            rule = Heuristic(heuristic, training)
            return Learned(rule, "", sum(len(rule.schedule(graph)) for graph in self.unseen or self.graphs))
        fsm = FSM(encoding, self.types, best.table, training)
        fsm.transitions = fsm.observe(self.graphs)
        return Learned(fsm, encoding, self.promise(best)[0] or best.cost)


def _empty() -> StateTable:
    return new_table(64, 512)
