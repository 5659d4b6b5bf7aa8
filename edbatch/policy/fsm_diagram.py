"""A learned machine as a picture, like Figure 2 of the paper, drawn without Graphviz."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from edbatch.base.diagram import Arrow, Box, Diagram
from edbatch.policy.encodings import describe
from edbatch.policy.fsm_dot import END, LONGEST, begun

if TYPE_CHECKING:
    from edbatch.policy.fsm import FSM

MOST = 60  # states in which one finds one's way: those that training was in most often
EXPLAINED = "A box: the types that are ready, and which of them runs. An arrow: how often it was taken in training."


def diagram_of(fsm: FSM) -> Diagram:
    """A box for each state that was met in training, in the colour of the type that runs, from `begin` to `end`."""
    long = max((len(name) for name in fsm.types), default=0) > LONGEST
    short = {name: f"t{index}" if long else name for index, name in enumerate(fsm.types)}
    visits = Counter[int]()
    for (before, after), count in fsm.transitions.items():
        visits[before] += count
        visits[after] += count
    del visits[END]
    drawn = [state for state, _ in visits.most_common(MOST)]
    n_states, n_types = len(fsm.table()), len(fsm.types)
    sizes = f"{n_states:,} state{'s' * (n_states != 1)} over {n_types:,} type{'s' * (n_types != 1)}"
    made = Diagram(f"{fsm.name}: {sizes}", legend=[EXPLAINED])
    if len(visits) > MOST:
        made.legend.append(f"Drawn are the {MOST} states of {len(visits):,} that training was in most often.")
    elif len(drawn) < n_states:
        made.legend.append(f"Drawn are the {len(drawn)} states that what it was trained on is in now.")
    made.boxes.append(Box("begin", bold=True))
    numbers = {state: number for number, state in enumerate(drawn, 1)}
    for state in drawn:
        names = fsm.state_types(state)
        choice = names[int(fsm.states.choice[state])]
        ready = describe(fsm.encoding, [short[name] for name in names], int(fsm.states.mark[state]))
        made.boxes.append(Box(f"{ready}\nrun {short[choice]}", fsm.types.index(choice)))
    numbers[END] = len(made.boxes)
    made.boxes.append(Box("end", bold=True))
    taken = [(0, numbers[state], count) for state, count in begun(fsm).items() if state in numbers]
    for (before, after), count in sorted(fsm.transitions.items()):
        if before in numbers and after in numbers:
            taken.append((numbers[before], numbers[after], count))
    made.arrows += [Arrow(tail, head, f"{count:,}") for tail, head, count in taken]
    if long:
        used = {name for state in drawn for name in fsm.state_types(state)}
        made.legend += [f"{short[name]:<4} {name}" for name in fsm.types if name in used]
    return made
