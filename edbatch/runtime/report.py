"""What a graph did: batches, memory access, time."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from textwrap import fill
from typing import NamedTuple

import numpy as np

from edbatch.base.lazy import LazyModule
from edbatch.base.table import Table
from edbatch.graph.recorder import IN_C
from edbatch.memory.plan.format import GATHER, STRIDED, Plan
from edbatch.memory.plan.windows import Windows

tabulate = LazyModule("tabulate")

STAGES = (
    "construction",
    "lowering",
    "scheduling",
    "planning",
    "execution",
    "backward",
    "update",
    "compilation",
)
LEAST = 8  # rounds; what takes fewer needs no advice
FEW = 4.0  # programs a round


class Use(NamedTuple):
    """What has run of a type.

    Attributes:
        batches, nodes: how many.
        seconds: of its batches, forward; None without `options(profile=True)`.
        backward_seconds: of the batches of its derivative, in all backward passes, likewise.
    """

    batches: int
    nodes: int
    seconds: float | None
    backward_seconds: float | None = None


@dataclass
class Counts:
    """What the rounds of all calls of `edbatch.run` in a graph came to; see `Report`. Batches are those of rounds."""

    rounds: int = 0
    waited: int = 0
    in_flight: int = 0
    seconds: float = 0.0
    batches: int = 0


@dataclass
class Report:
    """Everything that ran in a graph so far; `print` it.

    Attributes:
        policy: name of the policy.
        device: where it ran.
        threads: how many compute on the CPU now, of how many at most; see `edbatch.options`.
        nodes, edges, types: of the scheduled graph: without sources and views, which cost no batch; a cell that was
            split around a recurrence counts as its parts.
        batches: number of kernels; `lower_bound` is the least any schedule needs (path reading; appendix A.3).
        backward_batches: of derivatives, in the last backward pass, 0 if there was none; `backward_bound` is the least
            that any order needs. Nodes that gradients reach by different outputs count as of different types.
        viewed, gathered: operands of batches that were used in place, and that had to be copied together.
        viewed_bytes, gathered_bytes: their sizes.
        fallbacks: steps at which the FSM did not know the state and the rule `critical-path` decided.
        memory_bytes: all values of the graph.
        seconds: by stage, printed in this order: construction (since the graph was opened or last ran), lowering (to
            the typed graph that is scheduled), scheduling, planning, execution,
            backward, update (by an optimizer, of what got gradients here), and compilation, which no other stage holds:
            of functions that this machine has not run before, or loading them from the disk. On a GPU, execution is
            what it takes until everything is enqueued.
        rounds: of programs of `edbatch.run`; `waited` counts the programs that waited in them, `in_flight` is the most
            that ran at a time, `seconds_of_rounds` all that they took.
        uses: by name of the type what has run of it; see `by_type`.
        advice: what keeps nodes from running together and what to do about it, in sentences; mostly none.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph(policy="critical-path") as graph:
        ...     total = eb.sum([eb.tanh(eb.scalar(i)) for i in range(3)])
        >>> total.value().round(2)
        np.float32(1.73)
        >>> print(graph.report().by_type())
        type               batches    nodes
        ---------------  ---------  -------
        tanh([])                 1        3
        sum_list([]...)          1        1
    """

    policy: str = ""
    device: str = "cpu"
    threads: str = ""
    nodes: int = 0
    edges: int = 0
    types: int = 0
    batches: int = 0
    lower_bound: int = 0
    backward_batches: int = 0
    backward_bound: int = 0
    viewed: int = 0
    gathered: int = 0
    viewed_bytes: int = 0
    gathered_bytes: int = 0
    fallbacks: int = 0
    memory_bytes: int = 0
    rounds: int = 0
    waited: int = 0
    in_flight: int = 0
    seconds_of_rounds: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    uses: dict[str, Use] = field(default_factory=dict)
    advice: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        table = tabulate.tabulate(self._rows(), tablefmt="plain", colalign=("left", "right"), disable_numparse=True)
        return "\n\n".join([table, *(fill(sentence, 100) for sentence in self.advice)])

    def _repr_html_(self) -> str:
        """For notebooks: the table, the types and the advice."""
        table = Table(("", ""), self._rows(), ("left", "right"))
        sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.advice)
        return table._repr_html_() + sentences + (self.by_type()._repr_html_() if self.uses else "")

    def by_type(self) -> Table:
        """Per type the batches and the nodes that ran, the most batches first.

        Under `edbatch.options(profile=True)`, which runs batches one by one, also the milliseconds of execution
        (forward, and of derivatives, backward), and the types that took most of them come first.
        """
        timed = any(use.seconds is not None for use in self.uses.values())
        backward = any(use.backward_seconds for use in self.uses.values())
        rows = [
            (
                short(name, 80),
                f"{use.batches:,}",
                f"{use.nodes:,}",
                *([f"{1e3 * (use.seconds or 0):,.3f}"] if timed else []),
                *([f"{1e3 * (use.backward_seconds or 0):,.3f}"] if backward else []),
            )
            for name, use in sorted(
                self.uses.items(),
                key=lambda entry: ((entry[1].seconds or 0) + (entry[1].backward_seconds or 0), *entry[1][:2]),
                reverse=True,
            )
        ]
        headers = ("type", "batches", "nodes", *(["ms"] if timed else []), *(["ms backward"] if backward else []))
        return Table(headers, rows, ("left", *["right"] * (len(headers) - 1)))

    def _rows(self) -> list[tuple[str, str]]:
        rows = [
            ("policy", self.policy),
            ("nodes", f"{self.nodes:,}"),
            ("edges", f"{self.edges:,}"),
            ("types", f"{self.types:,}"),
            ("batches", f"{self.batches:,}"),
            ("lower bound", f"{self.lower_bound:,}"),
            ("operands viewed", f"{self.viewed:,} ({_size(self.viewed_bytes)})"),
            ("operands gathered", f"{self.gathered:,} ({_size(self.gathered_bytes)})"),
            ("memory of values", _size(self.memory_bytes)),
        ]
        if self.backward_batches:
            backward = ("backward batches", f"{self.backward_batches:,}"), ("lower bound", f"{self.backward_bound:,}")
            rows[6:6] = backward
        if self.device != "cpu":
            rows.insert(1, ("device", self.device))
        if self.threads:
            rows.insert(1, ("threads", self.threads))
        if not IN_C:
            rows.insert(1, ("recording", "in Python; see edbatch.show_config()"))
        if self.fallbacks:
            rows.append(("states unknown to the FSM", f"{self.fallbacks:,}"))
        if self.rounds:
            rows.append(("programs in flight, at most", f"{self.in_flight:,}"))
            waiting, each = self.waited / self.rounds, 1e3 * self.seconds_of_rounds / self.rounds
            rows.append(("rounds of programs", f"{self.rounds:,} ({waiting:,.1f} waiting, {each:,.2f} ms)"))
        return rows + [(stage, f"{1e3 * self.seconds[stage]:,.2f} ms") for stage in STAGES if stage in self.seconds]

    def _tell_rounds(self, counts: Counts) -> None:
        """Take over what rounds came to, and advise where they are small."""
        self.rounds, self.waited, self.in_flight = counts.rounds, counts.waited, counts.in_flight
        self.seconds_of_rounds = counts.seconds
        if self.rounds < LEAST or self.waited >= FEW * self.rounds:
            return
        small = f"{self.rounds:,} rounds of {self.waited / self.rounds:.1f} programs"
        if self.in_flight < FEW:
            why = f"at most {self.in_flight} ran at a time. Give `run` a mini-batch of samples, and no low `limit`."
        else:
            why = (
                f"though {self.in_flight} ran at a time: a few went on when the others had ended. Begin the next "
                "samples when some end (`limit`), or put samples of like length together."
            )
        self.advice.append(f"Programs waited in {small}, {why}")

    def _count_operands(self, plan: Plan, windows: Windows) -> None:
        """Add the operands of a plan to the counts."""
        operands, segments = plan.operands, plan.segments
        access, window, rows = (operands[name] for name in ("access", "window", "n"))
        row_bytes = np.array(
            [seen.entries * windows.layouts[seen.arena][1].itemsize for seen in windows.windows], np.int64
        )
        in_place = access <= STRIDED
        self.viewed += int(in_place.sum())
        self.viewed_bytes += int((row_bytes[window] * rows)[in_place].sum())
        self.gathered += int((access >= GATHER).sum())
        self.gathered_bytes += int((row_bytes[window] * rows)[access == GATHER].sum())
        self.gathered_bytes += int((row_bytes[segments["window"]] * segments["n"]).sum())


def short(name: str, width: int) -> str:
    """A name that is too long for a table, without its end."""
    return name if len(name) <= width else name[: width - 3] + "..."


def _size(n: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:,.0f} {unit}" if unit == "B" else f"{n:,.1f} {unit}"
        n /= 1024
    return f"{n:,.2f} GiB"
