"""A learned machine as a Graphviz drawing, like Figure 2 of the paper."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from edbatch.base.text import printable
from edbatch.policy.encodings import describe

if TYPE_CHECKING:
    from edbatch.policy.fsm import FSM

END = -1  # in transitions, the state after the last decision
EXPLAINED = "A box: the types that are ready, in bold the one that runs. An arrow: how often it was taken in training."
LONGEST = 12  # longer type names get a short one, explained in a legend


def to_dot(fsm: FSM) -> str:
    """Graphviz text: one box per state met in training, its choice in bold, one arrow per transition.

    Arrows carry how often they were taken in training, from a dot where graphs begin to a ring where they end. Batches
    in between in which only one type was ready are not drawn.

    Example:
        >>> from edbatch.policy import TypedGraph, learn
        >>> fsm = learn([TypedGraph.from_lists(["I", "O", "I", "O"], [[], [0], [0], [2]])])
        >>> print(to_dot(fsm))
        digraph "fsm-sort" {
        ...
          s0 [label=<<b>I</b> O>];
        ...
          s0 -> end [label="1"];
        }
    """
    long = max((len(name) for name in fsm.types), default=0) > LONGEST
    short = {name: f"t{index}" if long else name for index, name in enumerate(fsm.types)}
    lines = [
        f"digraph {_quoted(fsm.name)} {{",
        '  node [shape=box, style=rounded, fontname="Helvetica"];',
        '  edge [fontname="Helvetica", fontsize=10];',
        f'  fontname="Helvetica"; fontsize=10; label="{EXPLAINED}";',
    ]
    drawn = sorted({state for pair in fsm.transitions for state in pair if state != END})
    for state in drawn:
        names, choice = fsm.state_types(state), int(fsm.states.choice[state])
        words = [
            f"<b>{_escaped(short[name])}</b>" if index == choice else _escaped(short[name])
            for index, name in enumerate(names)
        ]
        text = describe(fsm.encoding, words, int(fsm.states.mark[state]))
        lines.append(f"  s{state} [label=<{text}>];")
    lines += ["  start [shape=point, width=0.15];", "  end [shape=doublecircle, label=end];"]
    lines += [f'  start -> s{state} [label="{count}"];' for state, count in begun(fsm).items()]
    for (before, after), count in sorted(fsm.transitions.items()):
        target = "end" if after == END else f"s{after}"
        lines.append(f'  s{before} -> {target} [label="{count}"];')
    if long:
        used = sorted({name for state in drawn for name in fsm.state_types(state)}, key=fsm.types.index)
        rows = "".join(
            f'<tr><td align="left">{short[name]}</td><td align="left">{_escaped(name)}</td></tr>' for name in used
        )
        lines.append(f'  legend [shape=plain, label=<<table border="0">{rows}</table>>];')
    return "\n".join([*lines, "}"])


def begun(fsm: FSM) -> dict[int, int]:
    """How many graphs began in which states: those that were left more often than they were come to."""
    more: Counter[int] = Counter()
    for (before, after), count in sorted(fsm.transitions.items()):
        more[before] += count
        more[after] -= count
    return {state: count for state, count in sorted(more.items()) if count > 0}


def _quoted(text: str) -> str:
    return '"' + printable(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escaped(text: str) -> str:
    """Text for an HTML-like label."""
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
