"""The batching policy as a finite state machine: section 2.2."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate, pairwise
from textwrap import fill
from typing import Self

import numpy as np

from edbatch.base.drawing import Arrow, Box, Diagram
from edbatch.errors import EdBatchError, warn
from edbatch.policy.critical import NOT_CRITICAL
from edbatch.policy.encodings import ENCODINGS, describe
from edbatch.policy.loops import Deciding, follow, new_trajectory
from edbatch.policy.policy_file import FSMFile, State, Training, write_policy
from edbatch.policy.schedule import Schedule
from edbatch.policy.state_table import StateTable, insert, new_table
from edbatch.policy.typed_graph import Int32s, TypedGraph, require_typed_graph

Transitions = dict[tuple[int, int], int]

END = -1  # in transitions, the state after the last decision
NAMED = 5  # types in a warning
LONGEST = 12  # letters of type names; where some are longer, tables and pictures number them
LINE = 36  # characters of a state's text; a longer one is broken
ARROW, ROOM = 12, 480  # characters: between boxes, and side by side in all, as where states are a chain; 40 inches
EXPLAINED = "A box: the types that are ready, and which of them runs. An arrow: how often it was taken in training."


class FSM:
    """A policy that looks the next type up in a table of the frontier states that training met.

    In other states, and where types are ready that it does not know, the rule `critical-path` decides; `fallbacks`
    counts those decisions. A frontier of one type needs none. Scheduling costs O(nodes + edges).

    Args:
        encoding: what a state is, see `encodings`.
        types: the type names; their positions are the letters of `table`.
        table: states, their choices and their Q values.
        training: how it was learned.
        transitions: how often state a was followed by state b (END after the last) in training.

    Raises:
        EdBatchError: unknown encoding.

    Example:
        >>> from edbatch.policy import TypedGraph, learn
        >>> tree = TypedGraph.from_lists(["I", "O", "I", "O"], [[], [0], [0], [2]])
        >>> fsm = learn([tree])
        >>> fsm.name, len(fsm.schedule(tree)), fsm.fallbacks
        ('fsm-sort', 3, 0)
        >>> [(row["state"], row["choice"]) for row in fsm.table()]
        [('I O', 'I')]
    """

    def __init__(
        self, encoding: str, types: tuple[str, ...], table: StateTable, training: Training | None = None,
        transitions: Transitions | None = None,
    ) -> None:  # fmt: skip
        if encoding not in ENCODINGS:
            raise EdBatchError(f"no state encoding is named {encoding!r}; there are {', '.join(ENCODINGS)}")
        self.name = f"fsm-{encoding}"
        self.encoding = encoding
        self.types = types
        self.states = table.copied(room=0)  # full: what it has not seen stays new to it
        self.training = training
        self.transitions = transitions or {}
        self.fallbacks = 0
        self._letter = {name: letter for letter, name in enumerate(types)}
        self._translated: tuple[tuple[str, ...], Int32s] = ((), np.empty(0, np.int32))
        self._warned = False

    def __repr__(self) -> str:
        return f"FSM({self.encoding!r}, {len(self.types)} types, {self.states.size[0]} states)"

    def schedule(self, graph: TypedGraph) -> Schedule:
        """The batches of `graph`; warns once (EdBatchWarning) when types that it does not know were ready."""
        require_typed_graph(f"policy {self.name!r}", graph)
        schedule, states, unknown = self._follow(graph)
        self.fallbacks += int((states < 0).sum())
        if unknown and not self._warned:
            self._warn(graph.names)
        return schedule

    def _follow(self, graph: TypedGraph) -> tuple[Schedule, Int32s, bool]:
        """The schedule, the states in which something was decided, and whether unknown types were ready in some."""
        trajectory = new_trajectory(len(graph))
        encoding, letters = ENCODINGS[self.encoding], self.letters_of(graph.names)
        *made, decisions, unknown = follow(
            graph.columns(), self.states, encoding, letters, trajectory, NOT_CRITICAL, Deciding()
        )
        return Schedule(*made), trajectory.states[:decisions], unknown

    def letters_of(self, names: tuple[str, ...]) -> Int32s:
        """int32[T]: this policy's number of each type name, -1 for those it does not know; the last is kept."""
        if names != self._translated[0]:
            letters = np.array([self._letter.get(name, -1) for name in names], np.int32)
            self._translated = (names, letters)
        return self._translated[1]

    def _warn(self, names: tuple[str, ...]) -> None:
        """Name types as a person calls them: the graph's report has their whole names."""
        self._warned = True
        called = [name.partition("(")[0].strip() for name in names if name not in self._letter]
        plain = list(dict.fromkeys(".".join(name.split(".")[-2:]) for name in called))
        shown = ", ".join(plain[:NAMED]) + (f" and {len(plain) - NAMED} more" if len(plain) > NAMED else "")
        warn(
            f"policy {self.name} was not trained with the types {shown}, in these shapes; where they are ready "
            "the rule critical-path decides. Train a policy on such graphs: edbatch.learn(graphs)"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a policy file that `get_policy` reads back."""
        states = self.rows()
        for (before, after), count in sorted(self.transitions.items()):
            states[before].next["end" if after == END else str(after)] = count
        write_policy(path, FSMFile(self.encoding, list(self.types), states, self.training))

    def rows(self) -> list[State]:
        """The table, as files hold it, without the transitions."""
        found = []
        for state in range(int(self.states.size[0])):
            first, last = self.states.start[state : state + 2]
            names = [self.types[letter] for letter in self.states.letters[first:last]]
            choice, mark = int(self.states.choice[state]), int(self.states.mark[state])
            found.append(State(names, names[choice], self.states.q[first:last].tolist(), mark))
        return found

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], content: FSMFile) -> Self:
        """The policy that a file holds; an EdBatchError names the file, and the state that contradicts itself."""
        letter = {name: index for index, name in enumerate(content.types)}
        table = new_table(len(content.states), sum(len(row.frontier) for row in content.states))
        transitions = {}
        for state, row in enumerate(content.states):
            place = f"{path}: state {state}"
            for name in row.frontier:
                if name not in letter:
                    raise EdBatchError(f"{place}: type {name!r} is not among the policy's types")
            if row.choice not in row.frontier:
                raise EdBatchError(f"{place}: choice {row.choice!r} is not on its frontier")
            if len(row.q) != len(row.frontier):
                raise EdBatchError(f"{place}: {len(row.frontier)} types, but {len(row.q)} values of q")
            letters = np.array([letter[name] for name in row.frontier], np.int32)
            if insert(table, letters, len(letters), row.mark) != state:
                raise EdBatchError(f"{place}: the same state is in the file twice")
            table.choice[state] = row.frontier.index(row.choice)
            table.q[table.start[state] : table.start[state + 1]] = row.q
            for after, count in row.next.items():
                if after != "end" and not (after.isdecimal() and int(after) < len(content.states)):
                    raise EdBatchError(f"{place}: next state {after!r} is not there")
                transitions[state, END if after == "end" else int(after)] = count
        try:
            return cls(content.encoding, tuple(content.types), table, content.training, transitions)
        except EdBatchError as error:
            raise EdBatchError(f"{path}: {error}") from error

    def short_names(self) -> dict[str, str]:
        """A name for each type that fits into a table: its own or, where some do not, a number."""
        long = max(map(len, self.types), default=0) > LONGEST
        return {name: f"t{number}" if long else name for number, name in enumerate(self.types)}

    def table(self, short: Mapping[str, str] | None = None) -> list[dict[str, str | float | int]]:
        """One row per state: its number, the state as text, the chosen type and its Q; `short`: names for the types."""
        called = short or dict(zip(self.types, self.types, strict=True))
        found: list[dict[str, str | float | int]] = []
        for number, row in enumerate(self.rows()):
            text = describe(self.encoding, [called[name] for name in row.frontier], row.mark)
            q = row.q[row.frontier.index(row.choice)]
            found.append({"number": number, "state": text, "choice": called[row.choice], "q": q})
        return found

    def observe(self, graphs: Iterable[TypedGraph]) -> Transitions:
        """The transitions between decisions, with their counts, when scheduling `graphs`; without unseen states."""
        seen: Counter[tuple[int, int]] = Counter()
        for graph in graphs:
            _, states, _ = self._follow(graph)
            seen.update(pairwise([*states[states >= 0].tolist(), END]))
        return dict(seen)

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Draw a box for each state that was met in training, an arrow for each transition: PNG, SVG or PDF.

        Raises:
            EdBatchError: Matplotlib or igraph is not installed (they come with the extra `plot`), the name ends
                otherwise, or the file cannot be written.
        """
        diagram_of(self).write(path)


def diagram_of(fsm: FSM) -> Diagram:
    """A box for each state that was met in training, in the colour of the type that runs, from `begin` to `end`."""
    visits, begun = Counter[int](), Counter[int]()  # begun: left more often than come to
    for (before, after), count in fsm.transitions.items():
        visits[before] += count
        visits[after] += count
        begun[before] += count
        begun[after] -= count
    short, rows = fsm.short_names(), fsm.rows()
    texts = [f"{fill(str(row['state']), LINE)}\nrun {row['choice']}" for row in fsm.table(short)]
    del visits[-1]
    often = [state for state, _ in visits.most_common()]  # as far as there is room
    room = accumulate(ARROW + max(map(len, texts[state].splitlines())) for state in often)
    drawn = [state for state, taken in zip(often, room, strict=True) if taken <= ROOM]
    sizes = f"{len(rows):,} state{'s' * (len(rows) != 1)} over {len(fsm.types):,} type{'s' * (len(fsm.types) != 1)}"
    made = Diagram(f"{fsm.name}: {sizes}", [Box("begin")], legend=[EXPLAINED])
    if len(drawn) < len(rows):
        left_out = f"{len(rows) - len(drawn):,} of {len(rows):,} states"
        made.legend.append(f"Left out are {left_out}: those that training was in least often.")
    made.boxes += [Box(texts[state], fsm.types.index(rows[state].choice)) for state in drawn]
    made.boxes.append(Box("end"))
    numbers = {-1: len(made.boxes) - 1} | {state: number for number, state in enumerate(drawn, 1)}
    taken = [(0, numbers[state], count) for state, count in sorted(begun.items()) if count > 0 and state in numbers]
    for (before, after), count in sorted(fsm.transitions.items()):
        if before in numbers and after in numbers:
            taken.append((numbers[before], numbers[after], count))
    made.arrows += [Arrow(tail, head, f"{count:,}") for tail, head, count in taken]
    if list(short.values()) != list(fsm.types):
        used = {name for state in drawn for name in rows[state].frontier}
        made.legend += [f"{short[name]:<4} {name}" for name in fsm.types if name in used]
    return made
