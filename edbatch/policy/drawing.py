"""A learned machine as a picture, like Figure 2 of the paper."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from textwrap import fill
from typing import TYPE_CHECKING

from edbatch.base.drawing import Arrow, Box, Diagram

if TYPE_CHECKING:
    from edbatch.policy.fsm import FSM

MOST = 60  # states in which one finds one's way: those that training was in most often
LINE = 36  # characters of a state's text; a longer one is broken
ARROW, ROOM = 12, 480  # characters: between boxes, and side by side in all, as where states are a chain; 40 inches
EXPLAINED = "A box: the types that are ready, and which of them runs. An arrow: how often it was taken in training."


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
    often = [state for state, _ in visits.most_common(MOST)]
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
