"""The steps of learning: Q-learning and refinement; see `qlearning.learn`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from edbatch.base.stopwatch import working_time
from edbatch.policy.critical import Critical, new_critical
from edbatch.policy.encodings import CRITICAL
from edbatch.policy.frontier import new_frontier
from edbatch.policy.fsm import FSM
from edbatch.policy.heuristics import RUN_TIME_RULES, Heuristic
from edbatch.policy.loops import Deciding, Trajectory, follow, learn_from, new_trajectory, take_best
from edbatch.policy.policy_file import Training
from edbatch.policy.state_table import StateTable, new_table
from edbatch.policy.typed_graph import Columns, GraphColumns, TypedGraph, lower_bound

CHECK_EVERY = 50  # episodes between checks of the greedy policy, as in the paper
EVALUATIONS = 20  # passes over the graphs after which the Q of the final choices has settled
LEAST_EPSILON = 0.02
LEVELS = ("types", "pairs", "one")  # of changes of a table, coarse to fine: what helps in many states fits others, too
MOST_PAIRED = 16  # types that are ready: their pairs are more than can be tried
CERTAIN = 0.95  # times the rule's batches: what saves less of irregular graphs saves nothing of others like them

Change = tuple[NDArray[np.intp], NDArray[np.int32]]  # states, and the position in each of the type to choose there


class Exploration(NamedTuple):
    """How Q-learning explores and what it values: arguments of `learn`."""

    alpha: float = 0.5
    epsilon: float = 0.5  # falls linearly to 0.02
    rate: float = 0.1
    discount: float = 0.95  # below 1, because the same frontier stands at the start and at the end of a graph
    steps: int = 5


class Candidate(NamedTuple):
    """A table and what comes of following its choices."""

    table: StateTable
    batches: list[int]  # per graph
    met: Counter[int]  # how often each of its states decided

    @property
    def cost(self) -> int:
        """The batches in sum; what learning tries to make small."""
        return sum(self.batches)


class Arena(NamedTuple):
    """A training graph with room for one episode."""

    graph: Columns
    critical: Critical
    to_policy: np.ndarray  # int32[T]: the policy's letter of each of the graph's types
    trajectory: Trajectory


class Trainer:
    """The state of one call of `learn`: arenas, and the tables tried so far."""

    bar: tqdm

    def __init__(self, graphs: Sequence[TypedGraph], encoding: int, seed: int) -> None:
        self.graphs = graphs
        self.encoding = encoding
        self.random = np.random.default_rng(seed)
        self.spent = 0  # episodes
        self.work = 1  # of one, about: nodes, edges, and the work ahead
        self.types = tuple(dict.fromkeys(name for graph in graphs for name in graph.names))
        letter = {name: number for number, name in enumerate(self.types)}
        self.arenas = []
        for graph in graphs:
            columns, letters = GraphColumns(*graph.columns()), [letter[name] for name in graph.names]
            critical = new_critical(columns, new_frontier(columns, len(letters)))
            self.work += (len(graph) + len(graph.operands) + critical.depths.size) // len(graphs)
            room = new_trajectory(len(graph))
            self.arenas.append(Arena(graph.columns(), critical, np.array(letters, np.int32), room))
        self.bounds = [lower_bound(graph) for graph in graphs]
        by_rule = {rule: [len(Heuristic(rule).schedule(graph)) for graph in graphs] for rule in RUN_TIME_RULES}
        self.rule = min(RUN_TIME_RULES, key=lambda rule: sum(by_rule[rule]))  # of fewest batches
        self.by_rule = by_rule[self.rule]
        self.most = sum(self.by_rule)
        self.candidates = [self.check(new_table(64, 512))]  # in each state what the rule says at its first visit

    @property
    def best(self) -> Candidate:
        """The candidate of fewest batches; the first of equals."""
        return min(self.candidates, key=lambda candidate: candidate.cost)

    @property
    def optimal(self) -> bool:
        """Whether the best candidate reaches every lower bound."""
        return self.best.cost == sum(self.bounds)

    def run(self, arena: Arena, table: StateTable, **how: Any) -> tuple[StateTable, int, int]:
        """One episode, with `Deciding(**how)`: the table, grown if it had to be; how many decisions, and batches."""
        room = arena.to_policy, arena.trajectory, arena.critical
        while True:
            count = 2 * len(arena.trajectory.states) if "epsilon" in how else 0
            deciding = Deciding(**how, chances=self.random.random(count))
            _, _, types, decisions, _ = follow(arena.graph, table, self.encoding, *room, deciding)
            if (arena.trajectory.states[:decisions] >= 0).all():
                return table, decisions, len(types)
            table = table.copied(room=2)

    def check(self, table: StateTable) -> Candidate:
        """Follow the table's choices on every graph; states it does not hold enter it by the rule."""
        batches, met = [], Counter[int]()
        for arena in self.arenas:
            table, decisions, count = self.run(arena, table)
            batches.append(count)
            met.update(arena.trajectory.states[:decisions].tolist())
        return Candidate(table, batches, met)

    def count(self, episodes: int) -> None:
        """Note that so many were run."""
        self.spent += episodes
        self.bar.update(episodes)

    def explore(self, episodes: int, how: Exploration) -> None:
        """Q-learning proper, for an eighth of the episodes."""
        table, number, share = new_table(64, 512), 0, episodes // 8
        while self.spent < share and not self.optimal:
            arena = self.arenas[number % len(self.arenas)]
            chance = max(LEAST_EPSILON, how.epsilon * (1 - self.spent / share))
            table, decisions, _ = self.run(arena, table, alpha=how.alpha, epsilon=chance, greedy=True)
            learn_from(arena.trajectory, table, decisions, how.rate, how.discount, how.steps)
            self.count(1)
            number += 1
            if number % CHECK_EVERY == 0:
                known = table.copied()
                take_best(known)
                self.candidates.append(self.check(known))

    def refine(self, episodes: int) -> None:
        """Change what the best table chooses in many states at once, then in fewer, until nothing helps."""
        now, before = self.check(self.best.table.copied()), self.best.cost + 1
        most = episodes - len(self.arenas)  # so many may be spent before another check
        while now.cost < before and not self.optimal:
            before = now.cost
            for level in LEVELS:
                if self.spent > most:
                    return
                for states, positions in changes(now.table, self.encoding, level, now.met):
                    choice = now.table.choice
                    kept = choice[states]
                    if self.spent > most or (kept == positions).all():
                        continue
                    choice[states] = positions
                    self.count(len(self.arenas))
                    changed = self.check(now.table)
                    if changed.cost < now.cost:
                        now = changed
                    else:
                        choice[states] = kept
                self.candidates.append(now._replace(table=now.table.copied()))

    def policy(self, encoding: str, seed: int, how: Exploration, started: float, certain: bool) -> FSM | Heuristic:
        """The FSM of the best table that is no worse on the graphs than the run-time heuristics, or one of these.

        If it has to be `certain` that other graphs gain, the best of these rules, unless much is saved.
        """
        rule, best, most = self.rule, self.best, self.most
        if certain and not self.optimal:
            most = int(CERTAIN * most)
        batches = best.batches if best.cost <= most else self.by_rule
        seconds = round(working_time() - started, 3)
        training = Training(len(self.graphs), self.spent, seconds, seed, batches, self.bounds, rule, self.by_rule)
        if best.cost > most:
            return Heuristic(rule, training)
        table = best.table
        for arena in self.arenas * EVALUATIONS:  # its Q tells the value of its choices, however it came by them
            table, decisions, _ = self.run(arena, table, alpha=how.alpha)
            learn_from(arena.trajectory, table, decisions, how.rate, how.discount, how.steps)
        fsm = FSM(encoding, self.types, table, training)
        fsm.transitions = fsm.observe(self.graphs)
        return fsm


def changes(table: StateTable, encoding: int, level: str, met: Mapping[int, int]) -> list[Change]:
    """List what to try in the states that are alike at a level, those first that were met most often.

    Args:
        level: "types": states with the same types ready, and the same mark, are alike; "pairs": of those the ones where
            more is ready of one type than of another; "one": none are.
        met: how often each state decided; groups of states that never did are left out.
    """
    groups: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)  # by what is alike, and the type to choose
    for number in range(int(table.size[0])):
        letters = table.letters[table.start[number] : table.start[number + 1]].tolist()
        mark: Hashable = int(table.mark[number])
        if encoding >= CRITICAL:  # the types that are marked, whatever their places
            mark = frozenset(letter for at, letter in enumerate(letters) if table.mark[number] >> at & 1)
        if level == "pairs" and len(letters) > MOST_PAIRED:
            continue
        for types in combinations(letters, 2) if level == "pairs" else [letters]:
            alike = number if level == "one" else (frozenset(letters), mark, types if level == "pairs" else None)
            for letter in types:
                groups[alike, letter].append((number, letters.index(letter)))
    weights = {group: sum(met.get(number, 0) for number, _ in members) for group, members in groups.items()}
    columns = (zip(*groups[one], strict=True) for one in sorted(groups, key=lambda one: -weights[one]) if weights[one])
    return [(np.array(states), np.array(positions, np.int32)) for states, positions in columns]
